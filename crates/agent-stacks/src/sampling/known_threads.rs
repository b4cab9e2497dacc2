//! The threads of samples: threads of the system, and their records.

use std::collections::HashMap;
use std::sync::atomic::Ordering;

use clrscope_agent_base::os::threads::is_among;
use clrscope_agent_base::threads;
use clrscope_recording::layout::thread;
use clrscope_recording::model::ThreadRole;
use clrscope_recording::writer::{ProcessWriter, ThreadRecord, monotonic_ns};

use super::targets::is_own;

/// What is known about a thread of the system.
#[derive(Clone, Copy)]
pub(super) struct KnownThread {
    /// The thread's record; `None` for the profiler's own threads, and if the table of threads is
    /// full.
    pub(super) record: Option<ThreadRecord>,
    pub(super) is_own: bool,
}

/// Threads by the system's thread id.
pub(super) struct KnownThreads {
    writer: &'static ProcessWriter,
    known: HashMap<u32, KnownThread>,
}

impl KnownThread {
    /// The serial number of the thread's record; 0 if it has none.
    pub(super) fn serial(&self) -> u32 {
        self.record.map_or(0, ThreadRecord::serial)
    }

    /// Whether the thread waits for work most of the time.
    pub(super) fn waits_for_work(&self) -> bool {
        let role = self.record.map_or(0, |record| record.u32(thread::ROLE).load(Ordering::Relaxed));
        ThreadRole::from_number(role).is_some_and(ThreadRole::waits_for_work)
    }

    fn has_ended(&self) -> bool {
        self.record.is_some_and(|record| record.u64(thread::ENDED).load(Ordering::Relaxed) != 0)
    }
}

impl KnownThreads {
    pub(super) fn new(writer: &'static ProcessWriter) -> Self {
        Self { writer, known: HashMap::new() }
    }

    /// What is known about the thread with this id. A new thread is looked up.
    pub(super) fn with_id(&mut self, os_id: u32) -> KnownThread {
        // The last samples of a thread come after its end, when another thread may already have its
        // number.
        match self.known.get(&os_id) {
            Some(known) if !known.has_ended() => return *known,
            Some(known) if self.writer.threads().find(os_id).is_none() => return *known,
            _ => {}
        }
        let is_own = is_own(os_id);
        let record = if is_own { None } else { threads::seen(os_id) };
        let known = KnownThread { record, is_own };
        self.known.insert(os_id, known);
        known
    }

    /// Notes the end of threads that no longer exist and did not report their end.
    pub(super) fn update(&mut self, alive: &[u32]) {
        self.known.retain(|os_id, known| {
            let is_alive = is_among(alive, *os_id);
            if let (false, Some(record)) = (is_alive, known.record) {
                // A thread that ended normally has noted an earlier time.
                let _ =
                    record.u64(thread::ENDED).compare_exchange(0, monotonic_ns(), Ordering::Relaxed, Ordering::Relaxed);
            }
            is_alive
        });
    }
}
