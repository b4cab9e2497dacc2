//! Views of snapshots of the heap.

mod changes;
mod dominators;
mod roots;
mod snapshots;
mod summary;
mod types;
mod waste;

use clrscope_analysis::HeapQuery;

pub(super) use changes::VIEW as HEAP_DIFF;
pub use changes::compare_heaps;
pub(super) use dominators::VIEW as DOMINATORS;
pub(super) use roots::VIEW as ROOTS;
pub(super) use summary::{OfSummary, of_summary};
pub(super) use types::VIEW as HEAP;
pub(super) use waste::VIEW as WASTE;

use crate::request::{Flag, Request};

/// Options that rows of objects don't have.
const REFUSED: (&[Flag], &str) = (
    &[Flag::Thread, Flag::PerThread, Flag::Function, Flag::Part],
    "its rows are objects of a whole process at one moment",
);
/// Parts of the time, which a snapshot has none of.
const TIMES: (&[Flag], &str) = (&[Flag::Since, Flag::Until], "a snapshot is of one moment; choose one with --snapshot");

/// A second snapshot, where rows are of one.
const ALONE: (&[Flag], &str) = (&[Flag::Against], "it shows one snapshot; the view heap-diff compares two");

/// The part of a request that is about snapshots.
fn heap_query(request: &Request) -> HeapQuery {
    HeapQuery { query: request.query.clone(), snapshot: request.snapshot }
}
