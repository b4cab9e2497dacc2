//! The view `events`: names, depth, durations, order and filters, from records made by hand.

use clrscope_analysis::{EventLog, EventQuery, EventRow, LeftOut, Query, QueryProblem, ThreadSelector};
use clrscope_contract::request::{Glob, Pattern};
use clrscope_recording::events::{EntityRef, Group, Kind, Tag, Value};
use clrscope_recording::model::{EventArena, Function, Module, Process, Recording, Thread};
use clrscope_recording::testing::chunk::HandmadeChunk;
use proptest::prelude::*;

fn thing(id: u64, index: u32) -> Value<'static> {
    Value::Entity(EntityRef { id, index })
}

fn recording(chunks: Vec<HandmadeChunk>) -> Recording {
    let function = Function {
        name: "Shop.Cart::Pay".into(),
        signature: "Shop.Cart.Pay(int)".into(),
        module: 1,
        ..Default::default()
    };
    let threads = (1..=2).map(|id| Thread { id, os_id: 100 + id, name: format!("worker {id}"), ..Default::default() });
    let process = Process {
        pid: 9,
        started_ns: 1_000_000,
        functions: vec![Function::default(), function],
        modules: vec![Module::default(), Module { name: "Shop".into(), ..Default::default() }],
        threads: threads.collect(),
        events: vec![EventArena {
            instrument: "events".into(),
            chunks: chunks.into_iter().map(HandmadeChunk::finish).collect(),
        }],
        ..Default::default()
    };
    Recording { processes: vec![process], ..Default::default() }
}

/// An assembly whose name comes after its load began, a compilation, a collection that ends
/// elsewhere.
fn sample() -> Recording {
    let jit = [(Tag::FUNCTION, thing(0x70, 1))];
    let one = HandmadeChunk::new(0, 1, 5_000)
        .put(Kind::ASSEMBLY_LOAD_STARTED, &[(Tag::ASSEMBLY, thing(0x10, 1))])
        .put(Kind::CLASS_LOAD_STARTED, &[(Tag::CLASS, thing(0x20, 2))])
        .put(Kind::NAME, &[(Tag::ASSEMBLY, thing(0x10, 1)), (Tag::NAME, "Shop".into())])
        .put(
            Kind::CLASS_LOAD_FINISHED,
            &[
                (Tag::CLASS, thing(0x20, 2)),
                (Tag::RESULT, Value::Number(0x8013_1351)),
                (Tag::RESULT_NAME, "CORPROF_E_DATAINCOMPLETE".into()),
            ],
        )
        .put(Kind::ASSEMBLY_LOAD_FINISHED, &[(Tag::ASSEMBLY, thing(0x10, 1)), (Tag::RESULT, 0_u64.into())])
        .put(Kind::JIT_COMPILATION_STARTED, &jit)
        .put(Kind::GARBAGE_COLLECTION_STARTED, &[(Tag::REASON, "induced".into())])
        .put(Kind::JIT_COMPILATION_FINISHED, &jit);
    let two = HandmadeChunk::new(1, 2, 11_500)
        .put(Kind::GARBAGE_COLLECTION_FINISHED, &[])
        .put(Kind::EXCEPTION_UNWIND_FUNCTION_ENTER, &jit)
        .put(Kind::EXCEPTION_CATCHER_ENTER, &jit)
        .put(Kind::EXCEPTION_CATCHER_LEAVE, &[])
        .put(Kind::THREAD_CREATED, &[(Tag::THREAD, thing(0x30, 3))]);
    // An identifier used a second time, for another assembly.
    let three = HandmadeChunk::new(1, 3, 30_000)
        .put(Kind::ASSEMBLY_LOAD_STARTED, &[(Tag::ASSEMBLY, thing(0x10, 4))])
        .put(Kind::NAME, &[(Tag::ASSEMBLY, thing(0x10, 4)), (Tag::NAME, "Plugin".into())]);
    recording(vec![one, two, three])
}

