//! Sentences about garbage collections.

use clrscope_recording::model::Recording;

use super::findings::Finding;
use crate::collections::{Collection, CollectionFacts, CollectionKind, collection_facts};
use crate::numbers::{bytes, number, percent, time};
use crate::query::Query;

/// Pauses of this many nanoseconds are worth a sentence.
const LONG_NS: u64 = 1_000_000;

/// The sentences of a summary, where collections were recorded.
pub(super) fn found(recording: &Recording, query: &Query) -> Vec<Finding> {
    let facts = collection_facts(recording, query);
    facts.map_or_else(Vec::new, |facts| findings_about_collections(&facts))
}

/// Sentences about collections: how long the program stood still for them, the longest pause with its cause, and whether the
/// heap grows.
#[must_use]
pub fn findings_about_collections(facts: &CollectionFacts<'_>) -> Vec<Finding> {
    let share = facts.paused_share();
    let mut texts = vec![paused(facts)];
    texts.extend(facts.longest.first().filter(|longest| longest.pause_ns >= LONG_NS).map(longest));
    texts.extend(facts.growth.map(|growth| {
        let per_minute = bytes(growth.bytes_per_minute as u64);
        let [first, last] = [growth.first_bytes, growth.last_bytes].map(bytes);
        let full = number(growth.collections as u64);
        format!("the heap grew by {per_minute} per minute after full collections: from {first} to {last} over {full} of them")
    }));
    texts.into_iter().map(|text| Finding { text, share }).collect()
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
    let rate = facts
        .allocated_per_second
        .map_or_else(String::new, |rate| format!("; it allocated {} per second", bytes(rate as u64)));
    format!(
        "the program stood still {} of the time ({}) for {collections} ({low} of generation 0, {middle} of 1, {high} of 2{induced}){rate}",
        percent(facts.paused_share()),
        time(facts.pause_ns),
    )
}

fn longest(row: &Collection<'_>) -> String {
    let kind = match row.kind {
        CollectionKind::Blocking => "a blocking collection",
        CollectionKind::Background => "a background collection",
        CollectionKind::Foreground => "a foreground collection (during one in the background)",
    };
    let cause = row.cause().map_or_else(String::new, |cause| format!(", caused by {}", cause.label()));
    let (length, generation, reason) = (time(row.pause_ns), row.generation, row.reason.words());
    format!("the longest pause, {length}, was {kind} of generation {generation}: {reason}{cause}")
}
