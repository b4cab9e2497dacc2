//! What a run did over time, interval by interval of the timeline: the strip above the tables of
//! the page's summary.

use std::collections::BTreeMap;

use clrscope_analysis::{
    Collection, Direction, ExceptionLog, ExceptionQuery, Pieces, Query, collections, counters, cpu_timeline,
    each_request, timeline_pieces,
};
use clrscope_recording::model::Recording;
use serde_json::{Value, json};

use super::plan::PlannedView;

/// Returns what was recorded in each interval of the run's timeline; null for views other than
/// `summary`. A member is null if nothing of its kind was recorded.
pub(super) fn over_time(planned: &PlannedView, recording: &Recording) -> Value {
    if planned.view.name != "summary" {
        return Value::Null;
    }
    let query = Query { limit: None, sort: None, metric: None, ..planned.request.query.clone() };
    let pieces = timeline_pieces(recording);
    let rows = collections(recording, &query).ok();
    // Samples and requests are not filtered by function.
    let is_whole = query.functions.is_empty() && query.modules.is_empty();
    json!({
        "start_ns": pieces.start_ns,
        "piece_ns": pieces.piece_ns,
        "cpu": is_whole.then(|| cpu(recording, &query, pieces)),
        "pauses": rows.as_deref().map(|rows| pauses(rows, pieces)),
        "heap": rows.as_deref().and_then(|rows| heap(rows, pieces)).or_else(|| counted_heap(recording, &query, pieces)),
        "exceptions": exceptions(recording, &query, pieces),
        "requests": is_whole.then(|| requests(recording, &query, pieces)),
    })
}

/// Sum of the amounts in each piece; `moments` has times and amounts.
fn sums(pieces: Pieces, moments: impl Iterator<Item = (u64, u64)>) -> Vec<u64> {
    let mut sums = vec![0_u64; pieces.count as usize];
    for (time_ns, amount) in moments {
        let sum = &mut sums[pieces.at(time_ns) as usize];
        *sum = sum.saturating_add(amount);
    }
    sums
}

/// The largest value in each piece; null for pieces without values.
fn largest(pieces: Pieces, values: impl Iterator<Item = (u64, u64)>) -> Vec<Option<u64>> {
    let mut largest = vec![None; pieces.count as usize];
    for (time_ns, value) in values {
        let known = &mut largest[pieces.at(time_ns) as usize];
        *known = Some(known.unwrap_or(0).max(value));
    }
    largest
}

/// CPU time by kind of work.
fn cpu(recording: &Recording, query: &Query, pieces: Pieces) -> Option<Value> {
    let found = cpu_timeline(recording, query).ok()?;
    let mut kinds: BTreeMap<&str, Vec<(u64, u64)>> = BTreeMap::new();
    for row in &found.rows {
        kinds.entry(row.kind).or_default().push((row.time_ns, row.amount_ns));
    }
    let kinds = kinds.into_iter().map(|(kind, rows)| json!({ "kind": kind, "ns": sums(pieces, rows.into_iter()) }));
    Some(kinds.collect())
}

/// Time that the program was paused for collections.
fn pauses(rows: &[Collection<'_>], pieces: Pieces) -> Value {
    let total_ns = rows.iter().fold(0_u64, |sum, row| sum.saturating_add(row.pause_ns));
    let longest_ns = rows.iter().map(|row| row.pause_ns).max().unwrap_or(0);
    let ns = sums(pieces, rows.iter().map(|row| (row.start_ns, row.pause_ns)));
    json!({ "count": rows.len(), "total_ns": total_ns, "longest_ns": longest_ns, "ns": ns })
}

/// Size of the heap at collections; `None` if no size is known.
fn heap(rows: &[Collection<'_>], pieces: Pieces) -> Option<Value> {
    let before = rows.iter().filter_map(|row| Some((row.start_ns, row.before_bytes()?)));
    let after = rows.iter().filter_map(|row| Some((row.end_ns?, row.after_bytes()?)));
    sizes(before.chain(after), pieces)
}

/// Size of the heap by the runtime's counter, which counts in megabytes.
fn counted_heap(recording: &Recording, query: &Query, pieces: Pieces) -> Option<Value> {
    let (rows, _) = counters(recording, query, &[]).ok()?;
    let row = rows.iter().find(|row| row.provider == "System.Runtime" && row.name == "gc-heap-size")?;
    sizes(row.points.iter().map(|point| (point.time_ns, (point.value * 1e6) as u64)), pieces)
}

fn sizes(values: impl Iterator<Item = (u64, u64)>, pieces: Pieces) -> Option<Value> {
    let bytes = largest(pieces, values);
    let most = bytes.iter().flatten().max()?;
    Some(json!({ "most": most, "bytes": bytes }))
}

/// Number of exceptions that were thrown.
fn exceptions(recording: &Recording, query: &Query, pieces: Pieces) -> Option<Value> {
    let log = ExceptionLog::open(recording, &ExceptionQuery { query: query.clone(), types: Vec::new() }).ok()?;
    let mut moments = Vec::new();
    let walked: Result<_, std::convert::Infallible> = log.walk(|exception| {
        moments.push((exception.time_ns, 1));
        Ok(())
    });
    walked.ok()?;
    Some(counts(&moments, pieces))
}

/// Number of served requests that began, or were first seen.
fn requests(recording: &Recording, query: &Query, pieces: Pieces) -> Option<Value> {
    let (rows, _) = each_request(recording, query).ok()?;
    let served = rows.iter().filter(|row| row.direction == Direction::Served);
    Some(counts(&served.map(|row| (row.time_ns, 1)).collect::<Vec<_>>(), pieces))
}

fn counts(moments: &[(u64, u64)], pieces: Pieces) -> Value {
    json!({ "count": moments.len(), "counts": sums(pieces, moments.iter().copied()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_summed_by_piece_and_none_is_lost() {
        let pieces = Pieces { start_ns: 100, piece_ns: 10, count: 240 };
        let sums = sums(pieces, [(0, 1), (109, 2), (110, 4), (u64::MAX, 8)].into_iter());
        assert_eq!((sums[0], sums[1], sums[239]), (3, 4, 8));
        let largest = largest(pieces, [(111, 5), (112, 3)].into_iter());
        assert_eq!(largest[..3], [None, Some(5), None]);
    }
}
