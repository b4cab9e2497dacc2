//! The profiler's share of a time, computed from the number of hooks that ran during that time.

use clrscope_recording::model::{CallsInfo, HookCost};

/// Cost of an enter and of a leave hook, nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Pair {
    enter: f64,
    leave: f64,
}

impl Pair {
    fn cost_of_hooks(self, hooks: Hooks) -> u64 {
        // A float that is too large or not a number converts to a bound of u64.
        (hooks.enters as f64 * self.enter + hooks.leaves as f64 * self.leave).round() as u64
    }
}

/// Hooks that ran in a function's own time. A leave hook runs in the callee's time, an enter hook
/// in the caller's.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Hooks {
    /// Number of enter hooks of the functions that the function called.
    pub(crate) enters: u64,
    /// Number of the function's own leave hooks.
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

/// No hook costs more than this; a larger number means that the recording is damaged.
const MOST_NS: f64 = 1e6;

/// An estimate with its bounds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Share {
    pub(crate) likely: u64,
    pub(crate) low: u64,
    pub(crate) high: u64,
}

/// Cost of the hooks in one process. A function's cost consists of the enter hooks of its callees
/// and its own leave hooks.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Cost {
    /// Estimate for functions that were not measured in the program itself.
    usual: Estimate,
    /// Measured estimates by slot; empty if there are none.
    measured: Vec<Estimate>,
}

/// Likely cost with its bounds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Estimate {
    likely: Pair,
    low: Pair,
    high: Pair,
}

impl Estimate {
    /// Accepts measured constants as far as they are plausible: finite, not negative, not too
    /// large, bounds in order.
    fn new(measured: &HookCost) -> Self {
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

    fn set_enter(&mut self, of: &Self) {
        self.likely.enter = of.likely.enter;
        self.low.enter = of.low.enter;
        self.high.enter = of.high.enter;
    }

    fn set_leave(&mut self, of: &Self) {
        self.likely.leave = of.likely.leave;
        self.low.leave = of.low.leave;
        self.high.leave = of.high.leave;
    }
}

impl Cost {
    /// Cost of the hooks in a process. `slot` maps a function index of the recording to its slot;
    /// `slots` is the number of slots.
    pub(crate) fn new(calls: &CallsInfo, slots: usize, slot: impl Fn(u32) -> u32) -> Self {
        let usual = Estimate::new(&calls.hook_cost);
        let mut measured = Vec::new();
        if !calls.pair_costs.is_empty() {
            measured.resize(slots, usual);
        }
        for pair in &calls.pair_costs {
            let estimate = Estimate::new(&pair.cost);
            if let Some(caller) = measured.get_mut(slot(pair.caller) as usize) {
                caller.set_enter(&estimate);
            }
            if let Some(callee) = measured.get_mut(slot(pair.callee) as usize) {
                callee.set_leave(&estimate);
            }
        }
        Self { usual, measured }
    }

    fn estimate_of_slot(&self, slot: u32) -> &Estimate {
        self.measured.get(slot as usize).unwrap_or(&self.usual)
    }

    /// Whether hooks cost nothing, so that times need no correction.
    pub(crate) fn is_zero(&self) -> bool {
        self.usual.likely == Pair::default() && self.measured.is_empty()
    }

    /// Cost of an enter hook of the function's callees, in nanoseconds per call.
    pub(crate) fn enter_ns(&self, slot: u32) -> f64 {
        self.estimate_of_slot(slot).likely.enter
    }

    /// Cost of the function's leave hook, in nanoseconds per call.
    pub(crate) fn leave_ns(&self, slot: u32) -> f64 {
        self.estimate_of_slot(slot).likely.leave
    }

    /// The time of the function's hooks within `measured_ns`, at most `measured_ns`.
    pub(crate) fn share(&self, slot: u32, hooks: Hooks, measured_ns: u64) -> Share {
        let bounded = |pair: Pair| pair.cost_of_hooks(hooks).min(measured_ns);
        let of = self.estimate_of_slot(slot);
        Share { likely: bounded(of.likely), low: bounded(of.low), high: bounded(of.high) }
    }

    /// Part of the modelled cost of the function's hooks that fits into `measured_ns`, 0 to 1.
    pub(crate) fn fit(&self, slot: u32, hooks: Hooks, measured_ns: u64) -> f64 {
        let modelled = self.estimate_of_slot(slot).likely.cost_of_hooks(hooks);
        if modelled <= measured_ns { 1.0 } else { measured_ns as f64 / modelled as f64 }
    }
}

#[cfg(test)]
mod tests {
    use clrscope_recording::model::PairCost;

    use super::*;

    fn cost(hook_cost: HookCost) -> Cost {
        Cost::new(&CallsInfo { hook_cost, ..CallsInfo::default() }, 3, |function| function)
    }

    #[test]
    fn a_share_is_bounded_by_what_was_measured() {
        let cost = cost(HookCost { enter_ns: 2.0, leave_ns: 1.0, pair_low_ns: 1.5, pair_high_ns: 6.0 });
        let hooks = Hooks { enters: 10, leaves: 4 };
        assert_eq!(cost.share(1, hooks, 1_000), Share { likely: 24, low: 12, high: 48 });
        assert_eq!(cost.share(1, hooks, 20), Share { likely: 20, low: 12, high: 20 });
        assert!((cost.fit(1, hooks, 12) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn senseless_constants_cost_nothing() {
        let cost = cost(HookCost { enter_ns: f64::NAN, leave_ns: -3.0, pair_low_ns: 9.0, pair_high_ns: f64::INFINITY });
        assert!(cost.is_zero());
        assert_eq!(cost.share(0, Hooks { enters: u64::MAX, leaves: u64::MAX }, 5), Share::default());
    }

    #[test]
    fn an_unknown_cost_with_an_upper_bound_has_an_upper_bound() {
        let cost = cost(HookCost { pair_high_ns: 4.0, ..HookCost::default() });
        assert_eq!(cost.share(2, Hooks { enters: 1, leaves: 1 }, 100), Share { likely: 0, low: 0, high: 4 });
    }

    #[test]
    fn what_was_measured_in_the_program_counts_for_that_caller_and_that_callee() {
        let usual = HookCost { enter_ns: 2.0, leave_ns: 1.0, pair_low_ns: 1.5, pair_high_ns: 6.0 };
        let here = HookCost { enter_ns: 0.5, leave_ns: 0.5, pair_low_ns: 0.8, pair_high_ns: 1.2 };
        let pair_costs =
            vec![PairCost { caller: 0, callee: 2, cost: here }, PairCost { caller: 9, callee: 9, cost: here }];
        let calls = CallsInfo { hook_cost: usual, pair_costs, ..CallsInfo::default() };
        let cost = Cost::new(&calls, 3, |function| function);
        let hooks = Hooks { enters: 10, leaves: 10 };
        assert_eq!(cost.share(0, hooks, 1_000).likely, 5 + 10, "its calls here, its own leaves as usual");
        assert_eq!(cost.share(1, hooks, 1_000).likely, 20 + 10);
        assert_eq!(cost.share(2, hooks, 1_000), Share { likely: 20 + 5, low: 10 + 4, high: 40 + 6 });
    }
}
