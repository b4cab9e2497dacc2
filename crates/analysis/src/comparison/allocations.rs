//! Changes of allocated types between the two sides.

use std::collections::BTreeMap;

use super::functions::{Verdicts, by_size, largest};
use super::identity::unnumbered;
use super::interval::{Change, IntervalEstimate};
use super::reading::mean_bytes;
use super::sides::{ComparisonProblem, Sides};
use crate::query::{Query, Sort};
use crate::views::allocations::{AllocationRow, allocations};

/// Change of a type's allocations between the two sides.
#[derive(Debug, Clone)]
pub struct TypeChange {
    /// Name in C# syntax, without compiler-generated numbers.
    pub type_name: String,
    /// Assembly of the type; empty if the assembly is not known.
    pub module: String,
    /// Change of the allocated bytes.
    pub bytes: Change,
    /// Change of the number of allocated objects.
    pub objects: Change,
}

/// Changes of allocated types between the two sides.
#[derive(Debug)]
pub struct AllocationChanges {
    /// The rows: changed types first, then by size of the difference, unless the query sorts them
    /// differently.
    pub rows: Vec<TypeChange>,
    /// The row with the largest change beyond chance, even if the limit left it out.
    pub largest: Option<TypeChange>,
    /// Number of rows that the limit left out.
    pub left_out: usize,
    /// Numbers of rows by the verdict on their bytes, including rows that the limit left out.
    pub verdicts: Verdicts,
}

/// Bytes and objects of a type in one recording, with their bounds.
#[derive(Debug, Clone, Copy, Default)]
struct Amounts {
    bytes: IntervalEstimate,
    objects: IntervalEstimate,
}

impl Amounts {
    fn add(&mut self, row: &AllocationRow<'_>) {
        let measured = |amount: u64, (low, high): (u64, u64)| IntervalEstimate {
            amount: amount as f64,
            low: low as f64,
            high: high as f64,
        };
        let add = |sum: &mut IntervalEstimate, more: IntervalEstimate| {
            let (amount, low, high) = (sum.amount + more.amount, sum.low + more.low, sum.high + more.high);
            *sum = IntervalEstimate { amount, low, high };
        };
        add(&mut self.bytes, measured(row.bytes, row.bytes_bounds));
        add(&mut self.objects, measured(row.objects, row.objects_bounds));
    }
}

/// Compares allocations by type.
///
/// # Errors
/// When a recording has no allocations, or the query selects nothing.
pub fn allocation_changes(sides: &Sides<'_>, query: &Query) -> Result<AllocationChanges, ComparisonProblem> {
    let query = &sides.resolved(query)?;
    let all = Query { limit: None, sort: None, ..query.clone() };
    let found = sides.read(|recording| Ok((allocations(recording, &all)?.rows, mean_bytes(recording))))?;
    let recordings = found.iter().map(Vec::len).sum();
    let mut types: BTreeMap<(String, &str), Vec<Option<Amounts>>> = BTreeMap::new();
    for (at, (rows, _)) in found.iter().flatten().enumerate() {
        for row in rows {
            let key = (unnumbered(row.type_name), row.module);
            types.entry(key).or_insert_with(|| vec![None; recordings])[at].get_or_insert_default().add(row);
        }
    }
    let means: Vec<f64> = found.iter().flatten().map(|(_, mean)| *mean).collect();
    let (before, merging) = (found[0].len(), sides.merging());
    let row = |((type_name, module), amounts): ((String, &str), Vec<Option<Amounts>>)| {
        // A type that was never sampled may still have been allocated.
        let none = |mean: f64, each: f64| match mean > 0.0 {
            true => IntervalEstimate::sampled(0.0, 0.0, each),
            false => IntervalEstimate::default(),
        };
        let size = amounts.iter().flatten().map(|of| of.bytes.amount / of.objects.amount.max(1.0)).fold(1.0, f64::max);
        let of = |part: fn(&Amounts) -> IntervalEstimate, per: f64| {
            let one = |(at, of): (usize, &Option<Amounts>)| {
                of.as_ref().map_or_else(|| none(means[at], means[at] / per), part)
            };
            let all: Vec<IntervalEstimate> = amounts.iter().enumerate().map(one).collect();
            merging.change(&all[..before], &all[before..])
        };
        let (bytes, objects) = (of(|amounts| amounts.bytes, 1.0), of(|amounts| amounts.objects, size));
        TypeChange { type_name, module: module.to_owned(), bytes, objects }
    };
    let mut rows: Vec<TypeChange> = types.into_iter().map(row).collect();
    let mut verdicts = Verdicts::default();
    rows.iter().for_each(|row| verdicts.count(row.bytes.verdict));
    // Rows come in the order of names, and the sort is stable.
    match query.sort {
        Some(Sort::Name) => {}
        Some(Sort::Module) => rows.sort_by(|a, b| a.module.cmp(&b.module)),
        Some(Sort::Calls) => rows.sort_by(|a, b| by_size(&a.objects, &b.objects)),
        _ => rows.sort_by(|a, b| by_size(&a.bytes, &b.bytes)),
    }
    let largest = largest(rows.iter(), |row| &row.bytes).cloned();
    let left_out = query.cut(&mut rows);
    Ok(AllocationChanges { rows, largest, left_out, verdicts })
}
