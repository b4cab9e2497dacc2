//! The conditions of a recording: what a reader must know before believing its numbers.

use clrscope_recording::model::{CallsInfo, Process, Recording, Remark};

use super::process::ProcessSums;
use crate::query::{Query, QueryProblem};
use crate::select;
use crate::times::Totals;

/// How the selected part of a recording came about.
#[derive(Debug, Clone, Default)]
pub struct Conditions<'a> {
    /// Instruments with every option filled in, filters included, as the agent understood them.
    pub instruments: &'a str,
    /// Process by process.
    pub processes: Vec<ProcessConditions<'a>>,
    /// Sums over all of them.
    pub totals: Totals,
    /// Times are as measured.
    pub raw: bool,
}

/// The conditions in one process.
#[derive(Debug, Clone, Copy)]
pub struct ProcessConditions<'a> {
    /// The process.
    pub process: &'a Process,
    /// Settings of `calls`: clock, interval, inlining, what is in the tree; `None` where it did not run.
    pub calls: Option<&'a CallsInfo>,
    /// Its sums: compilation, suspensions, the profiler's share with bounds, truncated paths.
    pub totals: Totals,
    /// Its share of the time in recorded functions of all selected processes, 0 to 1.
    pub share: f64,
    /// How many things were lost: the counts of its losses that are not mere information.
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
    for selected in select::threads(recording, query)? {
        sums.push((selected.process, ProcessSums::new(&selected, &plain).totals));
    }
    Ok(conditions_of(recording, query, &sums))
}

/// The conditions where the sums are known already.
pub(crate) fn conditions_of<'a>(
    recording: &'a Recording,
    query: &Query,
    sums: &[(&'a Process, Totals)],
) -> Conditions<'a> {
    let mut all = Totals::default();
    sums.iter().for_each(|(_, totals)| all.add(totals));
    let of_process = |&(process, totals): &(&'a Process, Totals)| ProcessConditions {
        process,
        calls: process.calls.as_ref(),
        totals,
        share: all.share(totals.functions_ns),
        lost: process.losses.iter().filter(|l| !l.reason.is_benign()).fold(0, |n, l| n.saturating_add(l.count)),
        remarks: &process.remarks,
    };
    Conditions {
        instruments: &recording.run.instruments,
        processes: sums.iter().map(of_process).collect(),
        totals: all,
        raw: query.raw,
    }
}
