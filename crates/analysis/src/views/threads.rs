//! The view `threads`.

use clrscope_recording::model::Recording;

use super::conditions::{Conditions, conditions_of};
use super::process::ProcessSums;
use super::rows::ThreadRow;
use crate::metric::Metric;
use crate::paths;
use crate::query::{Query, QueryProblem, Sort};

/// The view `threads`.
#[derive(Debug, Clone, Default)]
pub struct Threads<'a> {
    /// The rows, sorted and limited.
    pub rows: Vec<ThreadRow<'a>>,
    /// Number of rows that the limit left out.
    pub left_out: usize,
    /// How the selected part was recorded, and its totals.
    pub conditions: Conditions<'a>,
}

/// The threads of the selected processes, in the order of their first appearance. The query may
/// sort them by `calls`, `suspended`, `profiler` or a CPU key. Any other time key sorts them by
/// running time.
///
/// # Errors
/// When the query matches no process or thread, or the query asks for something that is not about
/// threads.
pub fn threads<'a>(recording: &'a Recording, query: &Query) -> Result<Threads<'a>, QueryProblem> {
    query.without_metric("threads")?;
    let metric = Metric::of_samples_or_calls(recording, query, "threads")?;
    let mut rows = Vec::new();
    let mut totals = Vec::new();
    for paths in paths::select(recording, query, metric)? {
        let sums = ProcessSums::new(&paths, &Query { per_thread: false, ..query.clone() });
        totals.push((paths.process, sums.totals));
        rows.extend(sums.threads);
    }
    if let Some(sort) = query.sort {
        // The sort is stable: equal threads keep their order.
        rows.sort_by(|a, b| key(b, sort).cmp(&key(a, sort)).then_with(|| name(a, sort).cmp(name(b, sort))));
    }
    let left_out = query.cut(&mut rows);
    Ok(Threads { rows, left_out, conditions: conditions_of(recording, query, metric, &totals) })
}

fn key(row: &ThreadRow<'_>, sort: Sort) -> u64 {
    match sort {
        Sort::Calls => row.calls,
        Sort::Suspended => row.suspended_ns,
        Sort::Profiler => row.profiler_ns,
        Sort::ExclusiveCpu | Sort::InclusiveCpu => row.cpu_ns.unwrap_or(row.amount.own),
        Sort::Recursion => row.max_depth.into(),
        Sort::Own | Sort::Total | Sort::Exclusive | Sort::Inclusive | Sort::Callee => {
            row.running_ns.max(row.amount.own)
        }
        Sort::Name | Sort::Module => 0,
    }
}

fn name<'a>(row: &ThreadRow<'a>, sort: Sort) -> &'a str {
    if sort == Sort::Name { &row.thread.name } else { "" }
}
