//! Snapshots of the heap: objects, retained bytes, and the paths that hold objects.
//!
//! - **objects**, **bytes**: objects of a type and their own sizes.
//! - **retained bytes**: the bytes that would be free without these objects: their own sizes, and
//!   the sizes of all objects that are reachable from the roots only through them (the objects that
//!   they *dominate*). Bytes that several objects of one type retain count once, also where one of
//!   these objects holds another.
//! - **paths**: for each object the shortest path from a root. Among equally short paths static
//!   fields come before stacks, and stacks before handles. References are strong references: a weak
//!   handle holds nothing, and the value of a conditional weak table (a dependent handle) is held
//!   by its key.
//! - Objects that no root reaches are included: garbage, where no collection ran before the
//!   snapshot, or objects held by something that the runtime does not report. They do not hold any
//!   object that a root holds.
//! - An **incomplete** snapshot has the part that was written before the program ended or the space
//!   ran out: objects, and roots without the names of static fields. Retained bytes and paths refer
//!   to these objects only.
//!
//! The graph is stored as compressed rows (`graph.rs`), and dominators are computed without
//! recursion (`dominators.rs`). Ten million objects with three references each take 1.05 GB at
//! most, measured by the example `heap_cost`: 105 bytes for an object with its references. They
//! take 4 s of CPU time, including the generation of that heap.

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
