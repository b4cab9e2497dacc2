//! Sentences about allocations: the types with the most allocated bytes, and the code that
//! allocates them.

use clrscope_recording::model::Recording;

use super::finding::{Part, per_second};
use super::{Finding, FindingKind};
use crate::allocations::BYTES;
use crate::numbers::{bytes, number, percent};
use crate::query::{Query, QueryProblem};
use crate::views::allocations::{AllocationRow, Allocations, LiveSum, allocations};

/// Maximum number of types that get their own sentence.
const MOST: usize = 3;
/// Least share of all bytes for a sentence about a type.
const LEAST_SHARE: f64 = 0.05;

/// Allocations for a summary: all types, ordered by bytes. `None` if they were not recorded.
pub(super) fn recorded<'a>(recording: &'a Recording, query: &Query) -> Result<Option<Allocations<'a>>, QueryProblem> {
    let plain = Query { sort: None, limit: None, ..query.clone() };
    BYTES.is_in(recording).then(|| allocations(recording, &plain)).transpose()
}

/// Number of bytes allocated per second that makes allocations worth a sentence.
const MUCH_PER_SECOND: f64 = 10e6;
/// Cost of an allocated byte without collections, nanoseconds. Used only to order sentences.
const BYTE_NS: f64 = 0.1;

/// The sentences of a summary; none if the program allocates little. `run_ns` is the length of the
/// shown time.
pub(super) fn found(view: Option<&Allocations<'_>>, run_ns: u64) -> Vec<Finding> {
    let Some(view) = view else { return Vec::new() };
    let per_second = per_second(view.bytes, run_ns);
    if per_second < MUCH_PER_SECOND {
        return Vec::new();
    }
    let cost = |found: &Finding| found.share * per_second * BYTE_NS / 1e9;
    findings_about_allocations(view).into_iter().map(|found| Finding { cost: cost(&found), ..found }).collect()
}

/// Sentences about allocations: their amount, the types with most bytes and the code that allocates
/// them, and the objects still alive at the end. `view` must have all rows, ordered by bytes.
#[must_use]
pub fn findings_about_allocations(view: &Allocations<'_>) -> Vec<Finding> {
    let mut found: Vec<Finding> = whole(view).into_iter().collect();
    // Objects are followed to find which of them stay alive.
    found.extend(alive(view));
    let large = view.rows.iter().map(|row| (row, Part::between(row.bytes, row.bytes_bounds, view.bytes)));
    let large = large.filter(|(_, part)| part.is_surely(LEAST_SHARE)).take(MOST);
    found.extend(large.map(|(row, part)| {
        let found = Finding::with_share(FindingKind::Allocation, of_type(row), part);
        let by = row.place.as_ref().map(|by| &by.function);
        found.by(BYTES.name).shown_by("--view allocations").about_known(by)
    }));
    found
}

fn whole(view: &Allocations<'_>) -> Option<Finding> {
    let about = about(view);
    let text = format!("the program allocated {about}{} in {about}{} objects", bytes(view.bytes), number(view.objects));
    (view.bytes > 0).then(|| allocation(text, 1.0))
}

/// The word before amounts that are estimated from samples.
fn about(view: &Allocations<'_>) -> &'static str {
    if view.rows.iter().any(|row| row.bytes_bounds.0 < row.bytes) { "about " } else { "" }
}

fn of_type(row: &AllocationRow<'_>) -> String {
    let by = row.place.map_or_else(String::new, |by| {
        format!(", {} of it by {}", percent(by.share_of(row.bytes)), by.function.label())
    });
    format!("{} of the bytes ({}) are {}{by}", percent(row.share), bytes(row.bytes), name(row))
}

/// The type with the most live bytes at the end. If any object survived a collection, only
/// survivors count: objects allocated after the last collection are still alive and say nothing
/// about leaks.
fn alive(view: &Allocations<'_>) -> Option<Finding> {
    let most = |live: &LiveSum| (live.survived_bytes, live.bytes);
    let (row, live) = view.rows.iter().filter_map(|row| Some((row, row.live?))).max_by_key(|(_, live)| most(live))?;
    let all = |of: fn(LiveSum) -> u64| {
        view.rows.iter().filter_map(|row| row.live).fold(0_u64, |sum, live| sum.saturating_add(of(live)))
    };
    let (whole, survived) = (all(|live| live.bytes), all(|live| live.survived_bytes));
    let by = row.live_place.map_or_else(String::new, |by| format!(", most of it allocated by {}", by.function.label()));
    let when = if view.at_end { "at the end" } else { "at the end of the time shown" };
    let about = about(view);
    let text = format!("{about}{} of what was allocated was still alive {when}, or not collected yet", bytes(whole));
    let text = match survived {
        0 => format!("{text} (no collection has examined it): {} of it {}{by}", bytes(live.bytes), name(row)),
        _ => format!(
            "{text}; {} of it outlived a collection: {} of that {}{by}; the oldest outlived {} collections",
            bytes(survived),
            bytes(live.survived_bytes),
            name(row),
            number(live.collections),
        ),
    };
    let weight = if survived > 0 { survived } else { whole };
    (whole > 0).then(|| allocation(text, weight as f64 / view.bytes.max(1) as f64))
}

fn allocation(text: String, share: f64) -> Finding {
    Finding::exact(FindingKind::Allocation, text, share).by(BYTES.name).shown_by("--view allocations")
}

fn name<'a>(row: &AllocationRow<'a>) -> &'a str {
    if row.type_name.is_empty() { "of a type that is not known" } else { row.type_name }
}
