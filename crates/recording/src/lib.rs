//! The clrscope recording: what is written inside the profiled process and read outside it.
//!
//! - [`layout`] is the specification of the segments, byte by byte.
//! - [`writer`] runs inside the profiled process.
//! - [`reader`] turns what was written into the [`model`], whatever state it is in.
//! - [`packed`] is one file instead of a directory, with its specification; [`pack`] makes it.
//! - [`command`] reads command lines as the `dotnet` host does.
//! - [`events`] is the encoding of the instruments `events` and `exceptions`.
//! - [`refusal`] is what an agent leaves that could not do its work.
//! - [`request`] is the grammar in which a user says what is to be recorded.
//! - [`trust`] says whether others could change a file that both sides rely on.

pub mod command;
pub mod events;
pub mod layout;
pub mod model;
pub mod pack;
pub mod packed;
pub mod payload;
pub mod reader;
pub mod refusal;
pub mod request;
#[cfg(feature = "testing")]
pub mod testing;
pub mod trust;
mod varint;
pub mod writer;

pub use reader::{OpenError, open};

/// So that the README's example is compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
