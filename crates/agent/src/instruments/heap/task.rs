//! Task that takes snapshots: at times, at the end, and by command.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::Duration;

use clr_profiler::OwnThread;
use clrscope_recording::model::SnapshotReason;

use super::options::HeapOptions;
use super::taker::Taker;
use crate::services::developer_log::{Level, log};
use crate::services::helper::{SnapshotProgress, Task};

/// A snapshot that is under way, on its thread.
#[derive(Clone, Default)]
struct UnderWay(Arc<AtomicU8>);

impl UnderWay {
    const COMPLETE: u8 = 1;
    const FAILED: u8 = 2;

    fn is_over(&self, is_complete: bool) {
        self.0.store(if is_complete { Self::COMPLETE } else { Self::FAILED }, Ordering::Release);
    }

    fn progress(&self) -> SnapshotProgress {
        match self.0.load(Ordering::Acquire) {
            0 => SnapshotProgress::UnderWay,
            Self::COMPLETE => SnapshotProgress::Complete,
            _ => SnapshotProgress::Failed,
        }
    }
}

/// The snapshot is over however its thread ends.
struct OverAtLast(UnderWay);

impl Drop for OverAtLast {
    fn drop(&mut self) {
        if self.0.progress() == SnapshotProgress::UnderWay {
            self.0.is_over(false);
        }
    }
}

/// The instrument's work on the helper thread: begins snapshots.
pub(super) struct HeapTask {
    taker: &'static Taker,
    /// Times after the start, in nanoseconds.
    after: VecDeque<u64>,
    at_end: bool,
    has_ended: Arc<AtomicBool>,
    /// The snapshot that a command asked for.
    commanded: Option<UnderWay>,
    /// The snapshot at the end.
    last: Option<UnderWay>,
}

impl HeapTask {
    pub(super) fn new(taker: &'static Taker, options: &HeapOptions, has_ended: &Arc<AtomicBool>) -> Self {
        let after = options.after.iter().map(Duration::as_nanos).map(|ns| ns as u64).collect();
        let has_ended = Arc::clone(has_ended);
        Self { taker, after, at_end: options.at_end, has_ended, commanded: None, last: None }
    }

    /// Begins a snapshot on a thread of its own: the runtime forces collections only for threads that have run no managed code, and
    /// takes one that has asked for a collection for a managed one.
    fn begin(&self, reason: SnapshotReason, name: &str) -> UnderWay {
        let (taker, under_way, name) = (self.taker, UnderWay::default(), name.to_owned());
        let over = OverAtLast(under_way.clone());
        let started = OwnThread::start(&taker.info, "clrscope-heap", move |_thread| {
            over.0.is_over(taker.take(reason, &name));
        });
        if let Err(error) = started {
            log(Level::Warn, || format!("no thread for a snapshot: {error}"));
        }
        under_way
    }
}

impl Task for HeapTask {
    fn slow_tick(&mut self, now_ns: u64) {
        let since = now_ns.saturating_sub(self.taker.start_ns);
        if self.after.front().is_some_and(|after| *after <= since) {
            self.after.pop_front();
            self.begin(SnapshotReason::Time, "");
        }
    }

    fn write_out(&mut self) {
        // What fails now is tried again at the next round.
        let _ = self.taker.store.segment().write_out();
    }

    fn snapshot(&mut self, name: &str) -> bool {
        self.commanded = Some(self.begin(SnapshotReason::Command, name));
        true
    }

    fn snapshot_progress(&self) -> SnapshotProgress {
        self.commanded.as_ref().map_or(SnapshotProgress::Failed, UnderWay::progress)
    }

    fn finish(&mut self) -> bool {
        if self.at_end && !self.has_ended.swap(true, Ordering::AcqRel) {
            self.last = Some(self.begin(SnapshotReason::End, ""));
        }
        let is_under_way = |one: &UnderWay| one.progress() == SnapshotProgress::UnderWay;
        !self.last.iter().chain(&self.commanded).any(is_under_way)
    }
}
