//! The view `locks`: contended locks, with their waiting times and with the paths of the waiting
//! and the holding threads. The view also shows other operations that threads block on.
//!
//! The runtime reports that a thread begins to wait when spinning was not successful, and later
//! that the thread has acquired the lock. It reports the same end for a thread that gives up, as
//! `Monitor.TryEnter` does. Uncontended locks are not reported.
//!
//! Waits for objects without a holder are in [`blocking`] if the runtime raises events for them,
//! and in [`sampled`] if they were sampled by the clock.
//!
//! The events name the thread that holds a lock. If this thread was the last one to wait for the
//! lock and acquire it, the path on which it waited is the holder's path. The path of a holder that
//! did not wait is not known.

mod blocking;
mod rows;
mod sampled;
mod stream;
mod timeline;
mod wait;

use clrscope_contract::request::Glob;
use clrscope_recording::layout::instrument;
use clrscope_recording::model::{Process, Recording};

use crate::events::in_turns;
use crate::exceptions::{CallStack, Frame};
use crate::query::{Query, QueryProblem, Sort};
use crate::select::{self, SelectedProcess};
use blocking::BlockingWaits;
use rows::Grouping;
use stream::WaitStream;
use timeline::Timeline;

/// Selection of locks.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LockQuery {
    /// The filters that all views share. `functions` and `modules` select waits with a matching
    /// function on the stack.
    pub query: Query,
    /// Only locks on objects whose types match one of these patterns; empty means all.
    pub types: Vec<Glob>,
}

/// Kind of a lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LockKind {
    /// The monitor of an object: `lock`, `Monitor.Enter`, `[MethodImpl(Synchronized)]`.
    Monitor,
    /// A `System.Threading.Lock`.
    Lock,
    /// A `ReaderWriterLockSlim`.
    ReaderWriterLockSlim,
    /// A `SemaphoreSlim`.
    SemaphoreSlim,
    /// A `ManualResetEventSlim`.
    ManualResetEventSlim,
    /// A wait in `Monitor.Wait`, for a pulse.
    MonitorWait,
    /// A `WaitHandle`: an event, a mutex, a semaphore of the operating system.
    WaitHandle,
    /// A task that a thread blocks on.
    Task,
    /// The end of a thread: `Thread.Join`.
    Thread,
    /// Unknown: the stack was not captured, or does not show the kind.
    Unknown,
}

impl LockKind {
    /// Name of the kind: the C# name of the object's class.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Monitor => "Monitor",
            Self::Lock => "Lock",
            Self::ReaderWriterLockSlim => "ReaderWriterLockSlim",
            Self::SemaphoreSlim => "SemaphoreSlim",
            Self::ManualResetEventSlim => "ManualResetEventSlim",
            Self::MonitorWait => "Monitor.Wait",
            Self::WaitHandle => "WaitHandle",
            Self::Task => "Task",
            Self::Thread => "Thread",
            Self::Unknown => "unknown",
        }
    }

    /// Class of the object that a thread waits for, named as methods of the class appear on stacks.
    const fn class(self) -> &'static str {
        match self {
            Self::Monitor | Self::MonitorWait => "System.Threading.Monitor",
            Self::Lock => "System.Threading.Lock",
            Self::ReaderWriterLockSlim => "System.Threading.ReaderWriterLockSlim",
            Self::SemaphoreSlim => "System.Threading.SemaphoreSlim",
            Self::ManualResetEventSlim => "System.Threading.ManualResetEventSlim",
            Self::WaitHandle => "System.Threading.WaitHandle",
            Self::Task => "System.Threading.Tasks.Task",
            Self::Thread => "System.Threading.Thread",
            Self::Unknown => "(unknown)",
        }
    }

    /// Whether the object is held by a thread while others wait for it, like a lock.
    #[must_use]
    pub const fn is_held(self) -> bool {
        matches!(self, Self::Monitor | Self::Lock)
    }
}

/// A path of a thread, with the waits on that path.
#[derive(Debug, Clone)]
pub struct LockPath<'a> {
    /// Number of waits.
    pub count: u64,
    /// Total time of these waits, in nanoseconds.
    pub ns: u64,
    kind: LockKind,
    stack: CallStack<'a>,
}

/// The method that acquires a monitor. It represents the runtime's helper, which leaves no frame on
/// the stack.
const MONITOR_ENTER: &str = "System.Threading.Monitor::Enter";

/// Type of the methods that raise the event about a `System.Threading.Lock`. The program does not
/// call them.
const RAISES_EVENTS: &str = "System.Diagnostics.Tracing.NativeRuntimeEventSource::";

