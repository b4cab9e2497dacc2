//! Collections, put together from callbacks and events that were written by hand.

use std::sync::Arc;

use clrscope_analysis::{
    Collection, CollectionKind, Query, Reason, ThreadSelector, collection_facts, collections,
    findings_about_collections,
};
use clrscope_recording::events::{Kind, Tag, Value};
use clrscope_recording::model::{
    EventArena, EventChunk, Function, Process, Recording, StackFrame, StacksBuilder, Thread,
};
use clrscope_recording::testing::chunk::HandmadeChunk;

fn number(number: u64) -> Value<'static> {
    Value::Number(number)
}

fn recording(chunks: Vec<EventChunk>) -> Recording {
    let thread = |id: u32| Thread { id, os_id: 100 + id, ..Thread::default() };
    let events = vec![EventArena { instrument: "gc".into(), chunks }];
    let process = Process { pid: 7, threads: vec![thread(1), thread(2), thread(3)], events, ..Process::default() };
    let mut recording = Recording { processes: vec![process], ..Recording::default() };
    recording.run.duration_ns = 100_000;
    recording
}

fn rows(recording: &Recording) -> Vec<Collection<'_>> {
    collections(recording, &Query::default()).expect("collections")
}

/// Start of a suspension, of this reason.
fn suspend(chunk: HandmadeChunk, reason: u64) -> HandmadeChunk {
    let begins = [(Tag::STEP, number(9)), (Tag::REASON_CODE, number(1))];
    chunk
        .put(Kind::GC_SUSPENSION, &begins)
        .put(Kind::RUNTIME_SUSPEND_STARTED, &[(Tag::REASON_CODE, number(reason)), (Tag::STACK_NODE, number(0))])
        .put(Kind::RUNTIME_SUSPEND_FINISHED, &[])
        .put(Kind::GC_SUSPENSION, &[(Tag::STEP, number(8))])
}

fn resume(chunk: HandmadeChunk) -> HandmadeChunk {
    chunk
        .put(Kind::RUNTIME_RESUME_STARTED, &[])
        .put(Kind::RUNTIME_RESUME_FINISHED, &[])
        .put(Kind::GC_SUSPENSION, &[(Tag::STEP, number(3))])
}

fn started(chunk: HandmadeChunk, of: u64, generation: u64, kind: u64) -> HandmadeChunk {
    let fields = [(Tag::NUMBER, of), (Tag::GENERATION, generation), (Tag::REASON_CODE, 0), (Tag::GC_TYPE, kind)];
    chunk
        .put(Kind::GC_STARTED, &fields.map(|(tag, value)| (tag, number(value))))
        .put(Kind::GARBAGE_COLLECTION_STARTED, &[(Tag::GENERATIONS, number((2 << generation) - 1))])
}

/// Sizes of two heaps, and the end.
fn ended(chunk: HandmadeChunk, of: u64, mechanisms: u64, left: u64) -> HandmadeChunk {
    met(chunk, of, mechanisms, left, 1_000)
}

/// As [`ended`], of a collection that met so much in the youngest generation of each heap.
fn met(chunk: HandmadeChunk, of: u64, mechanisms: u64, left: u64, young: u64) -> HandmadeChunk {
    let generations = (0..5_u64).flat_map(|generation| {
        let after = if generation == 2 { left / 2 } else { 0 };
        [
            (Tag::GENERATION, number(generation)),
            (Tag::BEFORE, number(if generation == 0 { young } else { 1_000 })),
            (Tag::FREE_BEFORE, number(100)),
            (Tag::AFTER, number(after + 50)),
            (Tag::FREE_AFTER, number(50)),
        ]
    });
    let heap: Vec<_> = [(Tag::HEAP, number(0))].into_iter().chain(generations).collect();
    chunk
        .put(Kind::GC_MECHANISMS, &[(Tag::MECHANISMS, number(mechanisms)), (Tag::MEMORY_LOAD, number(40))])
        .put(Kind::GC_HEAP, &heap)
        .put(Kind::GC_HEAP, &heap)
        .put(Kind::GC_ENDED, &[(Tag::NUMBER, number(of))])
        .put(Kind::GARBAGE_COLLECTION_FINISHED, &[])
        .put(
            Kind::GC_STATISTICS,
            &[
                (Tag::GENERATION, number(0)),
                (Tag::PROMOTED, number(7)),
                (Tag::PROMOTED, number(8)),
                (Tag::PINNED, number(3)),
            ],
        )
}

