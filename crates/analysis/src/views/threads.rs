//! The view `threads`.

use clrscope_recording::model::{Recording, Thread};

use super::conditions::{Conditions, conditions_of};
use super::process::ProcessSums;
use crate::query::{Query, QueryProblem, Sort};
use crate::select;
use crate::times::Totals;

/// One row of `threads`.
#[derive(Debug, Clone, Copy)]
pub struct ThreadRow<'a> {
    /// The process.
    pub pid: u32,
    /// Ids, name, role, times of creation and end.
    pub thread: &'a Thread,
    /// Wall time inside recorded functions, without suspensions and the profiler's share.
    pub running_ns: u64,
    /// Wall time outside every recorded function, without the profiler's share.
    pub outside_ns: u64,
    /// CPU time, where measured.
    pub cpu_ns: Option<u64>,
    /// Time suspended by the runtime.
    pub suspended_ns: u64,
    /// The profiler's share.
    pub profiler_ns: u64,
    /// The share is believed to be at least this.
    pub profiler_low_ns: u64,
    /// The share is believed to be at most this.
    pub profiler_high_ns: u64,
    /// Calls of functions, without compilations and suspensions.
    pub calls: u64,
    /// Deepest path, in functions.
    pub max_depth: u32,
}

/// The view `threads`.
#[derive(Debug, Clone, Default)]
pub struct Threads<'a> {
    /// The rows, ordered and limited.
    pub rows: Vec<ThreadRow<'a>>,
    /// Rows that the limit left out.
    pub left_out: usize,
    /// How the selected part came about, with its sums.
    pub conditions: Conditions<'a>,
}

/// The threads of the selected processes, in the order in which they were first seen, or by `calls`,
/// `suspended`, `profiler`, a CPU key or any other time (by running time) when the query sorts.
///
/// # Errors
/// When no process or thread is meant, or the query asks for something that is not about threads.
pub fn threads<'a>(recording: &'a Recording, query: &Query) -> Result<Threads<'a>, QueryProblem> {
    query.whole_run("threads")?;
    let mut rows = Vec::new();
    let mut totals = Vec::new();
    for selected in select::threads(recording, query)? {
        let sums = ProcessSums::new(&selected, &Query { per_thread: false, ..query.clone() });
        totals.push((selected.process, sums.totals));
        rows.extend(sums.threads);
    }
    if let Some(sort) = query.sort {
        // The sort is stable: equal threads keep their order.
        rows.sort_by(|a, b| key(b, sort).cmp(&key(a, sort)).then_with(|| name(a, sort).cmp(name(b, sort))));
    }
    let left_out = query.cut(&mut rows);
    Ok(Threads { rows, left_out, conditions: conditions_of(recording, query, &totals) })
}

fn key(row: &ThreadRow<'_>, sort: Sort) -> u64 {
    match sort {
        Sort::Calls => row.calls,
        Sort::Suspended => row.suspended_ns,
        Sort::Profiler => row.profiler_ns,
        Sort::ExclusiveCpu | Sort::InclusiveCpu => row.cpu_ns.unwrap_or(0),
        Sort::Recursion => row.max_depth.into(),
        Sort::Exclusive | Sort::Inclusive | Sort::Callee => row.running_ns,
        Sort::Name | Sort::Module => 0,
    }
}

fn name<'a>(row: &ThreadRow<'a>, sort: Sort) -> &'a str {
    if sort == Sort::Name { &row.thread.name } else { "" }
}

/// The row of a thread: `totals` are its own, `running_ns` and `outside_ns` are without the
/// profiler's share, so that with it and suspensions they are the measured time of the thread.
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
