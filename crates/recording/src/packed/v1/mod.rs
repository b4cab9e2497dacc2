//! Version 1 of the packed file.
//!
//! # The file
//!
//! Numbers are little endian. The file is: sixteen bytes of start (`MAGIC`, `u32` version, `u32`
//! zero), consecutive sections with the index at the end, and 32 bytes of trailer (`u64` offset of
//! the index section, `u64` its length with head and padding, `u64` checksum of these sixteen
//! bytes, eight bytes `CLRSEND\0`).
//!
//! # Sections
//!
//! A section is a head of 56 bytes, the stored data, and zeros up to a multiple of eight.
//!
//! | offset | type | head |
//! |---|---|---|
//! | 0 | 4 bytes | `SECT` |
//! | 4 | `u16` | kind |
//! | 6 | `u16` | 0: uncompressed, 1: zstd |
//! | 8 | `u32` | number of the process, from 0 |
//! | 12 | `u32` | item: its meaning depends on the kind |
//! | 16 | `u32` | part of the item; the top bit marks the last part of a tree |
//! | 20 | `u32` | records, nodes or entries in it |
//! | 24 | `u64` | bytes stored |
//! | 32 | `u64` | bytes of content, at most eight times the bytes stored |
//! | 40 | `u64` | checksum of the stored bytes |
//! | 48 | `u64` | checksum of the 48 bytes before |
//!
//! Checksums are XXH64 with seed 0. Content that compresses better than eight to one is followed by
//! a zstd skippable frame that pads the section to the required size. This gives a program that
//! opens an untrusted file an upper limit for the memory that it will allocate.
//!
//! | kind | item | content |
//! |---|---|---|
//! | 1 run | | record `Run` |
//! | 2 process | | records `Process`, `Identity`, `EntryAssembly`, `CallsInfo`, `Loss`, `Sampler`, `OwnMemory`, `HeapSnapshot`, `Arena`, `Part`, `MatchedPatterns` |
//! | 3 functions | index of the first | records `Function` |
//! | 4 modules | index of the first | records `Module` |
//! | 5 threads | index of the first | records `Thread` |
//! | 6 remarks | index of the first | records `Remark` |
//! | 7 tree | index of the thread | a part of its tree |
//! | 8 events | index of the arena | the instrument's bytes; before them, never compressed, `u32` thread, `u64` sequence |
//! | 9 problems | index of the first | records `Problem` |
//! | 10 index | | per section: `u64` offset, then its head |
//! | 11 stacks | number of the first | nodes of the stack table, 16 bytes each, as in the directory ([`layout::stack`](crate::layout::stack)) |
//! | 12 native symbols | index of the first | records `NativeSymbol`, by module and offset in ascending order |
//! | 13 plans of coverage | index of the first | records `CoveragePlan` |
//! | 14 tree of a part | index of the part of the recording | a part of the tree with a thread's gains there; before it, never compressed, `u32` index of the thread |
//! | 15 types | index of the first | records `ObjectType` |
//!
//! Kinds 1 to 6, 9, 11, 12, 13 and 15 come before all trees, and trees come before all events; only
//! problems found while packing trees and events come after them. Readers ignore sections and
//! records of an unknown kind. A thread without recorded data has one tree part without nodes.
//!
//! # Records
//!
//! `u32` length of the payload (at least 1), `u16` kind, `u16` version, payload, zeros up to a
//! multiple of four. The module `records` declares kinds and payloads, for the logs of a directory
//! too; the module `codec` says how fields become bytes. Times are nanoseconds since the start of
//! the run.
//!
//! # Trees
//!
//! Nodes are numbered in preorder and cut into parts of 2^17. A part is a sequence of varints
//! (seven bits per byte, lowest first, top bit set if more follow): the number of its first node;
//! the length of the path from the root to the preceding node; how many nodes of that path are
//! repeated here (all, or none if the path has more than 2^13 nodes); for each repeated node, the
//! difference of its number from its parent's, and its function; then the lengths in bytes of seven
//! columns, then the columns:
//!
//! 1. per node, how many nodes of the path end before it begins (0: the node is a child of the
//!    preceding node);
//! 2. per node, its function;
//! 3. per node, its calls;
//! 4. per node with time, the difference of its number from the previous such node's (for the first
//!    one, from the part's first node);
//! 5. wall nanoseconds of those nodes;
//! 6. CPU nanoseconds of those nodes;
//! 7. per node that was entered by a tail call, differences as in 4.

mod assemble;
mod batch;
mod checksum;
mod index;
mod records;
#[cfg(feature = "testing")]
mod reseal;
mod section;
mod tree;
mod writer;

pub(crate) use assemble::read;
#[cfg(feature = "testing")]
pub use reseal::Claims;
#[cfg(feature = "testing")]
pub(crate) use reseal::reseal;
pub(crate) use writer::{Written, write};

use super::MAGIC;

/// Number of this version of the packed format.
pub const VERSION: u32 = 1;
/// Bytes before the first section.
pub(crate) const START: u64 = 16;
/// Bytes of the trailer.
const TRAILER: u64 = 32;
/// Last eight bytes of the file.
const TRAILER_MAGIC: [u8; 8] = *b"CLRSEND\0";