#[test]
fn a_blocking_collection_has_its_pause_its_sizes_and_its_thread() {
    let triggered = [(Tag::REASON_CODE, number(0)), (Tag::STACK_NODE, number(0))];
    let chunk = suspend(HandmadeChunk::new(1, 1, 10_000), 1).put(Kind::GC_TRIGGERED, &triggered);
    let chunk = resume(ended(started(chunk, 5, 1, 0), 5, 2, 800));
    let finalizers = HandmadeChunk::new(2, 2, 50_000).put(Kind::GC_FINALIZERS, &[(Tag::COUNT, number(4))]);
    let recording = recording(vec![chunk.finish(), finalizers.finish()]);
    let rows = rows(&recording);
    let [row] = rows.as_slice() else { panic!("{rows:#?}") };
    assert_eq!(
        (row.number, row.generation, row.reason, row.kind),
        (Some(5), 1, Reason::Known(0), CollectionKind::Blocking)
    );
    // Records are a microsecond apart: the callback comes second, and the 14th is that of the
    // restart.
    assert_eq!(
        (row.start_ns, row.suspend_ns, row.pause_ns, row.runtime_pause_ns, row.runtime_suspend_ns),
        (11_000, 1_000, 13_000, Some(15_000), Some(3_000))
    );
    assert_eq!((row.compacting, row.memory_load, row.promoted_bytes), (Some(true), Some(40), Some(15)));
    assert_eq!((row.pinned_objects, row.finalizers, row.thread.map(|thread| thread.id)), (Some(3), 4, Some(2)));
    assert_eq!((row.before_bytes(), row.after_bytes(), row.live_bytes()), (Some(10_000), Some(1_300), Some(800)));
    assert!(row.end_ns.is_some_and(|end| end > row.start_ns) && row.allocated_bytes.is_none());
}

#[test]
fn pauses_belong_to_one_collection_each() {
    // One in the background and a blocking one begin in a pause; the former pauses the program once
    // more, on its own thread.
    let chunk = suspend(HandmadeChunk::new(0, 1, 10_000), 1);
    let chunk = started(started(chunk, 1, 2, 1), 2, 1, 2);
    let chunk = resume(ended(chunk, 2, 0, 100));
    let background = suspend(HandmadeChunk::new(1, 2, 60_000), 7);
    let background = ended(resume(background), 1, 1, 500);
    // What has nothing to do with collections is no pause of one.
    let other = resume(suspend(HandmadeChunk::new(2, 3, 90_000), 4));
    let recording = recording(vec![chunk.finish(), background.finish(), other.finish()]);
    let rows = rows(&recording);
    let [background, foreground] = rows.as_slice() else { panic!("{rows:#?}") };
    assert_eq!((background.kind, background.number), (CollectionKind::Background, Some(1)));
    assert_eq!((foreground.kind, foreground.number), (CollectionKind::Foreground, Some(2)));
    assert_eq!((background.pause_ns, foreground.pause_ns), (4_000, 14_000), "{rows:#?}");
    assert_eq!((background.live_bytes(), foreground.live_bytes()), (Some(500), Some(100)));
    let facts = collection_facts(&recording, &Query::default()).expect("facts");
    assert_eq!((facts.count, facts.background, facts.pause_ns, facts.generations), (2, 1, 18_000, [0, 1, 1]));
}

