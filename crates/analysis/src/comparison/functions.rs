//! Changes of functions between the two sides.

use std::cmp::Ordering;

use super::identity::Identities;
use super::interval::{Change, IntervalEstimate, Verdict};
use super::merging::Merging;
use super::reading::{Amounts, Reading, Sum, rows, totals};
use super::sides::{ComparisonProblem, Sides};
use crate::function::FunctionRef;
use crate::metric::Metric;
use crate::query::{Query, Sort};

/// Change of a function, or of a path of calls, between the two sides.
#[derive(Debug, Clone, Copy)]
pub struct PathChange<'a> {
    /// Depth of the path; 0 for functions and for the outermost function of a path.
    pub depth: u32,
    /// The function, from the last recording that has it.
    pub function: FunctionRef<'a>,
    /// Change of the own amount.
    pub own: Change,
    /// Change of the total: the amount including all callees.
    pub total: Change,
    /// Change of the own amount as a share of the whole, 0 to 1.
    pub own_share: Change,
    /// Change of the total as a share of the whole, 0 to 1.
    pub total_share: Change,
}

impl PathChange<'_> {
    /// Whether the function has an own amount on either side, rather than only amounts of its
    /// callees.
    #[must_use]
    pub fn has_own(&self) -> bool {
        self.own.before.median > 0.0 || self.own.after.median > 0.0
    }
}

/// Changes of functions between the two sides.
#[derive(Debug)]
pub struct FunctionChanges<'a> {
    /// The metric.
    pub metric: &'static Metric,
    /// The rows: first changed functions, then unclear differences, then unchanged functions.
    /// Within each group the largest difference comes first. The query may sort rows differently.
    pub rows: Vec<PathChange<'a>>,
    /// The row with the largest change beyond chance, even if the limit left it out.
    pub largest: Option<PathChange<'a>>,
    /// Number of rows that the limit left out.
    pub left_out: usize,
    /// Numbers of rows by the verdict on their own amount, including rows beyond the limit, but
    /// without rows that have no own amount on either side.
    pub verdicts: Verdicts,
    /// Change of the total of all functions.
    pub total: Change,
}

/// Numbers of rows by verdict.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Verdicts {
    /// Rows with a statistically significant change.
    pub changed: u64,
    /// Rows with a difference that may be due to chance.
    pub unclear: u64,
    /// Rows without a difference.
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

/// Sums of one function in every recording. The recordings of the side before come first.
struct RunSums<'a> {
    function: FunctionRef<'a>,
    sums: Vec<Sum>,
}

/// Compares functions.
///
/// # Errors
/// When the recordings have no common metric to compare, or the query selects nothing in a
/// recording.
pub fn function_changes<'a>(sides: &Sides<'a>, query: &Query) -> Result<FunctionChanges<'a>, ComparisonProblem> {
    let query = &sides.resolved(query)?;
    let metric = sides.metric(query)?;
    let readings = sides.read(|recording| Reading::read(recording, query, metric))?;
    let found = sides.read(|recording| rows(recording, query, metric))?;
    let merging = MergedChanges::new(sides, &readings);
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
        known.iter().map(|one| change(0, one.function, &readings, &merging, |at| one.sums[at])).collect();
    let mut verdicts = Verdicts::default();
    changes.iter().filter(|row| row.has_own()).for_each(|row| verdicts.count(row.own.verdict));
    changes.sort_by(|a, b| compare(a, b, query.sort.unwrap_or(Sort::Own)));
    let largest = largest(changes.iter(), |row| &row.own).cloned();
    let left_out = query.cut(&mut changes);
    Ok(FunctionChanges {
        metric,
        rows: changes,
        largest,
        left_out,
        verdicts,
        total: totals(&readings, &merging.amounts),
    })
}

/// How the amounts of recordings, and their parts of the whole, are merged to those of a side.
#[derive(Debug)]
pub(super) struct MergedChanges {
    pub(super) amounts: Merging,
    shares: Merging,
}

impl MergedChanges {
    pub(super) fn new(sides: &Sides<'_>, readings: &[Vec<Reading>; 2]) -> Self {
        Self { amounts: sides.merging(), shares: sides.merging_of_shares(readings) }
    }
}

/// The row of a function or path, from its sum in each recording.
pub(super) fn change<'a>(
    depth: u32,
    function: FunctionRef<'a>,
    [before, after]: &[Vec<Reading>; 2],
    merging: &MergedChanges,
    sum: impl Fn(usize) -> Sum,
) -> PathChange<'a> {
    let amounts = |from: usize, all: &[Reading]| -> Vec<Amounts> {
        all.iter().enumerate().map(|(at, reading)| reading.amounts(&sum(from + at))).collect()
    };
    let (old, new) = (amounts(0, before), amounts(before.len(), after));
    let of = |merging: &Merging, part: fn(&Amounts) -> IntervalEstimate| {
        let side = |all: &[Amounts]| all.iter().map(part).collect::<Vec<_>>();
        merging.change(&side(&old), &side(&new))
    };
    let MergedChanges { amounts, shares } = merging;
    PathChange {
        depth,
        function,
        own: of(amounts, |amounts| amounts.own),
        total: of(amounts, |amounts| amounts.total),
        own_share: of(shares, |amounts| amounts.own_share),
        total_share: of(shares, |amounts| amounts.total_share),
    }
}

/// Order of rows: by name or module, or by the difference of own amount or total, significant
/// changes first.
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

/// The row with the largest change beyond chance.
pub(super) fn largest<R>(rows: impl Iterator<Item = R>, of: impl Fn(&R) -> &Change) -> Option<R> {
    let changed = rows.filter(|row| of(row).verdict.is_change());
    changed.max_by(|a, b| of(a).difference.abs().total_cmp(&of(b).difference.abs()))
}

/// Order of changes: significant changes first, the largest difference first.
pub(super) fn by_size(a: &Change, b: &Change) -> Ordering {
    let rank = |change: &Change| match change.verdict {
        Verdict::Same => 2,
        Verdict::Unclear => 1,
        _ => 0,
    };
    rank(a).cmp(&rank(b)).then_with(|| b.difference.abs().total_cmp(&a.difference.abs()))
}
