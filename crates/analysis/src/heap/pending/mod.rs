//! The view `pending`: waiting async operations, merged by their chains of awaiters.
//!
//! A waiting async method is an object, the box of its state machine. The awaited operation refers
//! to the box as its continuation. So the objects show which method awaits which. See `chains.rs`
//! for the walk, `roles.rs` for the types and fields, `blocked.rs` for threads that block on
//! operations.

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

/// Time that a thread must stand still before a snapshot, so that the snapshot can explain its
/// wait. Samples are some time apart.
const LEAST_STILL_NS: u64 = 50_000_000;

/// A method of a logical stack.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PendingFrame {
    /// `Namespace.Type::Method`, or a label for a thread or for several frames.
    pub name: Arc<str>,
    /// Kind of the function.
    pub kind: FunctionKind,
    /// Location of the await at which the method waits; `None` if unknown.
    pub place: Option<AwaitPlace>,
}

impl PendingFrame {
    /// A label for something that is not a method.
    fn runtime(name: String) -> Self {
        Self { name: name.into(), kind: FunctionKind::Runtime, place: None }
    }
}

/// Operations with the same logical stack that wait for the same kind of operation.
#[derive(Debug, Clone)]
pub struct PendingOperation<'a> {
    /// The process.
    pub process: &'a Process,
    /// Number of operations.
    pub count: u64,
    /// The awaited operation as text, such as `Task.Delay`.
    pub waits_for: Arc<str>,
    /// The frames of the logical stack: the waiting method first, then its awaiters from the inside
    /// out. If a thread blocks on the last method, that thread is the last frame.
    pub frames: Vec<PendingFrame>,
    /// Operating system ids of threads that block on these operations, in ascending order.
    /// Uncertain cases are left out.
    pub blocked_threads: Vec<u32>,
}

/// A thread that blocks on an async method.
#[derive(Debug, Clone)]
pub struct BlockedThread<'a> {
    /// The process.
    pub process: &'a Process,
    /// The thread.
    pub thread: &'a Thread,
    /// Time of the snapshot that shows that the thread blocks, in nanoseconds since the start of
    /// the process's recording.
    pub time_ns: u64,
    /// Time that the program was paused for the snapshot, in nanoseconds.
    pub pause_ns: u64,
    /// The operation that the innermost method waits for, as text; `None` if it waits for several
    /// operations.
    pub waits_for: Option<Arc<str>>,
    /// The chain of awaiters, ending with the method on which the thread blocks. If a method awaits
    /// several operations at once, methods of only one of these are left out.
    pub frames: Vec<PendingFrame>,
}

/// The view `pending`.
#[derive(Debug)]
pub struct PendingOperations<'a> {
    /// Rows, the most operations first.
    pub rows: Vec<PendingOperation<'a>>,
    /// Threads that block on async methods, including those of rows that the limit left out.
    pub blocked: Vec<BlockedThread<'a>>,
    /// Number of rows that the limit left out.
    pub left_out: usize,
    /// Number of operations that could not be followed within this view's limits.
    pub not_followed: u64,
    /// The snapshots.
    pub snapshots: Vec<SnapshotRef<'a>>,
}

impl<'a> PendingOperations<'a> {
    /// Returns the operation that a thread blocks on. `None` unless the thread stood still with its
    /// last stack, from well before the snapshot until the snapshot's end.
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

/// Returns the waiting operations, merged by their logical stacks.
///
/// # Errors
/// When the query selects no process or snapshot.
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
