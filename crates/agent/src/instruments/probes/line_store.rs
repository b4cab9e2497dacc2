//! Room for the counters of lines in the recording.

use std::sync::OnceLock;

use clrscope_recording::layout::instrument;
use clrscope_recording::model::ProbedLine;
use clrscope_recording::writer::{Chunk, Keep, LineLanes, ProcessWriter, monotonic_ns};
use clrscope_agent_base::helper::Task;
use clrscope_agent_base::record_room::RecordRoom;

/// Address space for all lines: a mapping can't grow.
const ADDRESS_SPACE: u64 = 1 << 30;

/// Store of the counters of all lines. The file is created for the first line.
pub(super) struct LineStore {
    writer: &'static ProcessWriter,
    room: OnceLock<Option<RecordRoom>>,
}

impl LineStore {
    pub(super) fn new(writer: &'static ProcessWriter) -> Self {
        Self { writer, room: OnceLock::new() }
    }

    /// Allocates zeroed counters for these lines; `None` for each line without room. Waits for the
    /// disk.
    pub(super) fn allocate_lanes(&self, lines: &[ProbedLine]) -> Vec<Option<LineLanes>> {
        let chunk = self.chunk(lines.iter().map(ProbedLine::record_bytes).sum());
        lines.iter().map(|line| chunk?.append_line(line, monotonic_ns())).collect()
    }

    fn chunk(&self, bytes: usize) -> Option<Chunk> {
        let create = || {
            let made = self.writer.create_slow_events(instrument::PROBE_LINES, ADDRESS_SPACE, Keep::First);
            made.ok().map(RecordRoom::new)
        };
        self.room.get_or_init(create).as_ref()?.chunk(bytes)
    }

    fn made(&self) -> Option<&RecordRoom> {
        self.room.get()?.as_ref()
    }

    /// Task of the helper thread for the counters.
    pub(super) fn task(&'static self) -> Box<dyn Task> {
        Box::new(WriteOut(self))
    }

    /// Call it when methods have their own code back. Calls that were active then add to private
    /// memory of the process from now on.
    pub(super) fn outlive_recording(&self) {
        if let Some(room) = self.made() {
            // SAFETY: methods have addresses of backed and allocated memory only, and nothing more
            // is allocated, since the recording is over. Nothing reads the memory here.
            unsafe { room.segment().outlive_recording() };
        }
    }

    /// In a forked child: makes the child's code add to private memory instead of the recording.
    /// Async-signal-safe.
    pub(super) fn detach_in_child(&self) {
        if let Some(room) = self.made() {
            room.segment().detach_in_child();
        }
    }
}

struct WriteOut(&'static LineStore);

impl Task for WriteOut {
    fn write_out(&mut self) {
        if let Some(room) = self.0.made() {
            // A failed write is tried again at the next round.
            let _ = room.segment().write_out();
        }
    }
}
