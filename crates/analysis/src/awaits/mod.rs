//! The view `awaits`: how long async methods waited at each of their awaits, and the metric
//! `awaited`.
//!
//! An await counts where its method had to wait. Its time is that from the moment at which the
//! method began to wait to the one at which it went on: that of the operation, and of the queue of
//! the pool behind it.

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

/// A path, with the awaits that have it.
#[derive(Debug, Clone)]
pub struct AwaitPath<'a> {
    /// Number of awaits that ended.
    pub count: u64,
    /// Time of these awaits together, in nanoseconds.
    pub ns: u64,
    stack: CallStack<'a>,
}

impl AwaitPath<'_> {
    /// The frames: the method that awaits, who awaits it, and so on.
    pub fn frames(&self) -> impl Iterator<Item = Frame<'_>> {
        self.stack.iter()
    }
}

/// An await in the code of an async method.
#[derive(Debug, Clone)]
pub struct AwaitRow<'a> {
    /// The process.
    pub process: &'a Process,
    /// The method that awaits, with the place of the await.
    pub frame: Frame<'a>,
    /// What is awaited: the method that gives the task, or the type of what is awaited.
    pub awaits: String,
    /// Awaits that had to wait and have ended.
    pub count: u64,
    /// Whether each of them was recorded.
    pub is_exact: bool,
    /// Awaits that had not ended when the recording did. Their time is in no sum.
    pub pending: u64,
    /// Of those that ended, how many gave an exception rather than a result.
    pub failed: u64,
    /// Of those that ended, how many were cancelled.
    pub cancelled: u64,
    /// Time of those that ended, all together, in nanoseconds.
    pub total_ns: u64,
    /// The part of it that is of no other row: where what is awaited is no method that waits
    /// itself.
    pub self_ns: u64,
    /// Time of the longest, in nanoseconds.
    pub max_ns: u64,
    durations: Durations,
    place: Place,
    /// Paths by which the method was awaited, the longest time first.
    pub paths: Vec<AwaitPath<'a>>,
}

impl AwaitRow<'_> {
    /// Time of an await on average; `None` where none ended.
    #[must_use]
    pub fn mean_ns(&self) -> Option<u64> {
        self.total_ns.checked_div(self.count)
    }

    /// Time within which `percent` of the awaits that ended did, 3 % more or less; `None` where
    /// none ended.
    #[must_use]
    pub fn percentile_ns(&self, percent: u8) -> Option<u64> {
        self.durations.percentile_ns(percent, self.max_ns)
    }
}

/// Awaits of the processes that a query selects, those first that took the longest time themselves,
/// and how many rows the limit left out.
///
/// # Errors
/// When no process or thread is meant, or `awaits` was not recorded.
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

/// The sort is stable: what is equal stays in the order of process, method and place.
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
