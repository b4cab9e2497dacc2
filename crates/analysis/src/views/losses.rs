//! The view `losses`.

use clrscope_recording::model::Recording;

use super::functions::limit;
use crate::query::{Query, QueryProblem};
use crate::rows::{LossRow, Losses};
use crate::select;

/// What was lost, process by process in the order of the reasons, and what could not be read.
/// Losses are counted per process: a selection of threads or functions changes nothing.
///
/// # Errors
/// When no process is meant.
pub fn losses<'a>(recording: &'a Recording, query: &Query) -> Result<Losses<'a>, QueryProblem> {
    let mut rows = Vec::new();
    for process in select::processes(recording, query)? {
        let mut own: Vec<_> = process.losses.iter().filter(|l| in_time(query, l.first_ns, l.last_ns)).collect();
        own.sort_by_key(|l| (l.reason, l.first_ns, l.last_ns, l.count));
        rows.extend(own.into_iter().map(|loss| LossRow { pid: process.pid, loss }));
    }
    limit(&mut rows, query);
    Ok(Losses { rows, problems: &recording.problems })
}

/// Whether something that happened from `first` to `last` touches the time asked for.
fn in_time(query: &Query, first: u64, last: u64) -> bool {
    query.since_ns.is_none_or(|since| last >= since) && query.until_ns.is_none_or(|until| first <= until)
}
