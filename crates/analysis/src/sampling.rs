//! The statistical error of sampled times.

use clrscope_recording::model::{CallsInfo, Clock};

/// Standard deviations of a 95 % interval.
const DEVIATIONS: f64 = 1.96;
/// Steps by which a time with hardly any samples may be too short. Even with no sample, the
/// expected number of steps is below three with a confidence of 95 %.
const FEW: f64 = 3.0;
/// Mean step as a multiple of the nominal interval, used if the step is not known. Single intervals
/// lie between 0.5 and 1.5 of the nominal interval.
const USUAL: f64 = 13.0 / 12.0;
/// Relative error of the measured cost of hooks. The cost is measured at some moments of the run,
/// and on a busy machine the speed of a processor changes from one moment to the next. `cargo xtask
/// accuracy` prints the error of single runs.
pub const HOOK_MARGIN: f64 = 0.25;

/// Steps of the sampling clocks in one process, in nanoseconds; 0 for a time that is not sampled.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Steps {
    pub(crate) wall_ns: f64,
    pub(crate) cpu_ns: f64,
}

impl Steps {
    pub(crate) fn from_info(calls: &CallsInfo) -> Self {
        let usual = calls.interval_ns as f64 * USUAL;
        let step = |known: u64| if known > 0 { known as f64 } else { usual };
        let wall_ns = if calls.clock == Clock::Sampled { step(calls.sample_steps.wall_ns) } else { 0.0 };
        Self { wall_ns, cpu_ns: step(calls.sample_steps.cpu_ns) }
    }
}

/// Bounds of a time that was measured in steps, after the cost of hooks is subtracted. The cost is
/// between `least` and `most`.
pub(crate) fn bounds(measured_ns: u64, step_ns: f64, (least, most): (u64, u64)) -> (u64, u64) {
    let (low, high) = sampled_bounds(measured_ns as f64, step_ns);
    let (least, most) = (least as f64 * (1.0 - HOOK_MARGIN), most as f64 * (1.0 + HOOK_MARGIN));
    // A float below zero or too large saturates in the conversion to u64.
    ((low - most) as u64, (high - least) as u64)
}

/// Half of the 95 % interval of a time that was measured as a sum of steps of any length. The
/// number of steps is random, so the variance of the sum is the sum of the squared steps. That is
/// the time multiplied by `step_ns`, the mean step weighted by length.
fn chance_ns(measured_ns: f64, step_ns: f64) -> f64 {
    DEVIATIONS * (measured_ns * step_ns).sqrt()
}

/// 95 % bounds of a time that was measured in steps, hooks included.
#[must_use]
pub fn sampled_bounds(measured_ns: f64, step_ns: f64) -> (f64, f64) {
    let chance = chance_ns(measured_ns, step_ns);
    ((measured_ns - chance).max(0.0), measured_ns + chance + FEW * step_ns)
}

/// Bounds of the expected number of events, computed from the observed number (the score interval
/// of a Poisson count).
pub(crate) fn count_bounds(events: f64) -> (f64, f64) {
    let z2 = DEVIATIONS * DEVIATIONS;
    let spread = DEVIATIONS * (events + z2 / 4.0).sqrt();
    ((events + z2 / 2.0 - spread).max(0.0), events + z2 / 2.0 + spread)
}

/// 95 % bounds of a share that was estimated from `samples` samples (Wilson's interval).
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
    // Rounding must not put a share of 0 or 1 outside of its bounds.
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

    /// A program whose groups of functions take turns, sampled by a thread that is sometimes late.
    struct Simulated {
        state: u64,
    }

    impl Simulated {
        /// A number from 0 to 1 (a xorshift generator; Marsaglia 2003).
        fn uniform(&mut self) -> f64 {
            self.state ^= self.state << 13;
            self.state ^= self.state >> 7;
            self.state ^= self.state << 17;
            (self.state >> 11) as f64 / (1_u64 << 53) as f64
        }

        fn exponential(&mut self, mean: f64) -> f64 {
            -mean * (1.0 - self.uniform()).ln()
        }

        /// CPU time until the next sample, milliseconds: mostly the interval, sometimes longer
        /// because the sampling thread has to wait.
        fn step(&mut self, late: f64) -> f64 {
            match self.uniform() {
                sort if sort < late / 10.0 => self.exponential(100.0),
                sort if sort < late => self.exponential(15.0),
                _ => 0.5 + self.uniform(),
            }
        }

        /// A run of 1.5 s in turns of a few milliseconds. Returns for each group its time, its time
        /// by samples, and the mean step.
        fn run(&mut self, late: f64) -> [(f64, f64, f64); SHARES.len()] {
            let (mut taken, mut charged) = ([0.0; SHARES.len()], [0.0; SHARES.len()]);
            let (mut sum, mut squares) = (0.0, 0.0);
            let (mut now, mut last, mut next) = (0.0, 0.0, self.step(late));
            while now < 1_500.0 {
                for (group, share) in SHARES.iter().enumerate() {
                    // Successive turns differ in length.
                    let turn = 5.0 * share * (0.9 + 0.2 * self.uniform());
                    (taken[group], now) = (taken[group] + turn, now + turn);
                    while next < now {
                        let step = next - last;
                        charged[group] += step;
                        (sum, squares) = (sum + step, squares + step * step);
                        (last, next) = (next, next + self.step(late));
                    }
                }
            }
            std::array::from_fn(|group| (taken[group], charged[group], squares / sum))
        }
    }

    const SHARES: [f64; 5] = [0.49, 0.25, 0.15, 0.1, 0.01];

    #[test]
    fn bounds_hold_95_of_100_times_on_a_quiet_machine_and_where_samples_come_late() {
        for late in [0.0, 0.1, 0.4] {
            let mut simulated = Simulated { state: 0x9E37_79B9_7F4A_7C15 };
            let (mut inside, mut with_usual_steps, mut all) = (0, 0, 0);
            for _ in 0..400 {
                for (taken, charged, step) in simulated.run(late) {
                    let holds = |step| {
                        let (low, high) = sampled_bounds(charged, step);
                        low <= taken && taken <= high
                    };
                    all += 1;
                    inside += usize::from(holds(step));
                    with_usual_steps += usize::from(holds(USUAL));
                }
            }
            assert!(inside * 100 >= all * 95, "{inside} of {all} where {late} of the samples are late");
            // Bounds for samples without delays would be far off.
            assert!(
                late == 0.0 || with_usual_steps * 100 < all * 85,
                "{with_usual_steps} of {all} where {late} are late"
            );
        }
    }
}
