//! Calls and times of a row, and of the whole selected part.

use crate::metric::{Amount, Column, Metric, SampleCount, Source};
use crate::query::Sort;

/// Calls and times of a row. The documentation of the crate defines each of them. Times are wall
/// times in nanoseconds unless the name contains `cpu`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Times {
    /// Number of calls. For `[JIT]` it is the number of compilations, for suspensions the number of
    /// suspensions.
    pub calls: u64,
    /// Time of outermost activations, callees included.
    pub inclusive_ns: u64,
    /// Own time of the function, without its callees.
    pub exclusive_ns: u64,
    /// Time in calls to other functions.
    pub callee_ns: u64,
    /// Time that the runtime suspended the thread while the function was on top of the stack.
    pub suspended_ns: u64,
    /// The profiler's estimated share of the own time. Raw reports contain it in `inclusive_ns`,
    /// compensated reports don't.
    pub profiler_ns: u64,
    /// Lower bound of the profiler's share.
    pub profiler_low_ns: u64,
    /// Upper bound of the profiler's share.
    pub profiler_high_ns: u64,
    /// CPU time of outermost activations, callees included; `None` if not measured.
    pub inclusive_cpu_ns: Option<u64>,
    /// Own CPU time; `None` if not measured.
    pub exclusive_cpu_ns: Option<u64>,
    /// 95 % bounds of the own wall time without the profiler. They include the error of the hooks'
    /// cost and of sampling.
    pub exclusive_bounds_ns: (u64, u64),
    /// 95 % bounds of the own CPU time without the profiler; `None` if not measured.
    pub exclusive_cpu_bounds_ns: Option<(u64, u64)>,
}

impl Times {
    /// Adds `other`. The sum has CPU time if at least one of the two has it.
    pub(crate) fn add(&mut self, other: &Self) {
        let sum = |a: &mut u64, b: u64| *a = a.saturating_add(b);
        sum(&mut self.calls, other.calls);
        sum(&mut self.inclusive_ns, other.inclusive_ns);
        sum(&mut self.exclusive_ns, other.exclusive_ns);
        sum(&mut self.callee_ns, other.callee_ns);
        sum(&mut self.suspended_ns, other.suspended_ns);
        sum(&mut self.profiler_ns, other.profiler_ns);
        sum(&mut self.profiler_low_ns, other.profiler_low_ns);
        sum(&mut self.profiler_high_ns, other.profiler_high_ns);
        self.inclusive_cpu_ns = add_known(self.inclusive_cpu_ns, other.inclusive_cpu_ns);
        self.exclusive_cpu_ns = add_known(self.exclusive_cpu_ns, other.exclusive_cpu_ns);
        self.exclusive_bounds_ns = add_bounds(self.exclusive_bounds_ns, other.exclusive_bounds_ns);
        self.exclusive_cpu_bounds_ns = match (self.exclusive_cpu_bounds_ns, other.exclusive_cpu_bounds_ns) {
            (Some(own), Some(other)) => Some(add_bounds(own, other)),
            (own, other) => own.or(other),
        };
    }

    /// Amount of a metric, and the columns of `calls` that a row of that metric shows. The columns
    /// are empty if the metric comes from another instrument.
    pub(crate) fn by(self, metric: &Metric) -> (Self, Amount) {
        let amount = match metric.source {
            Source::Calls(Column::Cpu) => {
                let total = self.inclusive_cpu_ns.unwrap_or(0);
                Amount { own: self.exclusive_cpu_ns.unwrap_or(0), total, ..Amount::default() }
            }
            Source::Calls(Column::Calls) => Amount { own: self.calls, total: self.calls, ..Amount::default() },
            Source::Calls(Column::Wall) => {
                Amount { own: self.exclusive_ns, total: self.inclusive_ns, ..Amount::default() }
            }
            // The field that holds CPU time in trees of `calls` holds the number of samples here.
            Source::Stacks { .. } => Amount {
                own: self.exclusive_ns,
                total: self.inclusive_ns,
                samples: SampleCount {
                    own: self.exclusive_cpu_ns.unwrap_or(0),
                    total: self.inclusive_cpu_ns.unwrap_or(0),
                },
            },
        };
        (if metric.is_of_calls() { self } else { Self::default() }, amount)
    }

