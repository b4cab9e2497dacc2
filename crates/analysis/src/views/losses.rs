//! The view `losses`.

use clrscope_recording::model::{Loss, Problem, Recording};

use crate::query::{Query, QueryProblem};
use crate::select;

/// One row of `losses`.
#[derive(Debug, Clone, Copy)]
pub struct LossRow<'a> {
    /// Id of the process.
    pub pid: u32,
    /// Reason and number of lost items, and the times of the first and last loss.
    pub loss: &'a Loss,
}

/// The view `losses`.
#[derive(Debug, Clone, Default)]
pub struct Losses<'a> {
    /// The rows, ordered by process and reason.
    pub rows: Vec<LossRow<'a>>,
    /// Number of rows that the limit left out.
    pub left_out: usize,
    /// Parts of the recording that could not be read.
    pub problems: &'a [Problem],
}

/// Losses of each process in the order of the reasons, and the parts that could not be read. Losses
/// are counted per process, so filters of threads and functions do not change them.
///
/// # Errors
/// When the query matches no process.
pub fn losses<'a>(recording: &'a Recording, query: &Query) -> Result<Losses<'a>, QueryProblem> {
    query.without_metric("losses")?;
    let mut rows = Vec::new();
    for process in select::processes(recording, query)? {
        let mut own: Vec<_> = process.losses.iter().filter(|l| query.wants_span(l.first_ns, l.last_ns)).collect();
        own.sort_by_key(|l| (l.reason, l.first_ns, l.last_ns, l.count));
        rows.extend(own.into_iter().map(|loss| LossRow { pid: process.pid, loss }));
    }
    let left_out = query.cut(&mut rows);
    Ok(Losses { rows, left_out, problems: &recording.problems })
}
