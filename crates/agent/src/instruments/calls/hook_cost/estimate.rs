//! Estimates the cost of a pair of hooks from measured windows.

use clrscope_recording::model::HookCost;

use super::super::calibrate::Constants;
use super::super::recent::{self, Recent};
use super::WindowKind;

/// Windows of each kind that are remembered per caller; later ones replace the oldest.
const REMEMBERED: usize = 64;
/// Windows of each kind before there is an estimate.
const ENOUGH: usize = 6;
/// Pause between two visits to the same caller, per remembered visit: the more is known, the rarer
/// the visits.
const WAIT_NS: u64 = 1_000_000;
/// Error bounds of the comparison with padding, down and up, relative to the pair's cost without
/// its clock. A caller that only makes calls hides its own work behind the hooks, and no
/// measurement shows how much.
const MODEL: (f64, f64) = (0.7, 0.25);

/// CPU nanoseconds per call in one window; infinite if there were too few calls.
#[derive(Debug, Clone, Copy)]
pub(super) struct WindowCost {
    /// Per call that the caller itself made. Padding slows these calls down.
    pub(super) direct: f64,
    /// Per call made by the caller and everything below it. All these calls read clocks.
    pub(super) all: f64,
}

/// The windows measured at one caller.
#[derive(Default)]
pub(super) struct CallerWindows {
    seen: [Recent<WindowCost, REMEMBERED>; 4],
    visits: usize,
    pub(super) due_ns: u64,
    /// Number of visits at which the next estimate is due.
    report_at: usize,
}

impl CallerWindows {
    /// Adds the windows of one visit, which ended at `now_ns`, and delays the next visit.
    pub(super) fn visited(&mut self, now_ns: u64, found: impl IntoIterator<Item = (WindowKind, WindowCost)>) {
        found.into_iter().for_each(|(kind, seen)| self.seen[kind as usize].add(seen));
        self.visits += 1;
        self.due_ns = now_ns + self.visits.min(REMEMBERED) as u64 * WAIT_NS;
    }

    /// Cost of a pair of hooks, if a report is due: each time the number of visits has grown by
    /// half. Later a report is due each time half of the remembered visits are new, since the
    /// compiler may have recompiled the caller in the meantime.
    pub(super) fn report(&mut self, has_clock: bool, constants: &Constants) -> Option<HookCost> {
        if self.visits < self.report_at {
            return None;
        }
        let cost = self.cost(has_clock, constants)?;
        self.report_at = self.visits + (self.visits / 2).clamp(1, REMEMBERED / 2);
        Some(cost)
    }

    fn cost(&self, has_clock: bool, constants: &Constants) -> Option<HookCost> {
        if !has_clock {
            let felt = self.typical(WindowKind::Padded, |s| s.direct)?.over(self.typical(WindowKind::Plain, |s| s.direct)?);
            return Some(constants.cost(Typical::default(), felt));
        }
        let bare = self.typical(WindowKind::NoClock, |s| s.all)?;
        let clock = self.typical(WindowKind::Plain, |s| s.all)?.over(bare);
        let felt = self.typical(WindowKind::NoClockPadded, |s| s.direct).zip(self.typical(WindowKind::NoClock, |s| s.direct));
        // Where no caller could be padded, counting is assumed to cost as much as in the loop
        // *alone*.
        let felt = felt.map_or(Typical::exactly(constants.padding_ns), |(padded, plain)| padded.over(plain));
        Some(constants.cost(clock, felt))
    }

    /// Returns the typical value of one number in windows of one kind.
    fn typical(&self, kind: WindowKind, number: fn(&WindowCost) -> f64) -> Option<Typical> {
        let numbers = self.seen[kind as usize].all().iter().map(number).filter(|number| number.is_finite());
        Typical::from_values(&numbers.collect::<Vec<_>>())
    }
}

/// A median with its standard error.
#[derive(Debug, Clone, Copy, Default)]
struct Typical {
    median: f64,
    error: f64,
}

impl Typical {
    fn exactly(median: f64) -> Self {
        Self { median, error: 0.0 }
    }

    fn from_values(values: &[f64]) -> Option<Self> {
        if values.len() < ENOUGH {
            return None;
        }
        let median = recent::median(values.to_vec());
        let off = values.iter().map(|value| (value - median).abs()).collect();
        // Of normally distributed values: the deviation is 1.48 times the median distance, the
        // error of a median 1.25 times that of a mean.
        let error = 1.48 * 1.25 * recent::median(off) / (values.len() as f64).sqrt();
        Some(Self { median, error })
    }

    /// Difference between `self` and `less`.
    fn over(self, less: Self) -> Self {
        Self { median: self.median - less.median, error: self.error.hypot(less.error) }
    }

