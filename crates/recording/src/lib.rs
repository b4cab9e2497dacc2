//! The clrscope recording: what is written inside the profiled process and read outside it.
//!
//! - [`layout`] is the specification of the segments, byte by byte.
//! - [`writer`] runs inside the profiled process.
//! - [`reader`] turns what was written into the [`model`], whatever state it is in.
//! - [`packed`] is one file instead of a directory, with its specification; [`pack`] makes it.
//! - [`events`] is the encoding of the instruments `events` and `exceptions`.
//! - [`heap`] reads the snapshots of the instrument `heap`.
//! - `gains` is what trees gained from one boundary between parts to the next.
//! - `records` declares the records of both forms, once; `codec` turns their fields into bytes.
//! - [`refusal`] is what an agent leaves that could not do its work.
//!
//! The feature `reading`, on by default, has the modules `reader`, `packed` and `pack`. What only
//! writes recordings does without: it is loaded into programs of others, and builds without a
//! compressor.
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
pub use reader::open;

/// README, compiled for its example.
#[cfg(all(doctest, feature = "reading"))]
#[doc = include_str!("../README.md")]
struct Readme;
