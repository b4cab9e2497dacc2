//! Facts about all collections together: their time, the allocations, and whether the heap grows.

use std::borrow::Cow;
use std::collections::BTreeMap;

use clrscope_recording::model::Recording;

use super::reconstruct::ALLOCATED_IN;
use super::{Collection, CollectionKind};
use crate::code_place::CodePlace;
use crate::function::FunctionRef;
use crate::parts::queried_ns;
use crate::query::Query;

/// Maximum number of full collections that are compared. They are spread over the run.
const MOST_COMPARED: usize = 200;
/// Number of full collections that are needed to report growth.
const LEAST_COMPARED: usize = 3;
/// Least growth that is reported, in bytes and as a part of the earlier size.
const LEAST_GROWTH: (u64, f64) = (1_000_000, 0.1);
/// The heap grows if the later collection left more bytes in at least this part of all pairs of
/// collections.
const MOSTLY: f64 = 0.75;

/// Growth of the heap's size after full collections.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Growth {
    /// Bytes per minute: the median over all pairs of collections.
    pub bytes_per_minute: f64,
    /// Bytes of objects after the first full collection.
    pub first_bytes: u64,
    /// Bytes of objects after the last full collection.
    pub last_bytes: u64,
    /// Number of full collections.
    pub collections: usize,
    /// Time from the first full collection to the last, in nanoseconds.
    pub span_ns: u64,
}

/// Summary of all collections.
#[derive(Debug, Clone)]
pub struct CollectionFacts<'a> {
    /// Number of collections.
    pub count: u64,
    /// Number of collections by the highest generation collected: 0, 1, 2.
    pub generations: [u64; 3],
    /// Number of background collections.
    pub background: u64,
    /// Number of collections that the program induced.
    pub induced: u64,
    /// Total time for which collections paused the program, in nanoseconds.
    pub pause_ns: u64,
    /// Length of the observed time, in nanoseconds.
    pub span_ns: u64,
    /// The collections with the longest pauses, the longest first; three at most.
    pub longest: Vec<Collection<'a>>,
    /// The own function that caused the most pause time, with the location in its code that caused
    /// its first collection; `None` if no own function caused any.
    pub cause: Option<(FunctionRef<'a>, CodePlace<'a>)>,
    /// Bytes allocated between the collections, and before the first one if that is the program's
    /// first. Allocations after the last collection are not included. `None` if sizes are not
    /// known.
    pub allocated_bytes: Option<u64>,
    /// Growth after full collections, if there is any.
    pub growth: Option<Growth>,
}

impl CollectionFacts<'_> {
    /// Share of the observed time during which the program was paused, 0 to 1.
    #[must_use]
    pub fn paused_share(&self) -> f64 {
        if self.span_ns == 0 { 0.0 } else { (self.pause_ns as f64 / self.span_ns as f64).min(1.0) }
    }

    /// Lower bound of the bytes allocated per second of the observed time; `None` if sizes are not
    /// known.
    #[must_use]
    pub fn allocated_per_second(&self) -> Option<f64> {
        let bytes = self.allocated_bytes.filter(|_| self.span_ns > 0)?;
        Some(bytes as f64 * 1e9 / self.span_ns as f64)
    }
}

/// Summarises the collections that a query selects; `None` if there are none.
#[must_use]
pub fn collection_facts<'a>(recording: &'a Recording, query: &Query) -> Option<CollectionFacts<'a>> {
    let query = Query { sort: None, limit: None, metric: None, ..query.clone() };
    let rows = super::collections(recording, &query).ok()?;
    if rows.is_empty() {
        return None;
    }
    let mut generations = [0; 3];
    rows.iter().for_each(|row| generations[row.generation.min(2) as usize] += 1);
    let count = |is: fn(&Collection<'_>) -> bool| rows.iter().filter(|row| is(row)).count() as u64;
    let mut longest: Vec<Collection<'a>> = rows.iter().filter(|row| row.pause_ns > 0).cloned().collect();
    longest.sort_by_key(|row| std::cmp::Reverse(row.pause_ns));
    longest.truncate(3);
    Some(CollectionFacts {
        count: rows.len() as u64,
        generations,
        background: count(|row| row.kind == CollectionKind::Background),
        induced: count(|row| row.reason.is_induced()),
        pause_ns: rows.iter().map(|row| row.pause_ns).sum(),
        span_ns: queried_ns(recording, &query),
        longest,
        cause: cause(&rows),
        allocated_bytes: allocated_bytes(&rows),
        growth: growth(&rows),
    })
}

