//! Views of snapshots of the heap.

mod changes;
mod dominators;
mod frame;
mod roots;
mod snapshots;
mod summary;
mod types;
mod waste;

pub(super) use changes::VIEW as HEAP_DIFF;
pub use changes::compare_heaps;
pub(super) use dominators::VIEW as DOMINATORS;
pub(super) use roots::VIEW as ROOTS;
pub(super) use summary::{OfSummary, of_summary};
pub(super) use types::VIEW as HEAP;
pub(super) use waste::VIEW as WASTE;
