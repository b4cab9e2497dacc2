//! The clrscope recording: what is written inside the profiled process and read outside it.
//!
//! - [`layout`] is the specification of the segments, byte by byte.
//! - [`writer`] runs inside the profiled process.
//! - [`reader`] turns what was written into the [`model`], whatever state it is in.
//! - [`packed`] is one file instead of a directory, with its specification; [`pack`] makes it.
//! - [`events`] is the encoding of the instruments `events` and `exceptions`.
//! - [`upgrade`] reads what earlier versions recorded otherwise.
//! - [`refusal`] is what an agent leaves that could not do its work.

pub mod events;
pub mod layout;
pub mod model;
pub mod pack;
pub mod packed;
pub mod payload;
pub mod reader;
pub mod refusal;
#[cfg(feature = "testing")]
pub mod testing;
pub mod upgrade;
mod varint;
pub mod writer;

pub use reader::{OpenError, open};

/// So that the README's example is compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