#[test]
fn a_search_without_end_says_that_the_precompiled_code_was_rejected() {
    let (pay, other) = ([(Tag::FUNCTION, thing(0x70, 1))], [(Tag::FUNCTION, thing(0x78, 2))]);
    let found = [(Tag::FUNCTION, thing(0x70, 1)), (Tag::ANSWER, 1_u64.into())];
    let chunk = HandmadeChunk::new(0, 1, 0)
        .put(Kind::JIT_CACHED_FUNCTION_SEARCH_STARTED, &pay)
        .put(Kind::JIT_COMPILATION_STARTED, &pay)
        .put(Kind::JIT_CACHED_FUNCTION_SEARCH_STARTED, &pay)
        .put(Kind::JIT_CACHED_FUNCTION_SEARCH_FINISHED, &found)
        .put(Kind::JIT_COMPILATION_FINISHED, &pay)
        // The last thing that was recorded before something else: its outcome is unknown.
        .put(Kind::JIT_CACHED_FUNCTION_SEARCH_STARTED, &pay)
        .put(Kind::JIT_COMPILATION_STARTED, &other);
    let recording = recording(vec![chunk]);
    let log = log(&recording, &EventQuery::default());
    let (rows, _) = log.rows();
    let reasons: Vec<_> = rows.iter().map(EventRow::reason).collect();
    let rejected = Some("the precompiled code was rejected");
    assert_eq!(reasons, [rejected, None, None, None, None, None, None]);
    assert_eq!(rows[3].details().collect::<Vec<_>>(), [("found", 1)]);
}

fn shown(recording: &Recording, query: &EventQuery) -> Vec<String> {
    log(recording, query).rows().0.iter().map(line).collect()
}

fn log<'a>(recording: &'a Recording, query: &EventQuery) -> EventLog<'a> {
    EventLog::open(recording, query).expect("events")
}

fn line(row: &EventRow<'_>) -> String {
    let names: Vec<_> = row.subjects().map(|s| s.name.map_or(format!("{:#x}", s.id), ToOwned::to_owned)).collect();
    let duration = row.duration_ns.map_or("-".to_owned(), |ns| ns.to_string());
    let thread = row.thread.map_or(0, |t| t.id);
    format!("{thread} {} {} {} {} {duration}", row.time_ns, row.depth, row.event(), names.join(","))
}

#[test]
fn events_are_named_nested_and_timed_thread_by_thread() {
    let expected = [
        "1 1005000 0 AssemblyLoadStarted Shop 4000",
        "1 1006000 1 ClassLoadStarted 0x20 2000",
        "1 1008000 1 ClassLoadFinished 0x20 2000",
        "1 1009000 0 AssemblyLoadFinished Shop 4000",
        "1 1010000 0 JITCompilationStarted Shop.Cart.Pay(int) 2000",
        "1 1011000 1 GarbageCollectionStarted  500",
        "1 1012000 0 JITCompilationFinished Shop.Cart.Pay(int) 2000",
        "2 1011500 0 GarbageCollectionFinished  500",
        // The unwind that found its catcher has no end.
        "2 1012500 0 ExceptionUnwindFunctionEnter Shop.Cart.Pay(int) -",
        "2 1013500 0 ExceptionCatcherEnter Shop.Cart.Pay(int) 1000",
        "2 1014500 0 ExceptionCatcherLeave  1000",
        "2 1015500 0 ThreadCreated 0x30 -",
        "2 1030000 0 AssemblyLoadStarted Plugin -",
    ];
    assert_eq!(shown(&sample(), &EventQuery::default()), expected);
}

#[test]
fn results_and_reasons_are_in_words() {
    let recording = sample();
    let log = log(&recording, &EventQuery::default());
    let (rows, _) = log.rows();
    assert_eq!(rows[2].result().as_deref(), Some("CORPROF_E_DATAINCOMPLETE"));
    assert_eq!(rows[3].result().as_deref(), Some("S_OK"));
    assert_eq!((rows[5].reason(), rows[5].result()), (Some("induced"), None));
    assert_eq!((rows[0].group(), rows[0].phase()), ("loads", "start"));
}

#[test]
fn interleaved_they_stand_in_the_order_of_time() {
    let recording = sample();
    let log = log(&recording, &EventQuery { interleave: true, ..Default::default() });
    let (rows, _) = log.rows();
    assert!(rows.is_sorted_by_key(|row| row.time_ns));
    assert_eq!(rows[6].event(), "GarbageCollectionFinished");
}