impl LockPath<'_> {
    /// The frames, innermost first, beginning with the waiting method.
    pub fn frames(&self) -> impl Iterator<Item = Frame<'_>> {
        let frames = self.stack.iter().skip_while(|frame| frame.function.name().starts_with(RAISES_EVENTS));
        let mut enters = (self.kind == LockKind::Monitor).then_some(MONITOR_ENTER);
        frames.map(move |mut frame| {
            // Only for the innermost frame.
            frame.place.callee = frame.place.callee.or(enters.take());
            frame
        })
    }

    /// The frame of the innermost own function; `None` if there is none.
    #[must_use]
    pub fn own_frame(&self) -> Option<Frame<'_>> {
        self.frames().find(Frame::is_own)
    }
}

/// Locks of one kind and one object type, for which threads waited at one location.
#[derive(Debug, Clone)]
pub struct LockRow<'a> {
    /// The process.
    pub process: &'a Process,
    /// Kind of the locks.
    pub kind: LockKind,
    /// Type of the objects in C# syntax.
    pub type_name: &'a str,
    /// The assembly that declares the type; empty if not known.
    pub module: &'a str,
    /// Number of locks; 0 if locks are not distinguished.
    pub locks: u64,
    /// Whether there were too many locks to distinguish all of them, so that `locks` is too low.
    pub has_more_locks: bool,
    /// Number of acquisitions that had to wait. For sampled waits it is a lower bound.
    pub count: u64,
    /// Whether each of these waits was recorded; if not, `count` may be too low.
    pub is_exact: bool,
    /// Whether the waits were sampled by the clock, because the runtime raises no events for them.
    pub is_sampled: bool,
    /// Total time that threads waited, in nanoseconds.
    pub total_ns: u64,
    /// Bounds that hold the true total time in 95 of 100 cases. Both are equal to the total time if
    /// it was measured.
    pub bounds_ns: (u64, u64),
    /// The longest wait, in nanoseconds; 0 for sampled waits, because it is not known.
    pub max_ns: u64,
    /// Maximum number of threads that waited for one lock at the same time; 0 for sampled waits.
    pub max_waiters: u64,
    /// Number of waits pending at the end of the recording. Totals include their time until then.
    pub pending: u64,
    /// Paths of the waiting threads, the path with the longest time first.
    pub waiters: Vec<LockPath<'a>>,
    /// Number of waits whose stack was not captured.
    pub without_stack: u64,
    /// Paths of the threads that held the lock when others began to wait, the path with the longest
    /// waits first.
    pub holders: Vec<LockPath<'a>>,
    /// Number of waits whose holder's path is not known.
    pub without_holder: u64,
}

/// Contended locks of the processes that a query selects, the longest time first. Also returns the
/// number of rows that the limit left out.
///
/// # Errors
/// When the query selects no process or thread, or `locks` was not recorded.
pub fn locks<'a>(recording: &'a Recording, query: &LockQuery) -> Result<(Vec<LockRow<'a>>, usize), QueryProblem> {
    query.query.without_metric("locks")?;
    let (mut rows, mut is_recorded) = (Vec::new(), false);
    for SelectedProcess { process, .. } in select::threads(recording, &query.query)? {
        for arena in process.arenas(instrument::LOCKS) {
            is_recorded = true;
            let mut streams: Vec<WaitStream<'_>> = arena
                .by_thread()
                .into_iter()
                .map(|(thread, chunks)| WaitStream::new(process, thread, chunks))
                .collect();
            let mut timeline =
                Timeline::new(process, Grouping::new(process, query), BlockingWaits::new(process, query));
            in_turns(&mut streams, |stream| {
                stream.step(&mut timeline);
                true
            });
            let (held, blocking) = timeline.finish();
            rows.extend(held.finish());
            rows.extend(if blocking.is_empty() { sampled::rows(process, query) } else { blocking.finish() });
        }
    }
    if !is_recorded {
        return Err(QueryProblem::NotRecorded { view: "locks", instrument: instrument::LOCKS });
    }
    order(&mut rows, query.query.sort);
    let left_out = query.query.cut(&mut rows);
    Ok((rows, left_out))
}

/// The sort is stable: equal rows stay in the order of process, kind, type and place.
fn order(rows: &mut [LockRow<'_>], sort: Option<Sort>) {
    match sort {
        Some(Sort::Name) => rows.sort_by_key(|row| row.type_name),
        Some(Sort::Module) => rows.sort_by_key(|row| row.module),
        Some(Sort::Calls) => rows.sort_by_key(|row| std::cmp::Reverse(row.count)),
        _ => rows.sort_by_key(|row| std::cmp::Reverse(row.total_ns)),
    }
}
