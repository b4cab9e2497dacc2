//! The encoding of the chunks of the instruments `events` and `exceptions`.
//!
//! A chunk is a sequence of records. A record consists of the number of bytes that follow, the
//! [`Kind`] (one byte), the time, and fields up to its end. Numbers are varints (seven bits per
//! byte, lowest first, top bit set if more follow). The time is in nanoseconds since the previous
//! record of the chunk; for the first record it is since the start of the process's recording. A
//! field is a [`Tag`] (one byte) and a value, whose form depends on the tag's number:
//!
//! | tag | value |
//! |---|---|
//! | below 64 | a number |
//! | 64 to 111 | a text: number of bytes, UTF-8 |
//! | 112 to 127 | number of bytes, then the bytes |
//! | from 128 | an entity of the runtime: its identifier, then clrscope's number for it |
//!
//! The runtime reuses identifiers; clrscope's numbers are never reused, and 0 means that there is
//! none. A function's number is its index in
//! [`Process::functions`](crate::model::Process::functions). The names of all other entities are in
//! records of the kind [`Kind::NAME`], anywhere in the same arena, with the entity and a text. An
//! entity without such a record never had a name.
//!
//! Readers ignore unknown kinds and tags.

mod cut;
mod encode;
mod field;
mod kinds;
mod record;
mod short;

pub use clrscope_contract::instruments::events::Group;
pub use cut::records_within;
pub use encode::Encoder;
pub use field::{EntityRef, Field, Tag, Value};
pub use kinds::{Kind, Phase};
pub use record::{OwnedRecord, Record, RecordPlace, Records};
pub use short::{ShortFields, ShortRecord};