    fn low(self) -> f64 {
        self.median - 2.0 * self.error
    }

    fn high(self) -> f64 {
        self.median + 2.0 * self.error
    }
}

impl Constants {
    /// The cost of a pair, from the measured cost of its clock and from the part of the padding's
    /// cost that shows.
    fn cost(&self, clock: Typical, felt: Typical) -> HookCost {
        let scale = if self.padding_ns > 0.0 { self.counting_ns / self.padding_ns } else { 0.0 };
        let counting = |felt: f64| (felt * scale).clamp(0.0, self.counting_ns);
        let pair = clock.median.max(0.0) + counting(felt.median);
        let low = clock.low().max(0.0) + counting(felt.low()) * (1.0 - MODEL.0);
        let high = clock.high().max(0.0) + counting(felt.high()) + self.counting_ns * MODEL.1;
        HookCost {
            enter_ns: pair * (1.0 - self.at_leave),
            leave_ns: pair * self.at_leave,
            pair_low_ns: low.min(pair),
            pair_high_ns: high.max(pair),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONSTANTS: Constants = Constants { counting_ns: 2.4, padding_ns: 2.0, at_leave: 0.5 };

    fn windows(of: &[(WindowKind, f64, f64)]) -> CallerWindows {
        let mut windows = CallerWindows::default();
        for number in 0..20 {
            let noise = f64::from(number % 5 - 2) * 0.01;
            let seen = of.iter().map(|&(kind, direct, all)| (kind, WindowCost { direct: direct + noise, all: all + noise }));
            windows.visited(0, seen);
        }
        windows
    }

    fn pair(cost: HookCost) -> f64 {
        cost.enter_ns + cost.leave_ns
    }

    #[test]
    fn a_dose_that_is_not_felt_says_that_hooks_are_not_either() {
        let mut hidden = windows(&[(WindowKind::Plain, 11.0, 11.0), (WindowKind::Padded, 11.0, 11.0)]);
        let cost = hidden.report(false, &CONSTANTS).expect("enough");
        assert!(pair(cost) < 0.05 && cost.pair_high_ns < 1.0, "{cost:?}");
        let mut felt = windows(&[(WindowKind::Plain, 4.0, 4.0), (WindowKind::Padded, 6.0, 6.0)]);
        let cost = felt.report(false, &CONSTANTS).expect("enough");
        assert!((pair(cost) - 2.4).abs() < 0.05 && cost.pair_low_ns < 1.0, "{cost:?}");
        assert!(felt.report(false, &CONSTANTS).is_none(), "nothing new");
    }

    #[test]
    fn clocks_are_measured_directly_and_by_all_that_read_them() {
        let seen = [(WindowKind::Plain, 60.0, 20.0), (WindowKind::NoClock, 12.0, 4.0), (WindowKind::NoClockPadded, 13.0, 4.2)];
        let cost = windows(&seen).report(true, &CONSTANTS).expect("enough");
        assert!((pair(cost) - (16.0 + 1.2)).abs() < 0.1, "{cost:?}");
        assert!(cost.pair_low_ns <= pair(cost) && pair(cost) <= cost.pair_high_ns);
        let unpadded = [(WindowKind::Plain, f64::INFINITY, 20.0), (WindowKind::NoClock, f64::INFINITY, 4.0)];
        let cost = windows(&unpadded).report(true, &CONSTANTS).expect("enough");
        assert!((pair(cost) - (16.0 + 2.4)).abs() < 0.1, "{cost:?}");
    }

    #[test]
    fn few_windows_say_nothing() {
        let mut few = CallerWindows::default();
        few.visited(0, [(WindowKind::Plain, WindowCost { direct: 4.0, all: 4.0 }), (WindowKind::Padded, WindowCost { direct: 6.0, all: 6.0 })]);
        assert!(few.report(false, &CONSTANTS).is_none());
    }

    #[test]
    fn a_caller_that_changes_late_is_told_of_again() {
        let mut windows = CallerWindows::default();
        let mut visit = |padded: f64| {
            let seen =
                [(WindowKind::Plain, 4.0), (WindowKind::Padded, padded)].map(|(kind, ns)| (kind, WindowCost { direct: ns, all: ns }));
            windows.visited(0, seen);
            windows.report(false, &CONSTANTS)
        };
        let early = (0..1_000).filter_map(|_| visit(6.0)).last().expect("enough");
        let late = (0..200).filter_map(|_| visit(4.0)).last().expect("reported again");
        assert!(pair(early) > 2.0 && pair(late) < 0.1, "{early:?} {late:?}");
    }
}