#[test]
fn callbacks_alone_tell_of_collections_and_events_of_the_same_ones_tell_more() {
    let alone = |chunk: HandmadeChunk, answer: u64| {
        let fields = [(Tag::GENERATIONS, number(7)), (Tag::ANSWER, number(answer))];
        let chunk = suspend(chunk, 1).put(Kind::GARBAGE_COLLECTION_STARTED, &fields);
        resume(chunk.put(Kind::GARBAGE_COLLECTION_FINISHED, &[]))
    };
    let chunk = alone(HandmadeChunk::new(0, 1, 10_000), 1);
    let chunk = resume(ended(started(suspend(chunk, 1), 9, 0, 0), 9, 0, 100));
    let recording = recording(vec![chunk.finish()]);
    let rows = rows(&recording);
    let [first, second] = rows.as_slice() else { panic!("{rows:#?}") };
    assert_eq!((first.number, first.generation, first.reason.words()), (None, 2, "induced"));
    assert!(first.end_ns.is_some() && first.pause_ns > 0 && first.before_bytes().is_none());
    assert_eq!((second.number, second.generation), (Some(9), 0));
}

#[test]
fn rows_are_those_of_the_time_and_the_thread_that_are_asked_for() {
    let one = |thread: u32, of: u64| {
        let triggered = [(Tag::REASON_CODE, number(0)), (Tag::STACK_NODE, number(0))];
        let chunk = suspend(HandmadeChunk::new(thread, of, of * 30_000), 1).put(Kind::GC_TRIGGERED, &triggered);
        resume(ended(started(chunk, of, 0, 0), of, 0, 100)).finish()
    };
    let recording = recording(vec![one(0, 1), one(1, 2)]);
    let numbers = |query: Query| {
        let rows = collections(&recording, &query).expect("collections");
        rows.iter().filter_map(|row| row.number).collect::<Vec<_>>()
    };
    assert_eq!(numbers(Query::default()), [1, 2]);
    assert_eq!(numbers(Query { since_ns: Some(55_000), ..Query::default() }), [2]);
    assert_eq!(numbers(Query { until_ns: Some(55_000), ..Query::default() }), [1]);
    assert_eq!(numbers(Query { threads: vec![ThreadSelector::parse("2")], ..Query::default() }), [2]);
    let nothing = Recording { processes: vec![Process::default()], ..Recording::default() };
    assert!(collections(&nothing, &Query::default()).is_err(), "gc was not recorded");
}

/// Collections of everything, one second apart, after which so many megabytes are left.
fn leaving(megabytes: &[u64]) -> Recording {
    let mut chunks = Vec::new();
    for (of, left) in (1..).zip(megabytes) {
        let chunk = started(suspend(HandmadeChunk::new(0, of, of * 1_000_000_000), 1), of, 2, 0);
        chunks.push(resume(ended(chunk, of, 0, left * 1_000_000)).finish());
    }
    let mut recording = recording(chunks);
    recording.run.duration_ns = 20_000_000_000;
    recording
}

#[test]
fn a_heap_that_grows_from_one_full_collection_to_the_next_is_a_finding() {
    let told = |megabytes: &[u64]| {
        let recording = leaving(megabytes);
        let facts = collection_facts(&recording, &Query::default()).expect("facts");
        let findings = findings_about_collections(&facts);
        findings.into_iter().map(|finding| finding.text).find(|text| text.contains("grew"))
    };
    let text = told(&[10, 12, 14, 15, 18, 20]).expect("a finding");
    assert_eq!(
        text, "the heap grew from 10.0 MB to 20.0 MB after full collections, 6 of them in 5.00 s",
        "nobody saw a minute of it"
    );
    assert_eq!(told(&[10, 12]), None, "two are too few");
    assert_eq!(told(&[10, 30, 9, 28, 11, 31]), None, "up and down is no growth");
    assert_eq!(told(&[1_000, 1_001, 1_002, 1_003]), None, "a few parts in a thousand are none");
}

#[test]
fn growth_is_said_by_the_minute_where_it_was_seen_for_one() {
    let recording = leaving(&(10..80).collect::<Vec<u64>>());
    let facts = collection_facts(&recording, &Query::default()).expect("facts");
    let findings = findings_about_collections(&facts);
    let told = findings.into_iter().map(|finding| finding.text).find(|text| text.contains("grew"));
    let text =
        "the heap grew from 10.0 MB to 79.0 MB after full collections, 70 of them in 69.0 s, by 60.0 MB per minute";
    assert_eq!(told.as_deref(), Some(text));
}

