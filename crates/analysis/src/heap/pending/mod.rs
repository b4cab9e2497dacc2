//! The view `pending`: async operations that wait, merged by who awaits whom.
//!
//! An async method that waits is an object, the box of its state machine, and what it waits for
//! refers to it as its continuation. So the objects say who awaits whom: see `chains.rs` for the
//! walk, `roles.rs` for the types and fields.

mod chains;
mod names;
mod roles;

use std::cmp::Reverse;
use std::sync::Arc;

use clrscope_recording::model::{FunctionKind, Process};

use super::heaps::Heaps;
use super::snapshots::{HeapQuery, SnapshotRef};
use crate::query::{QueryProblem, Sort};
use chains::Chains;

/// A method of a logical stack.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PendingFrame {
    /// `Namespace.Type::Method`, or what stands for a thread or for several frames.
    pub name: Arc<str>,
    /// Kind of function.
    pub kind: FunctionKind,
}

/// Operations that wait for the same at the same place.
#[derive(Debug, Clone)]
pub struct PendingOperation<'a> {
    /// The process.
    pub process: &'a Process,
    /// Number of operations.
    pub count: u64,
    /// What they wait for, in words: `Task.Delay`.
    pub waits_for: Arc<str>,
    /// The method that waits, and who awaits whom from there on; a thread that blocks on the last
    /// stands behind it.
    pub frames: Vec<PendingFrame>,
}

/// The view `pending`.
#[derive(Debug)]
pub struct PendingOperations<'a> {
    /// Rows: most operations first.
    pub rows: Vec<PendingOperation<'a>>,
    /// Rows that the limit left out.
    pub left_out: usize,
    /// Operations that could not be followed within the limits of this view.
    pub not_followed: u64,
    /// The snapshots.
    pub snapshots: Vec<SnapshotRef<'a>>,
}

/// Returns the operations that wait, merged by their logical stacks.
///
/// # Errors
/// When no process or snapshot is meant.
pub fn pending_operations<'a>(heaps: &Heaps<'a>, query: &HeapQuery) -> Result<PendingOperations<'a>, QueryProblem> {
    let (mut rows, mut snapshots, mut not_followed) = (Vec::new(), Vec::new(), 0);
    for (process, snapshot) in query.select(heaps.recording, "pending")? {
        let Some(heap) = heaps.open(process, snapshot) else { continue };
        snapshots.push(SnapshotRef::new(&heap.loaded));
        let found = Chains::new(&heap.loaded).follow();
        not_followed += found.not_followed;
        rows.extend(found.sums.into_iter().map(|(path, count)| PendingOperation {
            process,
            count,
            waits_for: path.waits_for,
            frames: path.frames,
        }));
    }
    let key = |row: &PendingOperation<'_>| (row.process.pid, row.waits_for.clone(), row.frames.clone());
    match query.query.sort {
        Some(Sort::Name) => rows.sort_by_cached_key(key),
        _ => rows.sort_by_cached_key(|row| (Reverse(row.count), key(row))),
    }
    let left_out = query.query.cut(&mut rows);
    Ok(PendingOperations { rows, left_out, not_followed, snapshots })
}
