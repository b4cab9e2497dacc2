//! Requests, put together from events that were written by hand.

use clrscope_analysis::{Direction, Query, Request, RequestFilter, RequestRow, Sort, each_request, requests};
use clrscope_contract::request::Glob;
use clrscope_recording::events::{Kind, Tag, Value};
use clrscope_recording::model::{EventArena, EventChunk, Loss, LossReason, Process, Recording};
use clrscope_recording::testing::chunk::HandmadeChunk;

fn recording(chunks: Vec<EventChunk>, losses: Vec<Loss>) -> Recording {
    let events = vec![EventArena { instrument: "requests".into(), chunks }];
    let process = Process { pid: 7, duration_ns: 100_000, events, losses, ..Process::default() };
    Recording { processes: vec![process], ..Recording::default() }
}

fn named(chunk: HandmadeChunk, number: u64, direction: u64, name: &'static str) -> HandmadeChunk {
    let fields = [(Tag::ROUTE, number.into()), (Tag::DIRECTION, direction.into()), (Tag::NAME, name.into())];
    chunk.put(Kind::REQUEST_NAME, &fields)
}

/// A request, whose fields are left out where they are 0.
fn request(chunk: HandmadeChunk, kind: Kind, name: u64, ns: u64, status: u64, outcome: u64) -> HandmadeChunk {
    let numbers = [(Tag::ROUTE, name), (Tag::DURATION, ns), (Tag::STATUS, status), (Tag::OUTCOME, outcome)];
    let there = numbers.into_iter().filter(|(_, number)| *number > 0);
    let fields: Vec<(Tag, Value<'_>)> = there.map(|(tag, number)| (tag, Value::Number(number))).collect();
    chunk.put(kind, &fields)
}

/// Served: answers, errors, an abortion, and one each that was under way at the beginning and at
/// the end; made: an answer, one that says no, and none. Names may come behind the first requests
/// of other threads.
fn all() -> Vec<EventChunk> {
    let ended = Kind::REQUEST_ENDED;
    let mut served = HandmadeChunk::new(0, 1, 50_000);
    for (ns, status, outcome) in
        [(1_000, 200, 0), (3_000, 404, 0), (5_000, 503, 0), (7_000, 200, 1), (9_000, 200, 2), (0, 200, 0)]
    {
        served = request(served, ended, 1, ns, status, outcome);
    }
    let served = request(served, Kind::REQUEST_PENDING, 1, 40_000, 0, 0);
    let made = named(named(HandmadeChunk::new(1, 2, 60_000), 2, 1, "GET bank.example"), 1, 0, "GET /orders/{id}");
    let made = request(request(made, ended, 2, 2_000, 200, 0), ended, 2, 2_000, 404, 0);
    let made = request(made, ended, 2, 20_000, 0, 1);
    vec![served.finish(), made.finish()]
}

fn numbers<'a>(row: &'a RequestRow<'a>) -> (&'a str, Direction, [u64; 4]) {
    (&row.route, row.direction, [row.count, row.failed, row.aborted, row.partial])
}

#[test]
fn requests_count_once_they_are_whole_and_failures_are_those_of_each_side() {
    let recording = recording(all(), Vec::new());
    let (rows, left_out) = requests(&recording, &Query::default()).expect("requests");
    let served = ("GET /orders/{id}", Direction::Served, [5, 2, 1, 2]);
    let made = ("GET bank.example", Direction::Made, [3, 2, 0, 0]);
    assert_eq!((rows.iter().map(numbers).collect::<Vec<_>>(), left_out), (vec![served, made], 0));
    let [row, _] = &rows[..] else { panic!("{rows:?}") };
    assert_eq!((row.total_ns, row.max_ns, row.mean_ns(), row.is_exact), (25_000, 9_000, Some(5_000), true));
    assert_eq!(row.percentile_ns(100), Some(9_000));
    let by_count = Query { sort: Some(Sort::Name), limit: Some(1), ..Query::default() };
    let (rows, left_out) = requests(&recording, &by_count).expect("requests");
    assert_eq!((rows.len(), &*rows[0].route, left_out), (1, "GET /orders/{id}", 1));
    let filter = RequestFilter { routes: vec![Glob::new("*bank*")], ..RequestFilter::default() };
    let (rows, _) = requests(&recording, &Query { requests: filter, ..Query::default() }).expect("requests");
    assert_eq!(rows.iter().map(numbers).collect::<Vec<_>>(), [made]);
}