/// A program that allocated 200 MB at its start and then slept for three seconds "allocated 20.3 GB
/// per second": the bytes were divided by the time from the first collection to the last.
#[test]
fn what_is_allocated_in_a_burst_is_said_by_the_time_recorded() {
    let milliseconds = 1_000_000;
    let one = |of: u64| {
        let chunk = HandmadeChunk::new(0, of, of * milliseconds);
        let chunk = suspend(chunk, 1).put(Kind::GC_TRIGGERED, &[(Tag::REASON_CODE, number(0))]);
        // Each collection meets 20 MB more than the one before left.
        resume(met(started(chunk, of, 0, 0), of, 0, 0, 9_998_300)).finish()
    };
    let mut recording = recording((1..=10).map(one).collect());
    recording.run.duration_ns = 3_200 * milliseconds;
    recording.processes[0].duration_ns = 3_200 * milliseconds;
    let facts = collection_facts(&recording, &Query::default()).expect("facts");
    assert_eq!((facts.allocated_bytes, facts.span_ns), (Some(200_000_000), 3_200 * milliseconds));
    let paused = &findings_about_collections(&facts)[0].text;
    let allocated = "; the program allocated at least 200 MB, 62.5 MB per second of the time recorded";
    assert!(paused.ends_with(allocated), "{paused}");
    // What the first collection of a part of the time met may be older than that.
    let query = Query { since_ns: Some(3 * milliseconds), ..Query::default() };
    let facts = collection_facts(&recording, &query).expect("facts");
    assert_eq!(facts.allocated_bytes, Some((facts.count - 1) * 20_000_000), "{facts:?}");
}

/// Sentences of the summary: the part of the time that the program stood still, the longest pause
/// with its reason and the code that caused it, and how much was allocated per second.
#[test]
fn the_summary_says_how_long_the_program_stood_still_and_by_whom() {
    let milliseconds = 1_000_000;
    // Two collections, one second apart. The program stands still for `pause_ns` in each.
    let one = |of: u64, generation: u64, pause_ns: u64| {
        let triggered = [(Tag::REASON_CODE, number(0)), (Tag::STACK_NODE, number(1))];
        let chunk = HandmadeChunk::new(0, of, of * 1_000 * milliseconds);
        let chunk = suspend(chunk, 1).put(Kind::GC_TRIGGERED, &triggered);
        resume(ended(started(chunk, of, generation, 0), of, 0, 4_000_000).after(pause_ns)).finish()
    };
    let mut recording = recording(vec![one(1, 0, 2 * milliseconds), one(2, 2, 30 * milliseconds)]);
    recording.run.duration_ns = 10_000 * milliseconds;
    let mut stacks = StacksBuilder::default();
    assert_eq!(stacks.stack(&[StackFrame::method(1, Some(3))], false), 1);
    let process = &mut recording.processes[0];
    process.stacks = Arc::new(stacks.finish());
    let name = "Shop.Report::Print".to_owned();
    process.functions = vec![Function::default(), Function { name, ..Function::default() }];
    let facts = collection_facts(&recording, &Query::default()).expect("facts");
    let texts: Vec<String> = findings_about_collections(&facts).into_iter().map(|finding| finding.text).collect();
    let [paused, longest] = texts.as_slice() else { panic!("{texts:#?}") };
    assert!(paused.starts_with("garbage collection paused the program for "), "{paused}");
    assert!(paused.contains(" ms): 2 collections (1 of generation 0, 0 of 1, 1 of 2"), "{paused}");
    assert!(paused.contains("; the program allocated "), "{paused}");
    assert!(paused.ends_with(" per second of the time recorded"), "{paused}");
    assert_eq!(
        longest,
        "the longest pause, 30.0 ms, was a blocking collection of generation 2: allocation of small objects, caused by Shop.Report::Print"
    );
    let share = facts.pause_ns as f64 / recording.run.duration_ns as f64;
    assert!((facts.paused_share() - share).abs() < 1e-9 && share > 0.0, "{facts:?}");
}
