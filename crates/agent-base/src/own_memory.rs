//! Memory that an instrument uses for its own tables, in addition to the recording. The recording
//! stores this size.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use clrscope_recording::model;
use clrscope_recording::writer::ProcessWriter;

use super::helper::Task;

/// Least growth in bytes before the memory is noted again.
const LEAST_MORE: u64 = 64 << 10;

/// Tracks how much memory one instrument uses.
pub struct OwnMemory {
    writer: &'static ProcessWriter,
    instrument: &'static str,
    /// The most bytes so far, and the part of them that is noted.
    most: AtomicU64,
    told: AtomicU64,
}

impl OwnMemory {
    /// Creates the counter of an instrument that uses no memory yet.
    pub fn new(writer: &'static ProcessWriter, instrument: &'static str) -> Self {
        Self { writer, instrument, most: AtomicU64::new(0), told: AtomicU64::new(0) }
    }

    /// Reports the number of bytes in use now. Any thread may call this.
    pub fn takes(&self, bytes: u64) {
        self.most.fetch_max(bytes, Ordering::Relaxed);
    }

    /// Task of the helper thread that records the memory from time to time.
    pub fn task(own: &Arc<Self>) -> Box<dyn Task> {
        Box::new(Tell(Arc::clone(own)))
    }

    /// Records the highest use if it has grown much since it was last recorded, or at the end of
    /// the recording if it has grown at all. Blocks like the log, so threads of the program must
    /// not call this.
    pub fn tell(&self, is_end: bool) {
        let (most, told) = (self.most.load(Ordering::Relaxed), self.told.load(Ordering::Relaxed));
        if most > told && (is_end || is_much_more(most, told)) {
            self.writer.own_memory(&model::OwnMemory { instrument: self.instrument.to_owned(), bytes: most });
            self.told.store(most, Ordering::Relaxed);
        }
    }
}

/// Notes the memory on the helper thread.
struct Tell(Arc<OwnMemory>);

impl Task for Tell {
    fn slow_tick(&mut self, _now_ns: u64) {
        self.0.tell(false);
    }

    fn end(&mut self) {
        self.0.tell(true);
    }

    fn stop(&mut self) -> bool {
        self.0.tell(true);
        true
    }
}

/// A table that grows step by step must not cause many records.
fn is_much_more(most: u64, told: u64) -> bool {
    most >= told.saturating_mul(3) / 2 + LEAST_MORE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_grows_step_by_step_is_told_of_a_few_times() {
        let (mut told, mut times) = (0, 0);
        for most in (0..64 << 20).step_by(1000) {
            if is_much_more(most, told) {
                (told, times) = (most, times + 1);
            }
        }
        assert!((8..20).contains(&times), "{times}");
        assert!(told > 40 << 20);
    }
}
