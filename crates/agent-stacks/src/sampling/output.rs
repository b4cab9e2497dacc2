//! Chunks of samples, one list of chunks for each instrument.

use clrscope_recording::layout::sample;
use clrscope_recording::model::{LossReason, Sample};
use clrscope_recording::writer::{Chunk, EventStore, ProcessWriter, monotonic_ns};

/// Bytes of a chunk of samples.
const CHUNK: usize = 64 << 10;

/// Where an instrument's samples are written.
pub(super) struct Output {
    writer: &'static ProcessWriter,
    store: &'static EventStore,
    chunk: Option<Chunk>,
    /// Sum of the nanoseconds of all samples, and their number.
    pub(super) sum_ns: u64,
    pub(super) count: u64,
}

impl Output {
    pub(super) fn new(writer: &'static ProcessWriter, store: &'static EventStore) -> Self {
        Self { writer, store, chunk: None, sum_ns: 0, count: 0 }
    }

    /// Writes a sample. If there is no room, the sample is counted as lost.
    pub(super) fn write(&mut self, sample: &Sample) {
        let now = monotonic_ns();
        let bytes = sample.to_bytes();
        self.sum_ns += sample.weight_ns;
        self.count += u64::from(sample.count);
        if self.chunk.is_some_and(|chunk| chunk.append(&bytes, now)) {
            return;
        }
        self.chunk.into_iter().for_each(|full| self.store.finish(full));
        let taken = self.store.allocate_chunk(0, CHUNK, now).or_else(|| {
            // The helper thread may be behind, and this thread has time to do its work.
            let _ = self.store.keep_ahead();
            self.store.allocate_chunk(0, CHUNK, now)
        });
        self.chunk = taken.or_else(|| self.take_oldest(now));
        if !self.chunk.is_some_and(|chunk| chunk.append(&bytes, now)) {
            self.writer.state().lose(LossReason::EventDropped, 1, now);
        }
    }

    /// In a ring without room, takes the oldest chunk early. Its samples are lost.
    fn take_oldest(&self, now: u64) -> Option<Chunk> {
        self.store.take_oldest(0, now, |chunk| {
            self.writer.state().lose(LossReason::EventDropped, (chunk.used() / sample::BYTES) as u64, now);
        })
    }
}
