//! Views of snapshots of the heap.

mod changes;
mod dominators;
mod fields;
mod frame;
mod pending;
mod roots;
mod snapshots;
mod summary;
mod types;
mod waste;

pub(crate) use changes::{VIEW as HEAP_DIFF, heap_changes_of, heap_query_of};
pub(super) use dominators::VIEW as DOMINATORS;
pub(super) use pending::{VIEW as PENDING, show_beside as show_pending_beside};
pub(super) use roots::VIEW as ROOTS;
pub(super) use summary::{OfSummary, of_summary};
pub(super) use types::VIEW as HEAP;
pub(super) use waste::VIEW as WASTE;
