//! The view `functions`.

use std::cmp::Ordering;

use clrscope_recording::model::{Recording, Thread};

use super::conditions::{Conditions, conditions_of};
use super::process::ProcessSums;
use crate::function::FunctionRef;
use crate::query::{Query, QueryProblem, Sort};
use crate::select;
use crate::times::Times;

/// One row of `functions`: an instantiation or overload in one process, or in one thread of it.
#[derive(Debug, Clone, Copy)]
pub struct FunctionRow<'a> {
    /// The function.
    pub function: FunctionRef<'a>,
    /// The thread, in per-thread reports.
    pub thread: Option<&'a Thread>,
    /// Calls and times.
    pub times: Times,
    /// How many activations of it lay on one stack at once, at most; 1 without recursion.
    pub max_recursion: u32,
    /// How many threads called it.
    pub threads: u32,
}

impl FunctionRow<'_> {
    /// Order of two rows under `sort`.
    #[must_use]
    pub fn compare(&self, other: &Self, sort: Sort) -> Ordering {
        let by_key = match sort {
            Sort::Recursion => other.max_recursion.cmp(&self.max_recursion),
            Sort::Module => self.function.module().cmp(other.function.module()),
            _ => other.times.key(sort).cmp(&self.times.key(sort)),
        };
        let thread = |row: &Self| row.thread.map_or(0, |t| t.id);
        by_key.then_with(|| self.function.compare(&other.function)).then_with(|| thread(self).cmp(&thread(other)))
    }
}

/// The view `functions`.
#[derive(Debug, Clone, Default)]
pub struct Functions<'a> {
    /// The rows, ordered and limited.
    pub rows: Vec<FunctionRow<'a>>,
    /// Rows that the limit left out.
    pub left_out: usize,
    /// How the selected part came about, with its sums.
    pub conditions: Conditions<'a>,
}

/// Rows per function, merged over the threads of a process or one per thread.
///
/// # Errors
/// When no process or thread is meant, or the query asks for a part of the time.
pub fn functions<'a>(recording: &'a Recording, query: &Query) -> Result<Functions<'a>, QueryProblem> {
    query.whole_run("functions")?;
    let mut out = Functions::default();
    let mut totals = Vec::new();
    for selected in select::threads(recording, query)? {
        let sums = ProcessSums::new(&selected, query);
        totals.push((selected.process, sums.totals));
        let wanted = sums.catalog.wanted(query);
        if query.per_thread {
            out.rows.extend(sums.rows_per_thread(&wanted));
        } else {
            out.rows.extend(sums.rows(&wanted));
        }
    }
    let sort = query.sort.unwrap_or(Sort::Exclusive);
    out.rows.sort_by(|a, b| a.compare(b, sort));
    out.left_out = query.cut(&mut out.rows);
    out.conditions = conditions_of(recording, query, &totals);
    Ok(out)
}
