//! The profiler's share of a time, from the number of hooks that ran in it.

use clrscope_recording::model::HookCost;

/// Cost of an enter and of a leave, nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Pair {
    enter: f64,
    leave: f64,
}

impl Pair {
    fn of(self, hooks: Hooks) -> u64 {
        // A float that is too large or not a number converts to a bound of u64.
        (hooks.enters as f64 * self.enter + hooks.leaves as f64 * self.leave).round() as u64
    }
}

/// How many hooks ran on somebody's time: leaves on the callee's, enters on the caller's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Hooks {
    /// Enter hooks of the functions it called.
    pub(crate) enters: u64,
    /// Its own leave hooks.
    pub(crate) leaves: u64,
}

impl Hooks {
    /// Counts enter hooks.
    #[inline]
    pub(crate) fn add_enters(&mut self, calls: u64) {
        self.enters = self.enters.saturating_add(calls);
    }

    /// Counts leave hooks.
    #[inline]
    pub(crate) fn add_leaves(&mut self, calls: u64) {
        self.leaves = self.leaves.saturating_add(calls);
    }
}

/// No hook costs more than this; a larger number in a recording is damage.
const MOST_NS: f64 = 1e6;

/// An estimate with its bounds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Share {
    pub(crate) likely: u64,
    pub(crate) low: u64,
    pub(crate) high: u64,
}

/// What hooks cost in one process.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Cost {
    likely: Pair,
    low: Pair,
    high: Pair,
}

impl Cost {
    /// Takes measured constants as far as they make sense: finite, not negative, not
    /// absurd, bounds in order.
    pub(crate) fn new(measured: &HookCost) -> Self {
        let sane = |ns: f64| if ns > 0.0 && ns <= MOST_NS { ns } else { 0.0 };
        let likely = Pair { enter: sane(measured.enter_ns), leave: sane(measured.leave_ns) };
        let pair = likely.enter + likely.leave;
        let at_enter = if pair > 0.0 { likely.enter / pair } else { 0.5 };
        let split = |ns: f64| Pair { enter: ns * at_enter, leave: ns * (1.0 - at_enter) };
        Self {
            likely,
            low: split(sane(measured.pair_low_ns).min(pair)),
            high: split(sane(measured.pair_high_ns).max(pair)),
        }
    }

    /// Whether hooks cost nothing, so that nothing needs to be taken out.
    pub(crate) fn is_zero(&self) -> bool {
        self.likely == Pair::default()
    }

    /// Cost of one enter, nanoseconds.
    pub(crate) fn enter_ns(&self) -> f64 {
        self.likely.enter
    }

    /// Cost of one leave, nanoseconds.
    pub(crate) fn leave_ns(&self) -> f64 {
        self.likely.leave
    }

    /// The share of hooks in `measured_ns`: never more than all of it.
    pub(crate) fn share(&self, hooks: Hooks, measured_ns: u64) -> Share {
        let bounded = |pair: Pair| pair.of(hooks).min(measured_ns);
        Share { likely: bounded(self.likely), low: bounded(self.low), high: bounded(self.high) }
    }

    /// Which part of the modelled cost of `hooks` fits into `measured_ns`, 0 to 1.
    pub(crate) fn fit(&self, hooks: Hooks, measured_ns: u64) -> f64 {
        let modelled = self.likely.of(hooks);
        if modelled <= measured_ns { 1.0 } else { measured_ns as f64 / modelled as f64 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_bounded_by_what_was_measured() {
        let cost = Cost::new(&HookCost { enter_ns: 2.0, leave_ns: 1.0, pair_low_ns: 1.5, pair_high_ns: 6.0 });
        let hooks = Hooks { enters: 10, leaves: 4 };
        assert_eq!(cost.share(hooks, 1_000), Share { likely: 24, low: 12, high: 48 });
        assert_eq!(cost.share(hooks, 20), Share { likely: 20, low: 12, high: 20 });
        assert!((cost.fit(hooks, 12) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn senseless_constants_cost_nothing() {
        let cost =
            Cost::new(&HookCost { enter_ns: f64::NAN, leave_ns: -3.0, pair_low_ns: 9.0, pair_high_ns: f64::INFINITY });
        assert!(cost.is_zero());
        assert_eq!(cost.share(Hooks { enters: u64::MAX, leaves: u64::MAX }, 5), Share::default());
    }

    #[test]
    fn an_unknown_cost_with_an_upper_bound_has_an_upper_bound() {
        let cost = Cost::new(&HookCost { pair_high_ns: 4.0, ..HookCost::default() });
        assert_eq!(cost.share(Hooks { enters: 1, leaves: 1 }, 100), Share { likely: 0, low: 0, high: 4 });
    }
}
