//! The view `pending`: async operations that wait, merged by who awaits whom.
//!
//! An async method that waits is an object, the box of its state machine, and what it waits for
//! refers to it as its continuation. So the objects say who awaits whom: see `chains.rs` for the
//! walk, `roles.rs` for the types and fields, `blocked.rs` for threads that block on them.

mod blocked;
mod chains;
mod names;
mod roles;

use std::cmp::Reverse;
use std::sync::Arc;

use clrscope_recording::model::{FunctionKind, Process, Thread};

use super::await_place::AwaitPlace;
use super::heaps::Heaps;
use super::snapshots::{HeapQuery, SnapshotRef};
use crate::query::{QueryProblem, Sort};
use crate::thread_stacks::ThreadStack;
use crate::waits::WaitReason;
use chains::Chains;

/// Time that a thread stands still before a snapshot, at least, to be shown with what the snapshot
/// says of it: samples lie apart.
const LEAST_STILL_NS: u64 = 50_000_000;

/// A method of a logical stack.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PendingFrame {
    /// `Namespace.Type::Method`, or what stands for a thread or for several frames.
    pub name: Arc<str>,
    /// Kind of function.
    pub kind: FunctionKind,
    /// The await that the method waits at, where that is known.
    pub place: Option<AwaitPlace>,
}

impl PendingFrame {
    /// What stands for something that is no method.
    fn runtime(name: String) -> Self {
        Self { name: name.into(), kind: FunctionKind::Runtime, place: None }
    }
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
    /// Threads that block on these operations, by the system's numbers in ascending order. Threads
    /// for which that is not certain are left out.
    pub blocked_threads: Vec<u32>,
}

/// A thread that blocks on an async method.
#[derive(Debug, Clone)]
pub struct BlockedThread<'a> {
    /// The process.
    pub process: &'a Process,
    /// The thread.
    pub thread: &'a Thread,
    /// Nanoseconds from the start of the process's recording to the snapshot that says so.
    pub time_ns: u64,
    /// Nanoseconds that the program stood still for the snapshot.
    pub pause_ns: u64,
    /// What the innermost method waits for, in words; `None` where it waits for several things.
    pub waits_for: Option<Arc<str>>,
    /// Who awaits whom, the method that the thread blocks on last. Where that one awaits several
    /// things at once, those methods are left out that wait for one of them only.
    pub frames: Vec<PendingFrame>,
}

/// The view `pending`.
#[derive(Debug)]
pub struct PendingOperations<'a> {
    /// Rows: most operations first.
    pub rows: Vec<PendingOperation<'a>>,
    /// Threads that block on async methods, also those of rows that the limit left out.
    pub blocked: Vec<BlockedThread<'a>>,
    /// Rows that the limit left out.
    pub left_out: usize,
    /// Operations that could not be followed within the limits of this view.
    pub not_followed: u64,
    /// The snapshots.
    pub snapshots: Vec<SnapshotRef<'a>>,
}

impl<'a> PendingOperations<'a> {
    /// Returns what a thread blocks on, where it stood still with the stack that was seen last from
    /// well before the snapshot to its end.
    #[must_use]
    pub fn blocked_on(&self, thread: &ThreadStack<'_>) -> Option<&BlockedThread<'a>> {
        let is_of = |blocked: &&BlockedThread<'_>| {
            blocked.process.pid == thread.process.pid && blocked.thread.id == thread.thread.id
        };
        let found = self.blocked.iter().find(is_of)?;
        let until = found.time_ns.saturating_add(found.pause_ns);
        let stood =
            thread.still_ns.start.saturating_add(LEAST_STILL_NS) <= found.time_ns && until <= thread.still_ns.end;
        (thread.waits_for == Some(WaitReason::TASK.what) && stood).then_some(found)
    }
}

/// Returns the operations that wait, merged by their logical stacks.
///
/// # Errors
/// When no process or snapshot is meant.
pub fn pending_operations<'a>(heaps: &Heaps<'a>, query: &HeapQuery) -> Result<PendingOperations<'a>, QueryProblem> {
    let (mut rows, mut blocked, mut snapshots, mut not_followed) = (Vec::new(), Vec::new(), Vec::new(), 0);
    for (process, snapshot) in query.select(heaps.recording, "pending")? {
        let Some(heap) = heaps.open(process, snapshot) else { continue };
        snapshots.push(SnapshotRef::new(&heap.loaded));
        let found = Chains::new(&heap.loaded).follow();
        not_followed += found.not_followed;
        rows.extend(found.sums.into_iter().map(|(path, sum)| PendingOperation {
            process,
            count: sum.count,
            waits_for: path.waits_for,
            frames: path.frames,
            blocked_threads: sum.threads.into_iter().collect(),
        }));
        let on_methods = found.blocked.into_values().filter(|(_, awaited)| !awaited.frames.is_empty());
        blocked.extend(on_methods.map(|(thread, awaited)| BlockedThread {
            process,
            thread,
            time_ns: snapshot.time_ns,
            pause_ns: snapshot.pause_ns,
            waits_for: awaited.waits_for,
            frames: awaited.frames,
        }));
    }
    let key = |row: &PendingOperation<'_>| (row.process.pid, row.waits_for.clone(), row.frames.clone());
    match query.query.sort {
        Some(Sort::Name) => rows.sort_by_cached_key(key),
        _ => rows.sort_by_cached_key(|row| (Reverse(row.count), key(row))),
    }
    let left_out = query.query.cut(&mut rows);
    Ok(PendingOperations { rows, blocked, left_out, not_followed, snapshots })
}