#[test]
fn filters_by_group_name_thread_function_and_time() {
    let recording = sample();
    let count = |query: EventQuery| log(&recording, &query).rows().0.len();
    let with = |query: Query| EventQuery { query, ..Default::default() };
    assert_eq!(count(EventQuery { groups: vec![Group::Gc, Group::Threads], ..Default::default() }), 3);
    assert_eq!(count(EventQuery { names: vec![Glob::new("Plug*")], ..Default::default() }), 1);
    assert_eq!(count(EventQuery { names: vec![Glob::new("*Finished")], ..Default::default() }), 4);
    assert_eq!(count(with(Query { threads: vec![ThreadSelector::parse("102")], ..Default::default() })), 6);
    let pay = Pattern::parse("[Shop]*::Pay").expect("a pattern");
    assert_eq!(count(with(Query { functions: vec![pay], ..Default::default() })), 4);
    assert_eq!(count(with(Query { since_ns: Some(1_012_500), until_ns: Some(1_015_000), ..Default::default() })), 3);
    let limited = log(&recording, &with(Query { limit: Some(2), ..Default::default() }));
    let (rows, left_out) = limited.rows();
    assert_eq!((rows.len(), left_out), (2, LeftOut { rows: 11, is_whole: true }));
}

#[test]
fn filters_leave_depth_as_it_was() {
    let recording = sample();
    let gc = EventQuery { groups: vec![Group::Gc], ..Default::default() };
    assert_eq!(shown(&recording, &gc)[0], "1 1011000 1 GarbageCollectionStarted  500");
}

#[test]
fn a_recording_without_the_instrument_says_so() {
    let recording = Recording { processes: vec![Process::default()], ..Default::default() };
    let problem = EventLog::open(&recording, &EventQuery::default()).expect_err("it did not run");
    assert_eq!(problem, QueryProblem::NotRecorded { view: "events", instrument: "events" });
}

/// Events of one thread, a microsecond apart, in chunks of so many.
fn in_chunks(thread: u32, sequence: &mut u64, kinds: &[(Kind, u32)], most: usize) -> Vec<HandmadeChunk> {
    let mut chunks = Vec::new();
    for (number, part) in (0_u64..).zip(kinds.chunks(most)) {
        *sequence += 1;
        let chunk = HandmadeChunk::new(thread, *sequence, (number * most as u64 + 1) * 1_000);
        let put = |chunk: HandmadeChunk, &(kind, index): &(Kind, u32)| {
            chunk.put(kind, &[(Tag::FUNCTION, thing(0x70 + u64::from(index), index))])
        };
        chunks.push(part.iter().fold(chunk, put));
    }
    chunks
}

fn any_kinds() -> impl Strategy<Value = Vec<(Kind, u32)>> {
    let kinds = prop_oneof![
        Just(Kind::JIT_CACHED_FUNCTION_SEARCH_STARTED),
        Just(Kind::JIT_CACHED_FUNCTION_SEARCH_FINISHED),
        Just(Kind::JIT_COMPILATION_STARTED),
        Just(Kind::JIT_COMPILATION_FINISHED),
        Just(Kind::GARBAGE_COLLECTION_STARTED),
        Just(Kind::GARBAGE_COLLECTION_FINISHED),
        Just(Kind::EXCEPTION_THROWN),
        Just(Kind::NAME),
    ];
    proptest::collection::vec((kinds, 0..2_u32), 0..40)
}

proptest! {
    #[test]
    fn events_are_the_same_however_they_are_cut_into_chunks(one in any_kinds(), two in any_kinds(), most in 1..7_usize) {
        let made = |most: usize| {
            let mut sequence = 0;
            let chunks = [(0, &one), (1, &two)].map(|(thread, kinds)| in_chunks(thread, &mut sequence, kinds, most));
            recording(chunks.concat())
        };
        let (whole, cut) = (made(usize::MAX >> 1), made(most));
        for interleave in [false, true] {
            let query = EventQuery { interleave, ..EventQuery::default() };
            let reasons = |recording| {
                let log = log(recording, &query);
                let (rows, _) = log.rows();
                rows.iter().map(|row| row.reason().map(str::to_owned)).collect::<Vec<_>>()
            };
            prop_assert_eq!(shown(&whole, &query), shown(&cut, &query));
            prop_assert_eq!(reasons(&whole), reasons(&cut));
        }
    }
}
