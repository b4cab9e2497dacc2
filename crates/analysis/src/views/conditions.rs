//! The conditions of a recording: what a reader must know before believing its numbers.

use clrscope_contract::request::InstrumentRequest;
use clrscope_recording::model::{CallsInfo, Clock, Process, Recording, Remark};

use super::process::totals;
use crate::metric::{Amount, Metric, WALL};
use crate::paths;
use crate::query::{Query, QueryProblem};
use crate::samples::{SAMPLED_CPU, SAMPLED_WALL, SamplingConditions, sampling_conditions};
use crate::times::{Times, Totals};

/// Conditions under which the selected part of a recording came about.
#[derive(Debug, Clone, Default)]
pub struct Conditions<'a> {
    /// Request with every option filled in, filters included, as the agent understood it.
    pub recorded: &'a str,
    /// The instruments of that.
    pub instruments: &'a [InstrumentRequest],
    /// Process by process.
    pub processes: Vec<ProcessConditions<'a>>,
    /// Sums over all of them; nothing where the metric is not one of `calls`.
    pub totals: Totals,
    /// Times are as measured.
    pub raw: bool,
    /// Metric of paths.
    pub metric: &'static Metric,
    /// Samples in all of them, before any limit or filter of functions; 0 where none were taken.
    pub samples: u64,
    /// What rows count in addition to the amount ([`Metric::second`]), in all; 0 where they count
    /// nothing.
    pub second: u64,
    /// Conditions under which samples were taken, an entry for each instrument that took some.
    pub sampling: Vec<SamplingConditions<'a>>,
    /// The metric over all of them, before any limit or filter of functions: what shares are shares
    /// of.
    pub total: u64,
}

/// Shortest times that sampling clocks can resolve, nanoseconds; 0 where every time is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Resolution {
    /// Of wall time.
    pub wall_ns: u64,
    /// Of CPU time.
    pub cpu_ns: u64,
}

impl Conditions<'_> {
    /// Resolution of the coarsest clock among the processes.
    #[must_use]
    pub fn resolution(&self) -> Resolution {
        let calls = || self.processes.iter().filter_map(|process| process.calls);
        let sampled = calls().filter(|calls| calls.clock == Clock::Sampled);
        let most = |interval: Option<u64>| interval.unwrap_or(0);
        Resolution {
            wall_ns: most(sampled.map(|calls| calls.interval_ns).max()),
            cpu_ns: most(calls().map(|calls| calls.interval_ns).max()),
        }
    }

    /// `amount` of the metric as a share of the whole, 0 to 1.
    #[must_use]
    pub fn share(&self, amount: u64) -> f64 {
        share(amount, self.total)
    }

    /// Work in all, nanoseconds: what shares of work are of.
    #[must_use]
    pub fn work_ns(&self) -> u64 {
        match self.metric.is_of_calls() {
            true => self.totals.cpu_ns.unwrap_or(self.totals.functions_ns),
            false => self.total,
        }
    }

    /// The share of a row that says whether it is too small to be shown: of the metric, or of the
    /// time where the metric has no totals; 1 where there is nothing to have a share of.
    #[must_use]
    pub fn size(&self, times: &Times, amount: Amount) -> f64 {
        let (size, all) = match self.metric.exclusive {
            true => (times.inclusive_ns, self.totals.functions_ns),
            false => (amount.total, self.total),
        };
        if all == 0 { 1.0 } else { share(size, all) }
    }
}

/// `amount` as a share of `total`, 0 to 1.
pub(crate) fn share(amount: u64, total: u64) -> f64 {
    if total == 0 { 0.0 } else { (amount as f64 / total as f64).min(1.0) }
}

/// The conditions in one process.
#[derive(Debug, Clone, Copy)]
pub struct ProcessConditions<'a> {
    /// The process.
    pub process: &'a Process,
    /// Settings of `calls`: clock, interval, inlining, what is in the tree; `None` where it did not
    /// run.
    pub calls: Option<&'a CallsInfo>,
    /// Sums of the process: compilation, suspensions, the profiler's share with bounds, truncated
    /// paths.
    pub totals: Totals,
    /// Share of the process in the metric in all selected processes, 0 to 1; of the time in
    /// recorded functions with any metric of `calls`.
    pub share: f64,
    /// Number of data items lost: the counts of its losses that are not mere information.
    pub lost: u64,
    /// Remarks of the agent.
    pub remarks: &'a [Remark],
}

/// The conditions of what a query selects.
///
/// # Errors
/// When no process or thread is meant.
pub fn conditions<'a>(recording: &'a Recording, query: &Query) -> Result<Conditions<'a>, QueryProblem> {
    let plain = Query { per_thread: false, ..query.clone() };
    let mut sums = Vec::new();
    let all = [&WALL, &SAMPLED_CPU, &SAMPLED_WALL];
    let metric = all.into_iter().find(|metric| metric.is_in(recording)).unwrap_or(&WALL);
    for paths in paths::select(recording, query, metric)? {
        sums.push((paths.process, totals(&paths, &plain)));
    }
    Ok(conditions_of(recording, query, metric, &sums))
}

/// The conditions where the sums are known already.
pub(crate) fn conditions_of<'a>(
    recording: &'a Recording,
    query: &Query,
    metric: &'static Metric,
    sums: &[(&'a Process, Totals)],
) -> Conditions<'a> {
    let mut all = Totals::default();
    sums.iter().for_each(|(_, totals)| all.add(totals));
    let of_calls = |totals: Totals| if metric.is_of_calls() { totals } else { Totals::default() };
    let of_process = |&(process, totals): &(&'a Process, Totals)| ProcessConditions {
        process,
        calls: process.calls.as_ref(),
        totals: of_calls(totals),
        share: all.share(totals.functions_ns),
        lost: process.losses.iter().filter(|l| !l.reason.is_benign()).fold(0, |n, l| n.saturating_add(l.count)),
        remarks: &process.remarks,
    };
    Conditions {
        recorded: recording.run.filled.text(),
        instruments: recording.run.filled.instruments(),
        processes: sums.iter().map(of_process).collect(),
        totals: of_calls(all),
        raw: query.raw,
        metric,
        sampling: sampling_conditions(sums.iter().map(|(process, _)| *process)),
        samples: if metric.is_sampled() { all.cpu_ns.unwrap_or(0) } else { 0 },
        second: all.cpu_ns.filter(|_| metric.second.is_some()).unwrap_or(0),
        total: all.total_of_metric(metric),
    }
}
