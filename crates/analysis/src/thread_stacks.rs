//! The last known stack of each thread. It shows what the thread does and what it waits for.

use std::collections::BTreeMap;
use std::ops::Range;

use clrscope_recording::layout::instrument;
use clrscope_recording::model::{Process, Recording, Sample, SnapshotState, Thread, ThreadState};

use crate::exceptions::CallStack;
use crate::query::{Query, QueryProblem};
use crate::samples::each_sample;
use crate::select::processes;
use crate::waits::wait_reason;

/// A thread during a heap snapshot, or at its last sample.
#[derive(Debug, Clone)]
pub struct ThreadStack<'a> {
    /// The process.
    pub process: &'a Process,
    /// The thread.
    pub thread: &'a Thread,
    /// State of the thread.
    pub state: ThreadState,
    /// What the thread waits for, in words; `None` if it does not wait, or the reason is unknown.
    pub waits_for: Option<&'static str>,
    /// The stack.
    pub stack: CallStack<'a>,
    /// Time range of the consecutive samples with this stack, in nanoseconds since the start of the
    /// process's recording.
    pub still_ns: Range<u64>,
}

/// Returns each thread with a stack. If the thread's stack did not change during the last heap
/// snapshot, it is that stack; otherwise it is the stack of the thread's last sample of `wall`.
/// Threads that wait for something come first, idle threads last.
///
/// # Errors
/// When the query matches no process, or `wall` was not recorded.
pub fn thread_stacks<'a>(recording: &'a Recording, query: &Query) -> Result<Vec<ThreadStack<'a>>, QueryProblem> {
    let found = processes(recording, query)?;
    let is_recorded = |process: &&Process| process.arenas(instrument::WALL).next().is_some();
    if !found.iter().any(is_recorded) {
        return Err(QueryProblem::NotRecorded { view: "stacks", instrument: instrument::WALL });
    }
    let mut all: Vec<ThreadStack<'a>> = found.into_iter().flat_map(of_process).collect();
    let rank = |state: ThreadState| match state {
        ThreadState::Lock => 0,
        ThreadState::Waiting => 1,
        ThreadState::Running | ThreadState::Ready | ThreadState::Suspended => 2,
        ThreadState::Io => 3,
        ThreadState::Sleeping => 4,
        ThreadState::Idle => 6,
        _ => 5,
    };
    all.sort_by_key(|one| (one.process.pid, rank(one.state), one.stack.is_empty(), one.thread.id));
    Ok(all)
}

/// Maximum gap between two samples for which the thread is assumed to have kept its stack.
const BETWEEN_NS: u64 = 1_000_000;

fn end(sample: &Sample) -> u64 {
    sample.time_ns.saturating_add(sample.weight_ns)
}

/// Consecutive samples of a thread with the same stack and without a gap.
struct Stand {
    /// The last of them.
    sample: Sample,
    since_ns: u64,
}

impl Stand {
    fn new(sample: &Sample) -> Self {
        Self { sample: *sample, since_ns: sample.time_ns }
    }

    /// Adds a sample of the same thread. Does nothing if the stack has already been the same during
    /// all of `snapshot`: such a thread is shown with its stack during the snapshot.
    fn add(&mut self, next: &Sample, snapshot: Option<&Range<u64>>) {
        let is_same = next.stack == self.sample.stack;
        if end(next) < end(&self.sample) {
            // The sample came late: nothing is known of the time before it.
            self.since_ns = if is_same { self.since_ns } else { self.since_ns.max(end(next)) };
            return;
        }
        if !is_same || end(&self.sample).saturating_add(BETWEEN_NS) < next.time_ns {
            if snapshot.is_some_and(|snapshot| self.lasted_for(snapshot)) {
                return;
            }
            self.since_ns = next.time_ns;
        }
        self.sample = *next;
    }

    fn lasted_for(&self, time_ns: &Range<u64>) -> bool {
        self.since_ns <= time_ns.start && time_ns.end <= end(&self.sample)
    }
}

fn of_process(process: &Process) -> Vec<ThreadStack<'_>> {
    let mut snapshots = process.snapshots.iter().filter(|snapshot| snapshot.state == SnapshotState::Complete);
    let snapshot = snapshots.next_back().map(|last| last.time_ns..last.time_ns.saturating_add(last.pause_ns));
    let mut all: BTreeMap<u32, Stand> = BTreeMap::new();
    each_sample(process, instrument::WALL, |sample| {
        let stand = all.entry(sample.thread);
        stand.and_modify(|stand| stand.add(sample, snapshot.as_ref())).or_insert_with(|| Stand::new(sample));
    });
    let threads = process.threads.iter().filter_map(|thread| Some((thread, all.get(&thread.id)?)));
    threads
        .map(|(thread, Stand { sample, since_ns })| {
            let stack = CallStack::new(process, &process.stacks, sample.stack);
            let waits_for = wait_reason(sample.state, stack.functions()).map(|reason| reason.what);
            let still_ns = *since_ns..end(sample);
            ThreadStack { process, thread, state: sample.state, waits_for, stack, still_ns }
        })
        .collect()
}
