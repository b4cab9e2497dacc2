//! Which request each thread worked for and when, as recorded by the threads.

use std::sync::Arc;

use clrscope_recording::events::{Kind, Record, Records, Tag};
use clrscope_recording::layout::instrument;
use clrscope_recording::model::{LossReason, Process};
use rustc_hash::FxHashMap;

/// The moment at which a thread begins to work for a request, or for none.
#[derive(Debug, Clone, Copy)]
struct Switch {
    /// Nanoseconds since the start of the run.
    time_ns: u64,
    request: Option<u64>,
}

/// A time in which a thread works for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Stretch {
    /// Id of the request.
    pub(super) request: u64,
    /// Nanoseconds since the start of the run.
    pub(super) since_ns: u64,
    pub(super) until_ns: u64,
}

/// All switches of a process's threads.
#[derive(Debug)]
pub(super) struct Switches {
    /// By thread number; the switches of a thread are ordered by time.
    of_threads: FxHashMap<u32, Vec<Switch>>,
    /// Whether records were lost, so that a thread may have switched to other work after its last
    /// record.
    is_lossy: bool,
}

impl Switches {
    /// Returns the switches of a process, which are read at the first call.
    pub(super) fn for_process(process: &Process) -> Arc<Self> {
        process.derived.get("switches between requests", || Self::read(process))
    }

    fn read(process: &Process) -> Self {
        let mut of_threads: FxHashMap<u32, Vec<Switch>> = FxHashMap::default();
        for chunk in process.arenas(instrument::REQUESTS).flat_map(|arena| &arena.chunks) {
            let Some(thread) = process.threads.get(chunk.thread as usize) else { continue };
            let bytes = chunk.bytes.load();
            let said = Records::new(&bytes).filter(|record| record.kind == Kind::REQUEST_ON_THREAD);
            let switch = |record: Record<'_>| Switch {
                time_ns: process.started_ns.saturating_add(record.time_ns),
                request: record.number(Tag::REQUEST),
            };
            of_threads.entry(thread.id).or_default().extend(said.map(switch));
        }
        of_threads.retain(|_, switches| !switches.is_empty());
        of_threads.values_mut().for_each(|switches| switches.sort_by_key(|switch| switch.time_ns));
        let is_lossy = process.has_lost(LossReason::EventDropped);
        Self { of_threads, is_lossy }
    }

    /// Whether the threads recorded any switch.
    pub(super) fn is_known(&self) -> bool {
        !self.of_threads.is_empty()
    }

    /// Whether no switch was lost.
    pub(super) fn is_whole(&self) -> bool {
        self.is_known() && !self.is_lossy
    }

    /// Returns the request that a thread works for at a time. `thread` is the thread's number.
    pub(super) fn request_at(&self, thread: u32, time_ns: u64) -> Option<u64> {
        let switches = self.of_threads.get(&thread)?;
        let begun = switches.partition_point(|switch| switch.time_ns <= time_ns);
        let last = begun.checked_sub(1)?;
        (time_ns < self.end_ns(switches, last)).then_some(switches[last].request).flatten()
    }

    /// Visits every stretch in which a thread works for a request, with the thread's number. The
    /// stretches of one thread are in order.
    pub(super) fn each_stretch(&self, mut visit: impl FnMut(u32, Stretch)) {
        for (thread, switches) in &self.of_threads {
            for (at, switch) in switches.iter().enumerate() {
                if let Some(request) = switch.request {
                    let until_ns = self.end_ns(switches, at);
                    visit(*thread, Stretch { request, since_ns: switch.time_ns, until_ns });
                }
            }
        }
    }

    fn end_ns(&self, switches: &[Switch], at: usize) -> u64 {
        let open = if self.is_lossy { switches[at].time_ns } else { u64::MAX };
        switches.get(at + 1).map_or(open, |next| next.time_ns)
    }
}
