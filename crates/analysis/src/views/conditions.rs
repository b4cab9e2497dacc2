//! The conditions of a recording: what a reader must know to judge its numbers.

use clrscope_contract::request::InstrumentRequest;
use clrscope_recording::model::{CallsInfo, Clock, Process, Recording, Remark};

use super::process::totals;
use crate::metric::{Amount, Metric, WALL};
use crate::paths;
use crate::query::{Query, QueryProblem};
use crate::samples::{SAMPLED_CPU, SAMPLED_WALL, SamplingConditions, sampling_conditions};
use crate::times::{Times, Totals};

/// Conditions under which the selected part of a recording was made.
#[derive(Debug, Clone, Default)]
pub struct Conditions<'a> {
    /// The request with all options and filters, as parsed by the agent.
    pub recorded: &'a str,
    /// The instruments of that request.
    pub instruments: &'a [InstrumentRequest],
    /// How each process was recorded.
    pub processes: Vec<ProcessConditions<'a>>,
    /// Totals of all processes; zero if the metric does not come from `calls`.
    pub totals: Totals,
    /// Whether times are shown as measured, including the profiler's share.
    pub raw: bool,
    /// Metric that paths are shown with.
    pub metric: &'static Metric,
    /// Number of samples in all processes, before any limit and any filter of functions; 0 if no
    /// samples were taken.
    pub samples: u64,
    /// Total of the metric's second number ([`Metric::second`]); 0 if the metric has none.
    pub second: u64,
    /// Conditions under which samples were taken. One entry for each instrument that took samples.
    pub sampling: Vec<SamplingConditions<'a>>,
    /// Total of the metric over all processes, before any limit and any filter of functions. Shares
    /// refer to this total.
    pub total: u64,
}

/// Shortest times that sampling clocks can resolve, in nanoseconds; 0 if the clock resolves every
/// time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Resolution {
    /// Resolution of wall time.
    pub wall_ns: u64,
    /// Resolution of CPU time.
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

    /// `amount` of the metric as a share of `total`, 0 to 1.
    #[must_use]
    pub fn share(&self, amount: u64) -> f64 {
        share(amount, self.total)
    }

    /// Total work, in nanoseconds. Shares of work refer to this total.
    #[must_use]
    pub fn work_ns(&self) -> u64 {
        match self.metric.is_of_calls() {
            true => self.totals.cpu_ns.unwrap_or(self.totals.functions_ns),
            false => self.total,
        }
    }

    /// The share of a row that decides whether the row is large enough to be shown. It is the share
    /// of the metric, or of the time if the metric has no totals; 1 if the total is zero.
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

/// How one process was recorded.
#[derive(Debug, Clone, Copy)]
pub struct ProcessConditions<'a> {
    /// The process.
    pub process: &'a Process,
    /// Settings of `calls` (clock, interval, inlining, contents of the tree); `None` if `calls` did
    /// not run.
    pub calls: Option<&'a CallsInfo>,
    /// Sums of the process: compilation, suspensions, the profiler's share with its bounds,
    /// truncated paths.
    pub totals: Totals,
    /// The process's share of the metric over all selected processes, 0 to 1. With a metric of
    /// `calls` it is the share of the time in recorded functions.
    pub share: f64,
    /// Number of lost data items, except losses that are only for information.
    pub lost: u64,
    /// Remarks that the agent recorded.
    pub remarks: &'a [Remark],
}

/// How the part that a query selects was recorded.
///
/// # Errors
/// When the query matches no process or thread.
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

/// The conditions, computed from the sums of the processes.
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
        lost: process.lost(),
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
