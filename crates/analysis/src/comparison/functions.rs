//! Functions on two sides.

use std::cmp::Ordering;

use super::identity::Identities;
use super::interval::{Change, IntervalEstimate, Verdict};
use super::reading::{Amounts, Reading, Sum, rows, totals};
use super::sides::{ComparisonProblem, Sides};
use crate::function::FunctionRef;
use crate::metric::Metric;
use crate::query::{Query, Sort};

/// A function, or a path of calls, on two sides.
#[derive(Debug, Clone, Copy)]
pub struct PathChange<'a> {
    /// Depth of the path, 0 for functions and for the outermost of a path.
    pub depth: u32,
    /// The function, of the last recording that has it.
    pub function: FunctionRef<'a>,
    /// Own amount.
    pub own: Change,
    /// Amount with everything that was called.
    pub total: Change,
    /// The own amount as a part of the whole, 0 to 1.
    pub own_share: Change,
    /// The total as a part of the whole, 0 to 1.
    pub total_share: Change,
}

impl PathChange<'_> {
    /// Whether either side has an own amount: others have nothing but what they called.
    #[must_use]
    pub fn has_own(&self) -> bool {
        self.own.before.median > 0.0 || self.own.after.median > 0.0
    }
}

/// Functions on two sides.
#[derive(Debug)]
pub struct FunctionChanges<'a> {
    /// The metric.
    pub metric: &'static Metric,
    /// The rows: first what changed, then what chance may have done, then what is as it was; the
    /// largest difference first unless the query says otherwise.
    pub rows: Vec<PathChange<'a>>,
    /// Rows that the limit left out.
    pub left_out: usize,
    /// Numbers of rows with an own amount on either side, those left out among them, by verdict on
    /// that.
    pub verdicts: Verdicts,
    /// Everything together.
    pub total: Change,
}

/// Numbers of rows by verdict.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Verdicts {
    /// Rows with a change beyond chance.
    pub changed: u64,
    /// Rows with a difference that chance may have made.
    pub unclear: u64,
    /// Rows that are as they were.
    pub same: u64,
}

impl Verdicts {
    /// Counts a row.
    pub(super) fn count(&mut self, verdict: Verdict) {
        match verdict {
            Verdict::Same => self.same += 1,
            Verdict::Unclear => self.unclear += 1,
            _ => self.changed += 1,
        }
    }
}

/// Sums of one function in every recording, those before first.
struct RunSums<'a> {
    function: FunctionRef<'a>,
    sums: Vec<Sum>,
}

/// Compares functions.
///
/// # Errors
/// When the sides have no such metric in common, or a recording has nothing that is meant.
pub fn function_changes<'a>(sides: &Sides<'a>, query: &Query) -> Result<FunctionChanges<'a>, ComparisonProblem> {
    let query = &sides.resolved(query)?;
    let metric = sides.metric(query)?;
    let readings = sides.read(|recording| Reading::read(recording, query, metric))?;
    let found = sides.read(|recording| rows(recording, query, metric))?;
    let recordings = found.iter().map(Vec::len).sum();
    let (mut identities, mut known) = (Identities::default(), Vec::<RunSums<'a>>::new());
    for (at, (row, sum)) in
        found.iter().flatten().enumerate().flat_map(|(at, rows)| rows.iter().map(move |row| (at, row)))
    {
        let number = identities.number_of_function(&row.function) as usize;
        if number == known.len() {
            known.push(RunSums { function: row.function, sums: vec![Sum::default(); recordings] });
        }
        known[number].function = row.function;
        known[number].sums[at].add(sum);
    }
    let mut changes: Vec<PathChange<'a>> =
        known.iter().map(|one| change(0, one.function, &readings, |at| one.sums[at])).collect();
    let mut verdicts = Verdicts::default();
    changes.iter().filter(|row| row.has_own()).for_each(|row| verdicts.count(row.own.verdict));
    changes.sort_by(|a, b| compare(a, b, query.sort.unwrap_or(Sort::Own)));
    let left_out = query.cut(&mut changes);
    Ok(FunctionChanges { metric, rows: changes, left_out, verdicts, total: totals(&readings) })
}

/// The row of a function or path, of its sum in each recording.
pub(super) fn change<'a>(
    depth: u32,
    function: FunctionRef<'a>,
    [before, after]: &[Vec<Reading>; 2],
    sum: impl Fn(usize) -> Sum,
) -> PathChange<'a> {
    let amounts = |from: usize, all: &[Reading]| -> Vec<Amounts> {
        all.iter().enumerate().map(|(at, reading)| reading.amounts(&sum(from + at))).collect()
    };
    let (old, new) = (amounts(0, before), amounts(before.len(), after));
    let of = |part: fn(&Amounts) -> IntervalEstimate| {
        let side = |all: &[Amounts]| all.iter().map(part).collect::<Vec<_>>();
        Change::between(&side(&old), &side(&new))
    };
    PathChange {
        depth,
        function,
        own: of(|amounts| amounts.own),
        total: of(|amounts| amounts.total),
        own_share: of(|amounts| amounts.own_share),
        total_share: of(|amounts| amounts.total_share),
    }
}

/// Order of rows: by name or module, or by the difference of own amount or total, changes beyond
/// chance first.
pub(super) fn compare(a: &PathChange<'_>, b: &PathChange<'_>, sort: Sort) -> Ordering {
    let by = |of: for<'r, 'p> fn(&'r PathChange<'p>) -> &'r Change| by_size(of(a), of(b));
    let order = match sort {
        Sort::Name => Ordering::Equal,
        Sort::Module => a.function.module().cmp(b.function.module()),
        Sort::Total | Sort::Inclusive => by(|row| &row.total),
        _ => by(|row| &row.own),
    };
    order.then_with(|| a.function.compare(&b.function))
}

/// Order of changes: those beyond chance first, the largest difference first.
pub(super) fn by_size(a: &Change, b: &Change) -> Ordering {
    let rank = |change: &Change| match change.verdict {
        Verdict::Same => 2,
        Verdict::Unclear => 1,
        _ => 0,
    };
    rank(a).cmp(&rank(b)).then_with(|| b.difference.abs().total_cmp(&a.difference.abs()))
}
