//! Room for the numbers of probed methods in the recording.

use std::sync::atomic::Ordering;

use clrscope_recording::layout::{instrument, probes};
use clrscope_recording::model::ProbedMethod;
use clrscope_recording::writer::{Chunk, Keep, MethodLanes, monotonic_ns};
use clrscope_agent_base::hooks;
use clrscope_agent_base::os::process;
use clrscope_agent_base::helper::Task;
use clrscope_agent_base::record_room::RecordRoom;

use crate::services::context::Context;

/// Address space for all methods: a mapping can't grow.
const ADDRESS_SPACE: u64 = 4 << 30;
/// Bytes of a chunk, where no method needs more.
const CHUNK: usize = 1 << 20;
/// Modules with more methods than this get at most `FEW_LANES` lanes per method. Other modules get
/// up to `MOST_LANES`, as many as help at all.
const FEW_METHODS: usize = 64;
const FEW_LANES: u32 = 4;
const MOST_LANES: u32 = 16;

/// Store of the numbers (counts and times) of all methods.
pub(super) struct ProbeStore {
    room: RecordRoom,
}

impl ProbeStore {
    /// Creates an empty store.
    ///
    /// # Errors
    /// A sentence for the user, when the file could not be made.
    pub(super) fn create(context: &Context) -> Result<Self, String> {
        let made = context.writer.create_slow_events(instrument::PROBES, ADDRESS_SPACE, Keep::First);
        Ok(Self { room: RecordRoom::new(made.map_err(|error| format!("no memory for probes: {error}"))?) })
    }

    /// Allocates zeroed numbers for these methods; `None` for each method without room. Waits for
    /// the disk.
    pub(super) fn allocate_lanes(&self, methods: &[ProbedMethod]) -> Vec<Option<MethodLanes>> {
        let most = if methods.len() > FEW_METHODS { FEW_LANES } else { MOST_LANES };
        let lanes = process::processors().clamp(1, most).next_power_of_two();
        let mut left: usize = methods.iter().map(|method| bytes(method, lanes)).sum();
        let mut chunk: Option<Chunk> = None;
        let mut append = |method: &ProbedMethod| {
            let now = monotonic_ns();
            let taken = chunk.and_then(|chunk| chunk.append_probed(method, lanes, now)).or_else(|| {
                chunk = self.room.chunk(left.min(CHUNK).max(bytes(method, lanes)));
                chunk?.append_probed(method, lanes, now)
            });
            left -= bytes(method, lanes);
            taken
        };
        methods.iter().map(&mut append).collect()
    }

    /// Task of the helper thread for the numbers.
    pub(super) fn task(&'static self) -> Box<dyn Task> {
        Box::new(WriteOut(self))
    }

    /// Call it when methods have their own code back. Calls that were active then add to private
    /// memory of the process from now on.
    pub(super) fn outlive_recording(&self) {
        // SAFETY: methods have addresses of backed and allocated memory only, and nothing more is
        // allocated, since the recording is over. Nothing reads the memory here.
        unsafe { self.room.segment().outlive_recording() };
    }

    /// In a forked child: makes the child's calls add to private memory instead of the recording.
    /// Async-signal-safe.
    pub(super) fn detach_in_child(&self) {
        self.room.segment().detach_in_child();
    }
}

/// Bytes of a method's record.
fn bytes(method: &ProbedMethod, lanes: u32) -> usize {
    probes::bytes(lanes as usize, method.name.len() + method.signature.len())
}

struct WriteOut(&'static ProbeStore);

impl Task for WriteOut {
    fn write_out(&mut self) {
        // A failed write is tried again at the next round.
        let _ = self.0.room.segment().write_out();
    }

    fn stop(&mut self) -> bool {
        // A call that is being counted is complete in a moment, and does no harm.
        hooks::stopped_flag().store(1, Ordering::Release);
        true
    }
}
