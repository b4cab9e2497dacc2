//! The clrscope recording: written inside the profiled process and read outside it.
//!
//! - [`layout`] is the specification of the segments, byte by byte.
//! - [`writer`] runs inside the profiled process.
//! - [`reader`] converts a recording in any state into the [`model`].
//! - [`packed`] is the single-file form of a recording, with its specification; [`pack`] creates
//!   it.
//! - [`events`] is the encoding of the instruments `events` and `exceptions`.
//! - [`heap`] reads the snapshots of the instrument `heap`.
//! - `gains` encodes how trees grow between one boundary of parts and the next.
//! - `records` declares the records of both forms; `codec` converts their fields to bytes.
//! - [`refusal`] is the file left by an agent that could not start recording.
//!
//! The feature `reading`, on by default, contains the modules `reader`, `packed` and `pack`. Code
//! that only writes recordings does not enable it: such code is loaded into other programs, and
//! builds without a compressor.
#![cfg_attr(
    not(feature = "reading"),
    allow(
        dead_code,
        unused_imports,
        rustdoc::broken_intra_doc_links,
        reason = "what the reader shares with the writer stands in common modules"
    )
)]

mod codec;
pub mod column;
pub mod events;
mod gains;
pub mod heap;
pub mod layout;
#[cfg(feature = "reading")]
mod log_records;
pub mod model;
#[cfg(feature = "reading")]
mod open_error;
#[cfg(feature = "reading")]
pub mod pack;
#[cfg(feature = "reading")]
pub mod packed;
#[cfg(feature = "reading")]
pub mod parallel;
pub mod payload;
#[cfg(feature = "reading")]
pub mod reader;
mod records;
pub mod refusal;
#[cfg(feature = "testing")]
pub mod testing;
pub mod varint;
pub mod writer;

#[cfg(feature = "reading")]
pub use open_error::OpenError;
#[cfg(feature = "reading")]
pub use reader::{EndOfPeriod, Period, WrittenPeriods, open, open_period, written_periods};

/// The README, compiled to check its example.
#[cfg(all(doctest, feature = "reading"))]
#[doc = include_str!("../README.md")]
struct Readme;
