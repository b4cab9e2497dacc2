//! The view `functions`.

use clrscope_recording::model::Recording;

use super::conditions::{Conditions, conditions_of};
use super::process::ProcessSums;
use super::rows::FunctionRow;
use crate::query::{Query, QueryProblem, Sort};
use crate::select;

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