    /// The number by which a sort key orders rows; 0 for names.
    pub(crate) fn key(&self, sort: Sort) -> u64 {
        match sort {
            Sort::Exclusive => self.exclusive_ns,
            Sort::Inclusive => self.inclusive_ns,
            Sort::Callee => self.callee_ns,
            Sort::Suspended => self.suspended_ns,
            Sort::Profiler => self.profiler_ns,
            Sort::ExclusiveCpu => self.exclusive_cpu_ns.unwrap_or(0),
            Sort::InclusiveCpu => self.inclusive_cpu_ns.unwrap_or(0),
            Sort::Calls => self.calls,
            Sort::Own | Sort::Total | Sort::Recursion | Sort::Name | Sort::Module => 0,
        }
    }
}

fn add_bounds(a: (u64, u64), b: (u64, u64)) -> (u64, u64) {
    (a.0.saturating_add(b.0), a.1.saturating_add(b.1))
}

/// Sum of the known values; `None` if neither is known.
pub(crate) fn add_known(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.saturating_add(b)),
        (a, b) => a.or(b),
    }
}

/// Sums over the selected processes and threads, before any limit and any filter of functions.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Calls of functions, without compilations and suspensions.
    pub calls: u64,
    /// Calls of functions, compilations and suspensions together.
    pub entries: u64,
    /// Wall time of all threads inside recorded functions, including the runtime's own time. Shares
    /// refer to this time. It is compensated unless the query is raw.
    pub functions_ns: u64,
    /// Wall time of threads outside all recorded functions.
    pub outside_ns: u64,
    /// Part of `functions_ns` during which the runtime compiled methods.
    pub jit_ns: u64,
    /// Part of `functions_ns` during which threads were suspended.
    pub suspended_ns: u64,
    /// The profiler's total share. Compensated reports have subtracted it, raw reports include it.
    pub profiler_ns: u64,
    /// Lower bound of the profiler's share.
    pub profiler_low_ns: u64,
    /// Upper bound of the profiler's share.
    pub profiler_high_ns: u64,
    /// CPU time inside recorded functions; `None` if not measured.
    pub cpu_ns: Option<u64>,
    /// Number of calls that ended in `(truncated)`.
    pub truncated_calls: u64,
    /// Time below `(truncated)`.
    pub truncated_ns: u64,
}

impl Totals {
    /// `ns` as a share of the time in recorded functions, 0 to 1.
    #[must_use]
    pub fn share(&self, ns: u64) -> f64 {
        if self.functions_ns == 0 { 0.0 } else { (ns as f64 / self.functions_ns as f64).min(1.0) }
    }

    /// Returns the whole that shares of a metric refer to.
    pub(crate) fn total_of_metric(&self, metric: &Metric) -> u64 {
        match metric.source {
            Source::Calls(Column::Cpu) => self.cpu_ns.unwrap_or(0),
            Source::Calls(Column::Calls) => self.entries,
            Source::Calls(Column::Wall) | Source::Stacks { .. } => self.functions_ns,
        }
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.entries = self.entries.saturating_add(other.entries);
        self.functions_ns = self.functions_ns.saturating_add(other.functions_ns);
        self.outside_ns = self.outside_ns.saturating_add(other.outside_ns);
        self.jit_ns = self.jit_ns.saturating_add(other.jit_ns);
        self.suspended_ns = self.suspended_ns.saturating_add(other.suspended_ns);
        self.profiler_ns = self.profiler_ns.saturating_add(other.profiler_ns);
        self.profiler_low_ns = self.profiler_low_ns.saturating_add(other.profiler_low_ns);
        self.profiler_high_ns = self.profiler_high_ns.saturating_add(other.profiler_high_ns);
        self.cpu_ns = add_known(self.cpu_ns, other.cpu_ns);
        self.truncated_calls = self.truncated_calls.saturating_add(other.truncated_calls);
        self.truncated_ns = self.truncated_ns.saturating_add(other.truncated_ns);
    }
}
