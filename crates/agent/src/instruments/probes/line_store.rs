//! Room for the counters of lines in the recording.

use std::sync::{Mutex, OnceLock, PoisonError};

use clrscope_recording::layout::{chunk, instrument};
use clrscope_recording::model::ProbedLine;
use clrscope_recording::writer::{Chunk, EventStore, LineLanes, ProcessWriter, monotonic_ns};

use crate::os::signals;
use crate::services::helper::Task;

/// Address space for all lines: a mapping can't grow.
const ADDRESS_SPACE: u64 = 1 << 30;

/// The counters of all lines; there is no file before there is a line.
pub(super) struct LineStore {
    writer: &'static ProcessWriter,
    store: OnceLock<Option<EventStore>>,
    /// Held while room is asked for and taken, so that nobody takes what another has asked for.
    asking: Mutex<()>,
}

impl LineStore {
    pub(super) fn new(writer: &'static ProcessWriter) -> Self {
        Self { writer, store: OnceLock::new(), asking: Mutex::default() }
    }

    /// Counters of zero for each of these lines, as far as there is room. Waits for the disk.
    pub(super) fn take(&self, lines: &[ProbedLine]) -> Vec<Option<LineLanes>> {
        let chunk = self.chunk(lines.iter().map(ProbedLine::record_bytes).sum());
        lines.iter().map(|line| chunk?.append_line(line, monotonic_ns())).collect()
    }

    fn chunk(&self, bytes: usize) -> Option<Chunk> {
        let bytes = bytes + chunk::HEAD;
        let _asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        let create = || self.writer.create_slow_events(instrument::PROBE_LINES, ADDRESS_SPACE).ok();
        let store = self.store.get_or_init(create).as_ref()?;
        // A refusal shows when nothing is there to be taken.
        signals::with_all_blocked(|| _ = store.back(bytes));
        store.take(0, bytes, monotonic_ns())
    }

    fn made(&self) -> Option<&EventStore> {
        self.store.get()?.as_ref()
    }

    /// Task of the helper thread for the counters.
    pub(super) fn task(&'static self) -> Box<dyn Task> {
        Box::new(WriteOut(self))
    }

    /// Calls that were under way when methods got their own code back add to memory of the process's own from now on.
    pub(super) fn outlive_recording(&self) {
        if let Some(store) = self.made() {
            // SAFETY: methods have addresses of what was backed and taken, and nobody takes more: the recording is over. Nobody reads it here.
            unsafe { store.segment().outlive_recording() };
        }
    }

    /// In a forked child: its code adds to private memory from now on. Async-signal-safe.
    pub(super) fn detach_in_child(&self) {
        if let Some(store) = self.made() {
            store.segment().detach_in_child();
        }
    }
}

struct WriteOut(&'static LineStore);

impl Task for WriteOut {
    fn write_out(&mut self) {
        if let Some(store) = self.0.made() {
            // A failed write is tried again at the next round.
            let _ = store.segment().write_out();
        }
    }
}
