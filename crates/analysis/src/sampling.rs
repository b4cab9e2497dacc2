//! The error of sampled times: how far a time may be from the truth because samples are few.

use clrscope_recording::model::{CallsInfo, Clock};

/// Standard deviations that hold 95 % of what chance does.
const DEVIATIONS: f64 = 1.96;
/// Steps by which a time may be too short where hardly a sample fell: with none at all it is still below three in 95 %.
const FEW: f64 = 3.0;
/// Part of the interval that a step has where it is not known: intervals lie between half and one and a half.
const USUAL: f64 = 13.0 / 12.0;
/// Part by which hooks may cost less or more than they were measured to: they are measured at some moments of the run, and on
/// a busy machine a processor is faster and slower from one moment to the next.
const UNSTEADY: f64 = 0.25;

/// Steps of the sampling clocks in one process, nanoseconds; 0 where a time is not sampled.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Steps {
    pub(crate) wall_ns: f64,
    pub(crate) cpu_ns: f64,
}

impl Steps {
    pub(crate) fn of(calls: &CallsInfo) -> Self {
        let usual = calls.interval_ns as f64 * USUAL;
        let step = |known: u64| if known > 0 { known as f64 } else { usual };
        let wall_ns = if calls.clock == Clock::Sampled { step(calls.sample_steps.wall_ns) } else { 0.0 };
        Self { wall_ns, cpu_ns: step(calls.sample_steps.cpu_ns) }
    }
}

/// Bounds of a time that was measured in steps, and of which hooks took between `least` and `most`.
pub(crate) fn bounds(measured_ns: u64, step_ns: f64, (least, most): (u64, u64)) -> (u64, u64) {
    let chance = DEVIATIONS * (measured_ns as f64 * step_ns).sqrt();
    let (least, most) = (least as f64 * (1.0 - UNSTEADY), most as f64 * (1.0 + UNSTEADY));
    // A float that is below zero or too large converts to a bound of u64.
    let low = measured_ns as f64 - most - chance;
    let high = measured_ns as f64 - least + chance + FEW * step_ns;
    (low as u64, high as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_hold_what_chance_does_and_what_hooks_may_cost() {
        assert_eq!(bounds(1_000, 0.0, (0, 0)), (1_000, 1_000));
        let ms = 1_000_000;
        // A hundred samples: a tenth is one deviation.
        let (low, high) = bounds(100 * ms, 1e6, (0, 0));
        assert_eq!((low / ms, high / ms), (80, 122));
        assert_eq!(bounds(0, 1e6, (0, 0)), (0, 3 * ms), "no sample fell");
        assert_eq!(bounds(100, 0.0, (20, 40)), (50, 85));
        assert_eq!(bounds(10, 0.0, (10, u64::MAX)), (0, 2));
    }
}
