//! The view `functions`.

use clrscope_recording::model::Recording;

use super::conditions::{Conditions, conditions_of};
use super::process::ProcessSums;
use super::rows::FunctionRow;
use crate::allocations_by_call;
use crate::metric::Metric;
use crate::paths::{self, Paths};
use crate::query::{Query, QueryProblem, Sort};
use crate::samples::{SAMPLED_CPU, SAMPLED_WALL};

/// The view `functions`.
#[derive(Debug, Clone, Default)]
pub struct Functions<'a> {
    /// The rows, sorted and limited.
    pub rows: Vec<FunctionRow<'a>>,
    /// Number of rows that the limit left out.
    pub left_out: usize,
    /// How the selected part was recorded, and its totals.
    pub conditions: Conditions<'a>,
}

/// One row per function of a process, or per function and thread if the query asks for rows per
/// thread.
///
/// # Errors
/// When the query matches no process or thread. Also when it asks for a part of the time that the
/// metric can't follow, for a metric that was not recorded, or for an order that its rows do not
/// have.
pub fn functions<'a>(recording: &'a Recording, query: &Query) -> Result<Functions<'a>, QueryProblem> {
    functions_by(recording, query, Metric::of_view(recording, query, "functions")?)
}

/// The view by a metric.
pub(crate) fn functions_by<'a>(
    recording: &'a Recording,
    query: &Query,
    metric: &'static Metric,
) -> Result<Functions<'a>, QueryProblem> {
    let sort = query.order(metric, "functions", Sort::Own)?;
    let mut out = Functions::default();
    let mut totals = Vec::new();
    let mut beside = samples_beside(recording, query, metric)?.into_iter();
    let mut allocations = allocations_by_call::select(recording, query, metric)?.into_iter();
    let mut samples = 0_u64;
    for paths in paths::select(recording, query, metric)? {
        let mut sums = ProcessSums::with_tiers(recording, &paths, query);
        totals.push((paths.process, sums.totals));
        if let Some(more) = beside.next() {
            let more = ProcessSums::new(&more, query);
            samples = samples.saturating_add(more.totals.cpu_ns.unwrap_or(0));
            sums.put_beside(&more);
        }
        if let Some(allocations) = allocations.next() {
            sums.put_allocations(&allocations);
        }
        let wanted = sums.catalog.wanted(query);
        if query.per_thread {
            out.rows.extend(sums.rows_per_thread(&wanted));
        } else {
            out.rows.extend(sums.rows(&wanted));
        }
    }
    out.rows.sort_by(|a, b| a.compare(b, sort));
    out.left_out = query.cut(&mut out.rows);
    out.conditions = conditions_of(recording, query, metric, &totals);
    out.conditions.samples = out.conditions.samples.max(samples);
    Ok(out)
}

/// The samples that were taken alongside `calls`, for a view that shows a metric of `calls`. Either
/// for the same processes in the same order, or empty.
fn samples_beside<'a>(
    recording: &'a Recording,
    query: &Query,
    metric: &'static Metric,
) -> Result<Vec<Paths<'a>>, QueryProblem> {
    let sampled = [&SAMPLED_CPU, &SAMPLED_WALL].into_iter().find(|sampled| sampled.is_in(recording));
    match sampled.filter(|_| metric.is_of_calls()) {
        Some(sampled) => paths::select(recording, query, sampled),
        None => Ok(Vec::new()),
    }
}
