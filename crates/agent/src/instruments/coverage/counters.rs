//! Room for counters in the recording.

use clrscope_recording::layout::instrument;
use clrscope_recording::model::{CounterSums, MethodHits};
use clrscope_recording::writer::{Chunk, MethodCounters, monotonic_ns};
use clrscope_agent_base::helper::Task;
use clrscope_agent_base::record_room::RecordRoom;

use crate::services::context::Context;

/// Address space for all counters: a mapping can't grow. It lies below 2 GiB, so that the code that
/// adds to counters is short.
const ADDRESS_SPACE: u64 = 512 << 20;
/// Bytes of a chunk, where no method needs more.
const CHUNK: usize = 1 << 20;

/// The counters of all methods.
pub(super) struct Counters {
    room: RecordRoom,
}

impl Counters {
    /// Creates an empty set of counters.
    ///
    /// # Errors
    /// A sentence for the user, when the file could not be made.
    pub(super) fn create(context: &Context) -> Result<Self, String> {
        let made = context.writer.create_low_events(instrument::COVERAGE, ADDRESS_SPACE);
        Ok(Self { room: RecordRoom::new(made.map_err(|error| format!("no memory for counters: {error}"))?) })
    }

    /// Allocates zeroed counters for these methods. `None` if there is no room for all of them.
    /// Waits for the disk.
    pub(super) fn allocate(&self, methods: &[(MethodHits, CounterSums)]) -> Option<Vec<MethodCounters>> {
        let bytes = |(method, sums): &(MethodHits, CounterSums)| sums.record_bytes(method.counter_bytes());
        let mut chunk: Option<Chunk> = None;
        let mut left: usize = methods.iter().map(bytes).sum();
        let mut taken = Vec::with_capacity(methods.len());
        for method in methods {
            let now = monotonic_ns();
            let append = |chunk: Chunk| chunk.append_method(&method.0, &method.1, now);
            let counters = chunk.and_then(append).or_else(|| {
                chunk = self.room.chunk(left.min(CHUNK).max(bytes(method)));
                chunk.and_then(append)
            });
            match counters {
                Some(counters) => taken.push(counters),
                None => {
                    taken.into_iter().for_each(MethodCounters::withdraw);
                    return None;
                }
            }
            left -= bytes(method);
        }
        Some(taken)
    }

    /// Task of the helper thread for the counters.
    pub(super) fn task(&'static self) -> Box<dyn Task> {
        Box::new(WriteOut(self))
    }

    /// In a forked child: makes the child's code add to private memory instead of the recording.
    /// Async-signal-safe.
    pub(super) fn detach_in_child(&self) {
        self.room.segment().detach_in_child();
    }
}

struct WriteOut(&'static Counters);

impl Task for WriteOut {
    fn write_out(&mut self) {
        // A failed write is tried again at the next round.
        let _ = self.0.room.segment().write_out();
    }
}
