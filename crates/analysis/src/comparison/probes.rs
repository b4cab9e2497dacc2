//! Changes of probed methods and lines between the two sides.

use std::collections::BTreeMap;

use clrscope_contract::request::split_marker;

use super::functions::{Verdicts, by_size, largest};
use super::identity::unnumbered;
use super::interval::{Change, IntervalEstimate};
use super::merging::Merging;
use super::sides::{ComparisonProblem, Sides};
use crate::closures::unnumbered_marker;
use crate::probes::{Key, ProbeRow, ProbedPlace, probes};
use crate::query::{Query, Sort};

/// Change of a probed method, or of a line in a method, between the two sides.
#[derive(Debug, Clone)]
pub struct ProbeChange {
    /// Name of the method, in the form of function names.
    pub name: String,
    /// Signature of the method, in the form of function signatures.
    pub signature: String,
    /// The assembly that declares the method.
    pub module: String,
    /// The line; `None` if the row counts calls of the method. For a line, only `calls` has values.
    pub place: Option<ProbedPlace>,
    /// Change of the number of calls, or of how often the line was reached.
    pub calls: Change,
    /// Change of the number of calls that ended with an exception.
    pub failed: Change,
    /// Change of the wall time of the ended calls, nanoseconds.
    pub total_ns: Change,
    /// Change of the mean time of a call, in nanoseconds; 0 for recordings in which no call ended.
    pub mean_ns: Change,
    /// Change of each percentile of the ended calls' times, in nanoseconds and in the order of
    /// [`ProbeChange::PERCENTS`]; 0 for recordings in which no call ended.
    pub percentiles_ns: [Change; 3],
}

/// Changes of probed methods and lines between the two sides.
#[derive(Debug)]
pub struct ProbeChanges {
    /// The rows: changed ones first, then by size of the difference, unless the query sorts them
    /// differently.
    pub rows: Vec<ProbeChange>,
    /// The row with the largest change beyond chance, even if the limit left it out.
    pub largest: Option<ProbeChange>,
    /// Number of rows that the limit left out.
    pub left_out: usize,
    /// Numbers of rows by verdict, including rows that the limit left out. The verdict is on the
    /// time, or for lines on how often the line was reached.
    pub verdicts: Verdicts,
}

impl ProbeChange {
    /// The percentiles that are compared.
    pub const PERCENTS: [u8; 3] = [50, 90, 99];

    /// The change that determines the verdict on the row.
    #[must_use]
    pub fn main(&self) -> &Change {
        if self.place.is_some() { &self.calls } else { &self.total_ns }
    }

    /// Compares the counts of one method or line. Each of `runs` is one recording; the first
    /// `before` of them are the side before.
    fn from_runs(runs: &[Option<ProbeRow>], before: usize, [amounts, means]: &[Merging; 2]) -> Self {
        let merged = |merging: &Merging, part: &dyn Fn(&ProbeRow) -> u64| {
            let amount = |run: &Option<ProbeRow>| IntervalEstimate::exact(run.as_ref().map_or(0, part) as f64);
            let all: Vec<IntervalEstimate> = runs.iter().map(amount).collect();
            merging.change(&all[..before], &all[before..])
        };
        let of = |part: &dyn Fn(&ProbeRow) -> u64| merged(amounts, part);
        let last = runs.iter().flatten().last().cloned().unwrap_or_default();
        Self {
            calls: of(&|row| row.calls),
            failed: of(&|row| row.failed),
            total_ns: of(&|row| row.total_ns),
            mean_ns: merged(means, &|row| row.mean_ns().unwrap_or(0)),
            percentiles_ns: Self::PERCENTS.map(|percent| merged(means, &|row| row.percentile_ns(percent).unwrap_or(0))),
            name: last.name,
            signature: last.signature,
            module: last.module,
            place: last.place,
        }
    }
}

/// Key of a row on both sides: names without compiler-generated numbers, and the kind of code
/// without its line.
fn identity(row: &ProbeRow) -> Key {
    let (plain, marker) = split_marker(&row.signature);
    let code = marker.map_or_else(String::new, |marker| format!(" ({})", unnumbered_marker(marker)));
    (unnumbered(&row.name), unnumbered(plain) + &code, row.module.clone(), row.place.clone())
}

/// Compares probed methods and lines. Each call was counted, so the numbers of a run are exact.
/// Lambdas of one method form one row.
///
/// # Errors
/// When a recording has no probes, or the query selects nothing.
pub fn probe_changes(sides: &Sides<'_>, query: &Query) -> Result<ProbeChanges, ComparisonProblem> {
    let query = &sides.resolved(query)?;
    let all = Query { limit: None, sort: None, ..query.clone() };
    let found = sides.read(|recording| Ok(probes(recording, &all)?.0))?;
    let recordings = found.iter().map(Vec::len).sum();
    let mut known: BTreeMap<Key, Vec<Option<ProbeRow>>> = BTreeMap::new();
    for (at, rows) in found.iter().flatten().enumerate() {
        for row in rows {
            let runs = known.entry(identity(row)).or_insert_with(|| vec![None; recordings]);
            match &mut runs[at] {
                Some(sum) => sum.join(row),
                free @ None => *free = Some(row.clone()),
            }
        }
    }
    let before = found[0].len();
    let merging = [sides.merging(), sides.merging_of_means()];
    let mut rows: Vec<ProbeChange> =
        known.values().map(|runs| ProbeChange::from_runs(runs, before, &merging)).collect();
    let mut verdicts = Verdicts::default();
    rows.iter().for_each(|row| verdicts.count(row.main().verdict));
    // Rows come in the order of names, and the sort is stable.
    match query.sort {
        Some(Sort::Name) => {}
        Some(Sort::Module) => rows.sort_by(|a, b| a.module.cmp(&b.module)),
        Some(Sort::Calls) => rows.sort_by(|a, b| by_size(&a.calls, &b.calls)),
        // Lines have no time, and come after all methods.
        _ => rows.sort_by(|a, b| a.place.is_some().cmp(&b.place.is_some()).then_with(|| by_size(a.main(), b.main()))),
    }
    let largest = largest(rows.iter(), |row| row.main()).cloned();
    let left_out = query.cut(&mut rows);
    Ok(ProbeChanges { rows, largest, left_out, verdicts })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lambda_is_the_same_when_lines_were_added_above_it() {
        let of = |signature: &str| identity(&ProbeRow::of_method("Shop.Cart::Total", signature, "Shop"));
        let first = of("Shop.Cart.Total(int) (lambda, Cart.cs:17)");
        assert_eq!(first, of("Shop.Cart.Total(int) (lambda 2, Cart.cs:31)"));
        for other in ["Shop.Cart.Total(int)", "Shop.Cart.Total(int) (async)", "Shop.Cart.Total(long) (lambda)"] {
            assert_ne!(first, of(other), "{other}");
        }
    }
}
