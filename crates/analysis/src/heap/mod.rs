//! Snapshots of the heap: what is there, what it retains, and who holds it.
//!
//! - **objects**, **bytes**: objects of a type and their own sizes.
//! - **retained bytes**: what would be free if these objects were not there: their own sizes and
//!   those of all objects that every way from a root comes by them to (that they *dominate*). What
//!   objects of one type retain together counts once, also where one of them is held by another.
//! - **paths**: for each object the shortest path from a root; static fields come before stacks,
//!   and stacks before handles where several are equally short. References are strong ones: a weak
//!   handle holds nothing, and the value of a conditional weak table (a dependent handle) is held
//!   by its key.
//! - What no root leads to is there as well: garbage where nothing was collected before the
//!   snapshot, or held by something that the runtime does not tell. Such objects hold nothing that
//!   a root holds.
//! - Of a snapshot that is **not complete** there is what was written before the program or the
//!   room ended: objects, and roots without the names of static fields. What it retains, and who
//!   holds it, is said of these objects alone.
//!
//! The graph is in compressed rows (`graph.rs`), dominators are computed without recursion
//! (`dominators.rs`). Ten million objects with three references each take 1.05 GB at most, measured
//! by the example `heap_cost`: 105 bytes for an object with its references; and 4 s of CPU time,
//! the making of that heap included.

mod addresses;
mod await_place;
mod bits;
mod classes;
mod comparison;
mod contents;
mod dominators;
mod findings;
mod graph;
mod heaps;
mod holders;
mod load;
mod pending;
mod pieces;
mod preorder;
mod retained;
mod root_paths;
mod rows;
mod shortest;
mod snapshots;
mod source;
mod summary;
mod tree;
mod waste;

pub use await_place::AwaitPlace;
pub use comparison::{GrownPath, HeapChange, HeapChanges, heap_changes};
pub use contents::{HeapContents, heap_contents};
pub use heaps::Heaps;
pub use holders::{HeapPath, HeapPathPlace, HeapPathStep, HeapPaths, heap_paths};
pub use load::{HeapPathRoot, Missing};
pub use pending::{BlockedThread, PendingFrame, PendingOperation, PendingOperations, pending_operations};
pub use rows::{Generation, HeapRow, HeapView, heap};
pub use snapshots::{CutSnapshot, HeapQuery, SnapshotRef, complete_snapshots, cut_snapshots};
pub use summary::{HeapSummary, Retainer, heap_summary};
pub use tree::{DominatorNode, DominatorTree, SmallerNodes, dominator_tree};
pub use waste::{HeapWaste, WasteKind, WasteRow, heap_waste};
