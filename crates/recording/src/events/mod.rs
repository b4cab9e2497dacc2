//! The bytes of the instruments `events` and `exceptions`: what is in their chunks.
//!
//! A chunk is a row of records. A record is the number of bytes that follow, the [`Kind`] (one
//! byte), the time, then fields up to its end. Numbers are varints (seven bits to a byte, lowest
//! first, top bit set when more follow). The time is nanoseconds since the record before it in the
//! chunk; the first record's is nanoseconds since the start of the process's recording. A field is
//! a [`Tag`] (one byte) and a value, whose form the tag's number says:
//!
//! | tag | value |
//! |---|---|
//! | below 64 | a number |
//! | 64 to 111 | a text: number of bytes, UTF-8 |
//! | 112 to 127 | number of bytes, and so many bytes |
//! | from 128 | what the runtime identifies: its identifier, then our number for it |
//!
//! The runtime uses identifiers again, our numbers are never used twice; 0 where there is none. A
//! function's number is its index in [`Process::functions`](crate::model::Process::functions); the
//! names of everything else are records of the kind [`Kind::NAME`], anywhere in the same arena,
//! with the entity and a text. What has no such record never had a name.
//!
//! Readers pass over kinds and tags they don't know.

mod cut;
mod encode;
mod field;
mod kinds;
mod record;
mod short;

pub use clrscope_contract::instruments::events::Group;
pub use cut::records_since;
pub use encode::Encoder;
pub use field::{EntityRef, Field, Tag, Value};
pub use kinds::{Kind, Phase};
pub use record::{OwnedRecord, Record, RecordPlace, Records};
pub use short::{ShortFields, ShortRecord};