#[test]
fn each_request_is_there_the_slowest_first_and_one_of_unknown_begin_last() {
    let recording = recording(all(), Vec::new());
    let (each, left_out) = each_request(&recording, &Query::default()).expect("requests");
    let durations: Vec<Option<u64>> = each.iter().map(|one| one.duration_ns).collect();
    let known = [40_000, 20_000, 9_000, 7_000, 5_000, 3_000, 2_000, 2_000, 1_000].map(Some);
    assert_eq!((durations, left_out), ([&known[..], &[None]].concat(), 0));
    assert!(each[0].is_partial() && each[9].is_partial() && !each[1].is_partial());
    assert_eq!((each[1].status, each[1].has_failed(), each[9].status), (None, true, Some(200)));
}

/// The requests that a filter leaves.
fn filtered(recording: &Recording, filter: RequestFilter) -> Vec<Request<'_>> {
    each_request(recording, &Query { requests: filter, ..Query::default() }).expect("requests").0
}

#[test]
fn filters_choose_by_time_failure_and_trace() {
    let digits = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let trace: Vec<u8> = (1..=24).collect();
    let traced = HandmadeChunk::new(0, 1, 50_000).put(
        Kind::REQUEST_ENDED,
        &[(Tag::ROUTE, 1_u64.into()), (Tag::DURATION, 4_u64.into()), (Tag::TRACE, Value::Bytes(&trace))],
    );
    // Of another length, which says nothing.
    let cut = [(Tag::ROUTE, 1_u64.into()), (Tag::DURATION, 5_u64.into()), (Tag::TRACE, Value::Bytes(&trace[1..]))];
    let mut chunks = all();
    chunks.push(traced.put(Kind::REQUEST_ENDED, &cut).finish());
    let recording = recording(chunks, Vec::new());
    let ids = (digits(&trace[..16]), digits(&trace[16..]));
    let number = u128::from_str_radix(&ids.0, 16).ok();
    let times = |filter| filtered(&recording, filter).iter().map(|one| one.duration_ns).collect::<Vec<_>>();
    let of_trace = filtered(&recording, RequestFilter { trace: number, ..RequestFilter::default() });
    let found = |one: &Request<'_>| (one.duration_ns, one.trace.map(|trace| (trace.trace_id(), trace.span_id())));
    assert_eq!(of_trace.iter().map(found).collect::<Vec<_>>(), [(Some(4), Some(ids))]);
    let slow = RequestFilter { slower_than_ns: Some(7_000), ..RequestFilter::default() };
    assert_eq!(times(slow), [40_000, 20_000, 9_000].map(Some));
    let failed = RequestFilter { failed: true, ..RequestFilter::default() };
    assert_eq!(times(failed.clone()), [20_000, 7_000, 5_000, 2_000].map(Some));
    let both = RequestFilter { routes: vec![Glob::new("GET /orders/*")], ..failed };
    assert_eq!(times(both), [7_000, 5_000].map(Some));
}

#[test]
fn what_found_no_room_makes_counts_inexact_and_a_name_that_is_lost_is_not_known() {
    let chunk = request(HandmadeChunk::new(0, 1, 0), Kind::REQUEST_ENDED, 9, 5, 200, 0);
    let lost = Loss::new(LossReason::EventDropped, 1, 0, 0);
    let recording = recording(vec![chunk.finish()], vec![lost]);
    let (rows, _) = requests(&recording, &Query::default()).expect("requests");
    assert_eq!((&*rows[0].route, rows[0].count, rows[0].is_exact), ("(not known)", 1, false));
    let nothing = Recording { processes: vec![Process { pid: 7, ..Process::default() }], ..Recording::default() };
    assert!(requests(&nothing, &Query::default()).is_err(), "it was not recorded");
}
