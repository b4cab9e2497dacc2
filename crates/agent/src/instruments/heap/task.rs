//! The task that takes snapshots: at given times, at the end, and by command.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clrscope_agent_base::helper::Task;
use clrscope_agent_base::os::process::resident;
use clrscope_agent_base::runtime_thread::RuntimeThread;
use clrscope_contract::instruments::spec::Moment;
use clrscope_recording::model::SnapshotReason;
use clrscope_recording::writer::{Answer, Command};

use super::options::HeapOptions;
use super::taker::Taker;

/// Time between two readings of the process's resident memory.
const ASK_EVERY_NS: u64 = 100_000_000;

/// The instrument's work on the helper thread: begins snapshots.
pub(super) struct HeapTask {
    taker: &'static Taker,
    /// Times of snapshots after the start, in nanoseconds.
    after: VecDeque<u64>,
    /// Resident bytes at which a snapshot is wanted.
    sizes: VecDeque<u64>,
    /// Time of the last reading of the resident memory, in nanoseconds.
    asked_ns: u64,
    at_end: bool,
    has_ended: Arc<AtomicBool>,
    /// The snapshot that a command asked for.
    commanded: Option<RuntimeThread>,
    /// The snapshot at the end.
    last: Option<RuntimeThread>,
}

impl HeapTask {
    pub(super) fn new(taker: &'static Taker, options: &HeapOptions, has_ended: &Arc<AtomicBool>) -> Self {
        let after = options.after.iter().map(Duration::as_nanos).map(|ns| ns as u64).collect();
        let has_ended = Arc::clone(has_ended);
        let sizes = options.sizes.iter().copied().collect();
        Self { taker, after, sizes, asked_ns: 0, at_end: options.at_end, has_ended, commanded: None, last: None }
    }

    /// Begins a snapshot on a new thread. The runtime forces collections only for threads that have
    /// run no managed code, and treats a thread that has requested a collection as a managed one.
    fn begin(&self, reason: SnapshotReason, name: &str) -> RuntimeThread {
        let (taker, name) = (self.taker, name.to_owned());
        RuntimeThread::begin(&taker.info, "clrscope-heap", move || match taker.take_snapshot(reason, &name) {
            true => Answer::Done,
            false => Answer::Failed,
        })
    }
}

impl Task for HeapTask {
    fn slow_tick(&mut self, now_ns: u64) {
        let since = now_ns.saturating_sub(self.taker.start_ns);
        if self.after.front().is_some_and(|after| *after <= since) {
            self.after.pop_front();
            self.begin(SnapshotReason::Time, "");
        }
        let asks = !self.sizes.is_empty() && now_ns.saturating_sub(self.asked_ns) >= ASK_EVERY_NS;
        if asks {
            self.asked_ns = now_ns;
            let bytes = resident().bytes;
            // One snapshot stands for all sizes that are exceeded by now, and is named after the
            // greatest.
            let passed = self.sizes.iter().take_while(|size| **size <= bytes).count();
            let greatest = self.sizes.drain(..passed).next_back();
            if let Some(greatest) = greatest {
                self.begin(SnapshotReason::Size, &Moment::Resident(greatest).to_string());
            }
        }
    }

    fn write_out(&mut self) {
        // Failures are tried again at the next round.
        let _ = self.taker.store.segment().write_out();
    }

    fn begins(&mut self, command: &Command) -> bool {
        let Command::Snapshot(name) = command else { return false };
        self.commanded = Some(self.begin(SnapshotReason::Command, name));
        true
    }

    fn answer(&self) -> Option<Answer> {
        self.commanded.as_ref().map_or(Some(Answer::Failed), RuntimeThread::answer)
    }

    fn finish(&mut self) -> bool {
        if self.at_end && !self.has_ended.swap(true, Ordering::AcqRel) {
            self.last = Some(self.begin(SnapshotReason::End, ""));
        }
        self.last.iter().chain(&self.commanded).all(|one| one.answer().is_some())
    }
}
