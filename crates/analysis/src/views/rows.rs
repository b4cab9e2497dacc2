//! Rows that several views share.

use std::cmp::Ordering;

use clrscope_recording::model::Thread;

use crate::allocations_by_call::CallAllocations;
use crate::function::FunctionRef;
use crate::metric::Amount;
use crate::query::Sort;
use crate::tiers::Tiers;
use crate::times::{Times, Totals};

/// One row of `functions`: an instantiation or overload in one process, or in one thread of the
/// process.
#[derive(Debug, Clone, Copy)]
pub struct FunctionRow<'a> {
    /// The function.
    pub function: FunctionRef<'a>,
    /// The thread in per-thread reports; `None` if threads are merged.
    pub thread: Option<&'a Thread>,
    /// Calls and times, if the metric is one of `calls`.
    pub times: Times,
    /// The function's amount of the metric.
    pub amount: Amount,
    /// Largest number of activations of the function on one stack; 1 without recursion.
    pub max_recursion: u32,
    /// Number of threads with calls or samples of the function.
    pub threads: u32,
    /// Whether the function was inlined somewhere, so that the number of calls is a lower bound.
    pub inlined: bool,
    /// Whether the function is tail-recursive. Optimised code may replace such calls by jumps, so
    /// the number of calls is a lower bound.
    pub tail_recursive: bool,
    /// Calls of an `async` method, in the row of the method that has its code. That code runs once
    /// per call, and again after each await that waited. `None` for other rows, in per-thread
    /// reports, and if the calls were not recorded.
    pub starts: Option<u64>,
    /// Objects that the function allocated; `None` if allocations were not recorded alongside
    /// calls, and in per-thread reports.
    pub allocated: Option<CallAllocations>,
    /// Samples of the function by the tier of its code. Empty if no samples were taken, and in
    /// per-thread reports.
    pub tiers: Tiers,
}

impl FunctionRow<'_> {
    /// Whether the number of calls is a lower bound.
    #[must_use]
    pub fn counts_at_least(&self) -> bool {
        self.inlined || self.tail_recursive
    }

    /// The function's own work: CPU time, or wall time if CPU time was not measured.
    #[must_use]
    pub fn work_ns(&self) -> u64 {
        match self.amount.samples.total > 0 && self.times == Times::default() {
            true => self.amount.own,
            false => self.times.exclusive_cpu_ns.unwrap_or(self.times.exclusive_ns),
        }
    }

    /// Order of two rows under `sort`.
    #[must_use]
    pub fn compare(&self, other: &Self, sort: Sort) -> Ordering {
        let by_key = match sort {
            Sort::Recursion => other.max_recursion.cmp(&self.max_recursion),
            Sort::Module => self.function.module().cmp(other.function.module()),
            _ => key(&other.times, other.amount, sort).cmp(&key(&self.times, self.amount, sort)),
        };
        let thread = |row: &Self| row.thread.map_or(0, |t| t.id);
        by_key.then_with(|| self.function.compare(&other.function)).then_with(|| thread(self).cmp(&thread(other)))
    }
}

/// The number by which rows of paths are sorted under `sort`; 0 if they are sorted by name.
pub(crate) fn key(times: &Times, amount: Amount, sort: Sort) -> u64 {
    match sort {
        Sort::Own => amount.own,
        Sort::Total => amount.total,
        _ => times.key(sort),
    }
}

/// One row of `threads`.
#[derive(Debug, Clone, Copy)]
pub struct ThreadRow<'a> {
    /// Id of the process.
    pub pid: u32,
    /// The thread, with its ids, name, role, and times of creation and end.
    pub thread: &'a Thread,
    /// Wall time inside recorded functions, without suspensions and the profiler's share.
    pub running_ns: u64,
    /// Wall time outside all recorded functions, without the profiler's share.
    pub outside_ns: u64,
    /// CPU time; `None` if not measured.
    pub cpu_ns: Option<u64>,
    /// The thread's amount of a sampled metric.
    pub amount: Amount,
    /// Time that the runtime suspended the thread.
    pub suspended_ns: u64,
    /// The profiler's share of the thread's time.
    pub profiler_ns: u64,
    /// Lower bound of the profiler's share.
    pub profiler_low_ns: u64,
    /// Upper bound of the profiler's share.
    pub profiler_high_ns: u64,
    /// Calls of functions, without compilations and suspensions.
    pub calls: u64,
    /// Largest number of functions on a path.
    pub max_depth: u32,
}

/// The row of a thread from its `totals`. `running_ns` and `outside_ns` exclude the profiler's
/// share. Together with that share and the suspensions, they add up to the measured time of the
/// thread.
pub(crate) fn thread_row<'a>(
    pid: u32,
    thread: &'a Thread,
    totals: &Totals,
    own: ThreadOwn,
    max_depth: u32,
) -> ThreadRow<'a> {
    ThreadRow {
        pid,
        thread,
        running_ns: own.running_ns,
        outside_ns: own.outside_ns,
        cpu_ns: thread.cpu_ns,
        amount: Amount::default(),
        suspended_ns: totals.suspended_ns,
        profiler_ns: totals.profiler_ns,
        profiler_low_ns: totals.profiler_low_ns,
        profiler_high_ns: totals.profiler_high_ns,
        calls: totals.calls,
        max_depth,
    }
}

/// A thread's time without the profiler's share.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ThreadOwn {
    pub(crate) running_ns: u64,
    pub(crate) outside_ns: u64,
}