/// The own function that caused the most pause time; the first by name among equals.
fn cause<'a>(rows: &[Collection<'a>]) -> Option<(FunctionRef<'a>, CodePlace<'a>)> {
    let mut pauses: BTreeMap<(&str, Cow<'a, str>), CauseSum<'a>> = BTreeMap::new();
    for row in rows {
        let Some((function, place)) = row.own_cause() else { continue };
        let sum = pauses.entry((function.module(), function.label()));
        let sum = sum.or_insert(CauseSum { pause_ns: 0, function, place });
        sum.pause_ns = sum.pause_ns.saturating_add(row.pause_ns);
    }
    let most = pauses.into_values().rev().max_by_key(|sum| sum.pause_ns)?;
    Some((most.function, most.place))
}

/// Pauses that one own function caused.
struct CauseSum<'a> {
    pause_ns: u64,
    function: FunctionRef<'a>,
    /// Place in its code that caused the first pause.
    place: CodePlace<'a>,
}

/// Bytes allocated before the collections of each process. For a collection after the first row,
/// these are the bytes allocated since the collection before. Bytes before the first row are left
/// out unless it is the program's first collection, as they may be older than the time range.
fn allocated_bytes(rows: &[Collection<'_>]) -> Option<u64> {
    let mut met: Vec<u32> = Vec::new();
    let (mut sum, mut is_known) = (0_u64, false);
    for row in rows {
        let pid = row.process.pid;
        let is_first = !met.contains(&pid);
        if is_first {
            met.push(pid);
        }
        let allocated = match (is_first, row.number) {
            (true, Some(1)) => met_bytes(row),
            (true, _) => None,
            _ => row.allocated_bytes,
        };
        is_known |= allocated.is_some();
        sum = sum.saturating_add(allocated.unwrap_or(0));
    }
    is_known.then_some(sum)
}

/// Bytes of objects in the generations of allocation before a collection.
fn met_bytes(row: &Collection<'_>) -> Option<u64> {
    let of = |generation: usize| row.generations.get(generation).copied();
    let sizes = ALLOCATED_IN.map(of).into_iter().collect::<Option<Vec<_>>>()?;
    Some(sizes.iter().fold(0, |sum, sizes| sum.saturating_add(sizes.before.saturating_sub(sizes.free_before))))
}

fn growth(rows: &[Collection<'_>]) -> Option<Growth> {
    let full = rows.iter().filter(|row| row.generation == 2);
    let of_process = rows.first()?.process.pid;
    // Several processes have a heap each: only the first process counts.
    let full = full.filter(|row| row.process.pid == of_process);
    let left: Vec<(u64, u64)> = full.filter_map(|row| Some((row.end_ns?, row.live_bytes()?))).collect();
    let step = left.len().div_ceil(MOST_COMPARED).max(1);
    let compared: Vec<_> = left.iter().step_by(step).copied().collect();
    let ((began, first), (ended, last)) = (*left.first()?, *left.last()?);
    let pairs = || compared.iter().enumerate().flat_map(|(at, a)| compared[at + 1..].iter().map(move |b| (a, b)));
    let later = |(a, b): &(&(u64, u64), &(u64, u64))| b.0 > a.0;
    let mut slopes: Vec<f64> =
        pairs().filter(later).map(|(a, b)| (b.1 as f64 - a.1 as f64) / (b.0 - a.0) as f64).collect();
    slopes.sort_by(f64::total_cmp);
    let grew = slopes.iter().filter(|slope| **slope > 0.0).count() as f64;
    let grown = last.saturating_sub(first);
    let is_much = grown >= LEAST_GROWTH.0 && grown as f64 >= LEAST_GROWTH.1 * first as f64;
    let grows = left.len() >= LEAST_COMPARED && is_much && grew >= MOSTLY * slopes.len() as f64;
    let median = slopes.get(slopes.len() / 2)?;
    grows.then_some(Growth {
        bytes_per_minute: median * 60e9,
        first_bytes: first,
        last_bytes: last,
        collections: left.len(),
        span_ns: ended.saturating_sub(began),
    })
}
