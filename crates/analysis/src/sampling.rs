//! The error of sampled times: how far a time may be from the truth because samples are few.

use clrscope_recording::model::{CallsInfo, Clock};

/// Standard deviations that hold 95 % of what chance does.
const DEVIATIONS: f64 = 1.96;
/// Steps by which a time may be too short where hardly a sample fell: with none at all it is still below three in 95 %.
const FEW: f64 = 3.0;
/// Part of the interval that a step has where it is not known: intervals lie between half and one and a half.
const USUAL: f64 = 13.0 / 12.0;
/// Part by which hooks may cost less or more than they were measured to: they are measured at some moments of the run, and on
/// a busy machine a processor is faster and slower from one moment to the next. `cargo xtask accuracy` prints the part that
/// single runs needed.
pub const HOOK_MARGIN: f64 = 0.25;

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
    let (least, most) = (least as f64 * (1.0 - HOOK_MARGIN), most as f64 * (1.0 + HOOK_MARGIN));
    // A float that is below zero or too large converts to a bound of u64.
    let low = measured_ns as f64 - most - chance;
    let high = measured_ns as f64 - least + chance + FEW * step_ns;
    (low as u64, high as u64)
}

/// Bounds of a share that was found with so many samples, between which it lies in 95 of 100 cases (Wilson's).
#[must_use]
pub fn share_bounds(share: f64, samples: u64) -> (f64, f64) {
    if samples == 0 {
        return (0.0, 1.0);
    }
    let (n, z2) = (samples as f64, DEVIATIONS * DEVIATIONS);
    let middle = share + z2 / (2.0 * n);
    let spread = DEVIATIONS * (share * (1.0 - share) / n + z2 / (4.0 * n * n)).sqrt();
    let whole = 1.0 + z2 / n;
    let bound = |at: f64| (at / whole).clamp(0.0, 1.0);
    // Rounding must not put a share of nothing or of all outside of its bounds.
    (bound(middle - spread).min(share), bound(middle + spread).max(share))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_of_shares_are_those_of_wilson() {
        let rounded = |share, samples| {
            let (low, high) = share_bounds(share, samples);
            ((low * 1e4).round(), (high * 1e4).round())
        };
        // Wilson's interval of 10 and of 0 in 100, and of half of 10,000.
        assert_eq!(rounded(0.1, 100), (552.0, 1744.0));
        assert_eq!(rounded(0.0, 100), (0.0, 370.0));
        assert_eq!(rounded(0.5, 10_000), (4902.0, 5098.0));
        assert_eq!((share_bounds(1.0, 7).1, share_bounds(0.3, 0)), (1.0, (0.0, 1.0)));
    }

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
