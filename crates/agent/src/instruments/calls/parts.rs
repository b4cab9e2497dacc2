//! Gains of the trees since the last boundary between parts of the recording.
//!
//! Hooks know nothing of parts. At a boundary the helper thread compares each count with its value
//! at the previous boundary, and notes the differences. It keeps these values in private memory
//! from the first boundary on. A tree is compared in steps, so that the helper thread does its
//! other work in between. The program runs on in the meantime, so calls made in these milliseconds
//! may be counted on either side of the boundary.

use clrscope_recording::layout::{block, function};
use clrscope_recording::model::LossReason;
use clrscope_recording::writer::{GainLog, TimeTable, monotonic_ns};
use clrscope_agent_base::helper::Gains;

use super::shared::Shared;

/// Blocks that are compared in one step: less than a millisecond.
const STEP: usize = 8 << 10;

/// Compares the trees with their counts at the last boundary.
pub(super) struct PartGains {
    log: GainLog,
    /// Values of the edges at the last boundary, for each step of blocks.
    before: Vec<Before>,
    /// Wall and CPU nanoseconds of each entry of the table of times at the last boundary.
    times: Vec<(u64, u64)>,
    /// The next step of the current boundary.
    step: usize,
}

/// Counts, and ticks where hooks read the clock, of the edges of some blocks.
#[derive(Default)]
struct Before {
    calls: Vec<u32>,
    ticks: Vec<u64>,
}

impl PartGains {
    pub(super) fn new(log: GainLog) -> Self {
        Self { log, before: Vec::new(), times: Vec::new(), step: 0 }
    }

    /// Does one step of the comparison.
    pub(super) fn step(&mut self, shared: &Shared, times: &TimeTable) -> Gains {
        let blocks = shared.arena.used() / shared.stride as usize;
        let first = self.step * STEP;
        if first < blocks {
            if !self.compare(shared, first..blocks.min(first + STEP)) {
                self.log.give_up();
            }
            self.step += 1;
            return Gains::More;
        }
        if !self.compare_times(times) {
            self.log.give_up();
        }
        self.step = 0;
        let number = self.log.end_boundary();
        if number == 0 {
            shared.writer.state().lose(LossReason::PartLost, 1, monotonic_ns());
        }
        Gains::Noted(number)
    }

    /// Call it when a period of the recording has ended: begins another file of gains.
    pub(super) fn begin_period(&mut self) {
        self.log.begin_another();
    }

    pub(super) fn write_out(&self) {
        self.log.write_out();
    }

    /// Notes the gains of the edges of some blocks; returns whether there was memory for their new
    /// values.
    fn compare(&mut self, shared: &Shared, blocks: std::ops::Range<usize>) -> bool {
        let has_ticks = shared.stride as usize == block::STRIDE_TSC;
        while self.before.len() <= self.step {
            let Some(before) = Before::new(has_ticks) else { return false };
            self.before.push(before);
        }
        let (before, first) = (&mut self.before[self.step], blocks.start);
        for number in blocks {
            let at = (number * shared.stride as usize) as u32;
            for slot in 0..block::EDGES {
                match shared.key(at, slot) {
                    0 => break,
                    function::PADDING => continue,
                    _ => {}
                }
                let (place, edge) = ((number - first) * block::EDGES + slot, block::edge_id(at, slot as u32));
                let now = shared.calls(at, slot);
                let then = std::mem::replace(&mut before.calls[place], now);
                if now != then {
                    self.log.calls(edge, then, now);
                }
                if has_ticks {
                    let now = shared.ticks(at, slot);
                    let then = std::mem::replace(&mut before.ticks[place], now);
                    if now != then {
                        self.log.ticks(edge, now.wrapping_sub(then));
                    }
                }
            }
        }
        true
    }

    fn compare_times(&mut self, times: &TimeTable) -> bool {
        if self.times.try_reserve(times.len().saturating_sub(self.times.len())).is_err() {
            return false;
        }
        self.times.resize(times.len(), (0, 0));
        for (place, before) in self.times.iter_mut().enumerate() {
            let Some((edge, wall_ns, cpu_ns)) = times.entry(place) else { continue };
            let then = std::mem::replace(before, (wall_ns, cpu_ns));
            if then != *before {
                self.log.times(edge, wall_ns.saturating_sub(then.0), cpu_ns.saturating_sub(then.1));
            }
        }
        true
    }
}

impl Before {
    /// Creates zero values; `None` if there is no memory for them.
    fn new(has_ticks: bool) -> Option<Self> {
        let mut before = Self::default();
        before.calls.try_reserve_exact(STEP * block::EDGES).ok()?;
        before.calls.resize(STEP * block::EDGES, 0);
        if has_ticks {
            before.ticks.try_reserve_exact(STEP * block::EDGES).ok()?;
            before.ticks.resize(STEP * block::EDGES, 0);
        }
        Some(before)
    }
}
