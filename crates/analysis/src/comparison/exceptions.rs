//! Changes of exceptions between the two sides.

use std::collections::BTreeMap;

use super::functions::{Verdicts, by_size, largest};
use super::identity::{Identities, unnumbered};
use super::interval::{Change, IntervalEstimate};
use super::sides::{ComparisonProblem, Sides};
use crate::exceptions::{ExceptionLog, ExceptionQuery};
use crate::function::FunctionRef;
use crate::query::{Query, Sort};

/// A method that throws.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Thrower {
    /// Name of the method: `Namespace.Type::Method`.
    pub name: String,
    /// Signature in C# syntax, without the marker.
    pub signature: String,
    /// Kind of the code within its source method, such as a lambda; `None` for the method's own
    /// body.
    pub marker: Option<String>,
    /// Name of the assembly or library; empty if not known.
    pub module: String,
}

impl Thrower {
    fn from_function(function: &FunctionRef<'_>) -> Self {
        Self {
            name: function.name().to_owned(),
            signature: function.plain_signature().to_owned(),
            marker: function.marker().map(str::to_owned),
            module: function.module().to_owned(),
        }
    }
}

/// Change in the number of throws of one type at one location.
#[derive(Debug, Clone)]
pub struct ExceptionChange {
    /// Type of the exceptions.
    pub type_name: String,
    /// The method that throws; `None` if no stack is known.
    pub place: Option<Thrower>,
    /// Change of the number of exceptions.
    pub count: Change,
    /// Change of the number of unhandled exceptions.
    pub unhandled: Change,
}

/// Changes of exceptions between the two sides.
#[derive(Debug)]
pub struct ExceptionChanges {
    /// The rows: changed ones first, then by size of the difference, unless the query sorts them
    /// differently.
    pub rows: Vec<ExceptionChange>,
    /// The row with the largest change beyond chance, even if the limit left it out.
    pub largest: Option<ExceptionChange>,
    /// Number of rows that the limit left out.
    pub left_out: usize,
    /// Numbers of rows by verdict, including rows that the limit left out.
    pub verdicts: Verdicts,
}

/// For each type and thrower, one entry per recording: the number of exceptions, and of unhandled
/// exceptions.
type Places = BTreeMap<(String, Option<u32>), (Option<Thrower>, Vec<(u64, u64)>)>;

/// Compares exceptions by type and throwing method. Every exception was recorded, so the numbers
/// are exact.
///
/// # Errors
/// When a recording has no exceptions recorded, or the query selects nothing.
pub fn exception_changes(sides: &Sides<'_>, query: &Query) -> Result<ExceptionChanges, ComparisonProblem> {
    let query = &sides.resolved(query)?;
    let all = ExceptionQuery { query: Query { limit: None, sort: None, ..query.clone() }, types: query.types.clone() };
    let logs = sides.read(|recording| ExceptionLog::open(recording, &all))?;
    let recordings = logs.iter().map(Vec::len).sum();
    let (mut identities, mut places) = (Identities::default(), Places::new());
    for (at, log) in logs.iter().flatten().enumerate() {
        for group in log.groups().0 {
            let key =
                (unnumbered(group.type_name), group.place.as_ref().map(|place| identities.number_of_function(place)));
            let known = places.entry(key).or_insert_with(|| (None, vec![(0, 0); recordings]));
            known.0 = group.place.as_ref().map(Thrower::from_function);
            let sum = &mut known.1[at];
            *sum = (sum.0.saturating_add(group.count), sum.1.saturating_add(group.unhandled));
        }
    }
    let (before, merging) = (logs[0].len(), sides.merging());
    let row = |type_name: String, place: Option<Thrower>, counts: &[(u64, u64)]| {
        let of = |part: fn(&(u64, u64)) -> u64| {
            let all: Vec<IntervalEstimate> = counts.iter().map(|of| IntervalEstimate::exact(part(of) as f64)).collect();
            merging.change(&all[..before], &all[before..])
        };
        ExceptionChange { type_name, place, count: of(|of| of.0), unhandled: of(|of| of.1) }
    };
    let mut rows: Vec<ExceptionChange> =
        places.into_iter().map(|((type_name, _), (place, counts))| row(type_name, place, &counts)).collect();
    let mut verdicts = Verdicts::default();
    rows.iter().for_each(|row| verdicts.count(row.count.verdict));
    match query.sort {
        Some(Sort::Name) => {}
        Some(Sort::Module) => {
            rows.sort_by_cached_key(|row| row.place.as_ref().map(|place| place.module.clone()));
        }
        _ => rows.sort_by(|a, b| by_size(&a.count, &b.count)),
    }
    let largest = largest(rows.iter(), |row| &row.count).cloned();
    let left_out = query.cut(&mut rows);
    Ok(ExceptionChanges { rows, largest, left_out, verdicts })
}
