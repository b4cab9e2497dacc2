//! The view `awaits`: how long async methods waited at each of their awaits, and the metric
//! `awaited`.
//!
//! An await counts only if its method had to wait. Its time lasts from the moment when the method
//! began to wait until the method resumed. It includes the operation and the time in the queue of
//! the thread pool after it.

mod activity;
mod for_request;
mod metric;
mod outer;
mod rows;

use clrscope_recording::layout::instrument;
use clrscope_recording::model::{Process, Recording};

use crate::durations::Durations;
use crate::exceptions::{CallStack, Frame};
use crate::query::{Query, QueryProblem, Sort};
use crate::select::{self, SelectedProcess};

pub(crate) use activity::AwaitActivity;
pub(crate) use for_request::{RequestAwait, awaits_of_request};
pub(crate) use metric::AWAITED;
use outer::Place;
use rows::Grouping;

/// A path of awaiters, with the number and time of its awaits.
#[derive(Debug, Clone)]
pub struct AwaitPath<'a> {
    /// Number of awaits that ended.
    pub count: u64,
    /// Total time of these awaits, in nanoseconds.
    pub ns: u64,
    stack: CallStack<'a>,
}

impl AwaitPath<'_> {
    /// The frames: the method that awaits, then its awaiter, and so on.
    pub fn frames(&self) -> impl Iterator<Item = Frame<'_>> {
        self.stack.iter()
    }
}

/// An await in the code of an async method.
#[derive(Debug, Clone)]
pub struct AwaitRow<'a> {
    /// The process.
    pub process: &'a Process,
    /// The awaiting method, with the location of the await.
    pub frame: Frame<'a>,
    /// The awaited operation: the method that returns the task, or the type of the awaited object.
    pub awaits: String,
    /// Number of awaits that really waited and have ended.
    pub count: u64,
    /// Whether each of these awaits was recorded.
    pub is_exact: bool,
    /// Number of awaits still pending at the end of the recording. No total includes their time.
    pub pending: u64,
    /// Number of ended awaits that threw an exception.
    pub failed: u64,
    /// Number of ended awaits that were cancelled.
    pub cancelled: u64,
    /// Total time of the ended awaits, in nanoseconds.
    pub total_ns: u64,
    /// The part of the total time that no other row counts: time of awaits whose awaited operation
    /// is not a method that itself waits.
    pub self_ns: u64,
    /// Time of the longest await, in nanoseconds.
    pub max_ns: u64,
    durations: Durations,
    place: Place,
    /// Paths of methods that awaited this method, the path with the longest time first.
    pub paths: Vec<AwaitPath<'a>>,
}

impl AwaitRow<'_> {
    /// Mean time of an await; `None` if none ended.
    #[must_use]
    pub fn mean_ns(&self) -> Option<u64> {
        self.total_ns.checked_div(self.count)
    }

    /// Time within which `percent` percent of the ended awaits completed, with an error of 3 %;
    /// `None` if none ended.
    #[must_use]
    pub fn percentile_ns(&self, percent: u8) -> Option<u64> {
        self.durations.percentile_ns(percent, self.max_ns)
    }
}

/// The awaits of the processes that a query selects, the longest self time first. Also returns the
/// number of rows that the limit left out.
///
/// # Errors
/// When the query selects no process or thread, or `awaits` was not recorded.
pub fn awaits<'a>(recording: &'a Recording, query: &Query) -> Result<(Vec<AwaitRow<'a>>, usize), QueryProblem> {
    query.without_metric("awaits")?;
    let (mut rows, mut is_recorded) = (Vec::new(), false);
    for SelectedProcess { process, .. } in select::threads(recording, query)? {
        for arena in process.arenas(instrument::AWAITS) {
            is_recorded = true;
            let mut grouping = Grouping::new(process, query);
            arena.chunks.iter().for_each(|chunk| grouping.add_chunk(chunk));
            rows.extend(grouping.finish());
        }
    }
    if !is_recorded {
        return Err(QueryProblem::NotRecorded { view: "awaits", instrument: instrument::AWAITS });
    }
    order(&mut rows, query.sort);
    let left_out = query.cut(&mut rows);
    Ok((rows, left_out))
}

/// The sort is stable: equal rows stay in the order of process, method and place.
fn order(rows: &mut [AwaitRow<'_>], sort: Option<Sort>) {
    use std::cmp::Reverse;

    match sort {
        Some(Sort::Name) => rows.sort_by(|a, b| a.frame.function.name().cmp(b.frame.function.name())),
        Some(Sort::Module) => rows.sort_by(|a, b| a.frame.function.module().cmp(b.frame.function.module())),
        Some(Sort::Calls) => rows.sort_by_key(|row| Reverse(row.count)),
        Some(Sort::Total) => rows.sort_by_key(|row| Reverse((row.total_ns, row.pending))),
        _ => rows.sort_by_key(|row| Reverse((row.self_ns, row.total_ns, row.pending))),
    }
}
