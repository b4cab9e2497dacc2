//! Sentences about garbage collections.

use clrscope_recording::model::Recording;

use super::finding::FindingPlace;
use super::{Finding, FindingKind};
use crate::collections::{Collection, CollectionFacts, CollectionKind, collection_facts};
use crate::numbers::{bytes, number, percent, time};
use crate::query::Query;

/// Length of pauses that are worth a sentence, in nanoseconds.
const LONG_NS: u64 = 1_000_000;

/// Minimum time between the first and the last full collection for which growth is stated per
/// minute.
const LEAST_OF_RATE_NS: u64 = 60_000_000_000;

/// Share of the time in pauses that is worth a sentence.
const MUCH: f64 = 0.05;
/// Cost of a growing heap. Growth takes no time, but will end the program at some point.
const GROWTH_COST: f64 = 0.05;

/// The sentences of a summary, if collections were recorded: about long pauses, and about a growing
/// heap.
pub(super) fn found(recording: &Recording, query: &Query) -> Vec<Finding> {
    let Some(facts) = collection_facts(recording, query) else { return Vec::new() };
    let share = facts.paused_share();
    let all = findings_about_collections(&facts).into_iter();
    let all = all.filter(|found| found.kind == FindingKind::GrowingHeap || share >= MUCH);
    all.map(|found| {
        let cost = if found.kind == FindingKind::GrowingHeap { GROWTH_COST } else { share };
        found.costs(cost)
    })
    .collect()
}

/// Sentences about collections: the total pause time, the longest pause with its cause, and whether
/// the heap grows.
#[must_use]
pub fn findings_about_collections(facts: &CollectionFacts<'_>) -> Vec<Finding> {
    let share = facts.paused_share();
    let mut texts = vec![(FindingKind::Gc, paused(facts))];
    let longest = facts.longest.first().filter(|longest| longest.pause_ns >= LONG_NS).map(longest);
    texts.extend(longest.map(|text| (FindingKind::Gc, text)));
    texts.extend(facts.growth.map(|growth| {
        let [first, last] = [growth.first_bytes, growth.last_bytes].map(bytes);
        let (full, took) = (number(growth.collections as u64), time(growth.span_ns));
        // A rate per minute from a short observation would be a guess.
        let rate = match growth.span_ns >= LEAST_OF_RATE_NS {
            true => format!(", by {} per minute", bytes(growth.bytes_per_minute as u64)),
            false => String::new(),
        };
        let text =
            format!("the heap grew from {first} to {last} after full collections, {full} of them in {took}{rate}");
        (FindingKind::GrowingHeap, text)
    }));
    let found = texts.into_iter().map(|(kind, text)| Finding::exact(kind, text, share).shown_by("--view gc"));
    let mut found: Vec<Finding> = found.collect();
    if let Some((function, place)) = facts.cause {
        let paused = found.remove(0);
        let text = format!("{}; code that caused most of it: {}", paused.text, function.label());
        found.insert(0, Finding { text, ..paused }.at(&function, FindingPlace::new(place, ", first at ")));
    }
    found
}

fn paused(facts: &CollectionFacts<'_>) -> String {
    let [low, middle, high] = facts.generations.map(number);
    let collections = match facts.count {
        1 => "one collection".to_owned(),
        count => format!("{} collections", number(count)),
    };
    let induced = match facts.induced {
        0 => String::new(),
        induced => format!(", {} of them induced", number(induced)),
    };
    let rate = facts.allocated_bytes.map_or_else(String::new, |allocated| {
        let rate = facts.allocated_per_second().unwrap_or(0.0);
        let (all, per_second) = (bytes(allocated), bytes(rate as u64));
        format!("; the program allocated at least {all}, {per_second} per second of the time recorded")
    });
    format!(
        "garbage collection paused the program for {} of the time ({}): {collections} ({low} of generation 0, {middle} \
         of 1, {high} of 2{induced}){rate}",
        percent(facts.paused_share()),
        time(facts.pause_ns),
    )
}

fn longest(row: &Collection<'_>) -> String {
    let kind = match row.kind {
        CollectionKind::Blocking => "a blocking collection",
        CollectionKind::Background => "a background collection",
        CollectionKind::Foreground => "a foreground collection (during a background one)",
    };
    let cause = row.cause().map_or_else(String::new, |cause| format!(", caused by {}", cause.label()));
    let (length, generation, reason) = (time(row.pause_ns), row.generation, row.reason.words());
    format!("the longest pause, {length}, was {kind} of generation {generation}: {reason}{cause}")
}
