//! Allocations that were written by hand: what was alive at which moment, and where in the source
//! it was allocated.

use std::sync::Arc;

use clrscope_analysis::{
    BYTES, CALLS, CodePlace, FoundPlace, OBJECTS, Query, QueryProblem, allocations, findings_about_allocations,
    keep_parts, lines,
};
use clrscope_recording::model::{
    Allocation, AllocationKind, AllocationSampling, CallsInfo, EventArena, EventChunk, Function, ObjectType, Part,
    Process, Recording, StackFrame, StacksBuilder, Thread,
};

/// A method of this number.
fn function(name: &str) -> Function {
    Function { name: name.to_owned(), signature: format!("{name}()"), module: 1, ..Function::default() }
}

/// `Main` calls `Fill` at offset 7 of its IL; `Fill` allocates 100 bytes at offset 1, twice 1,000
/// at offset 2. The first of these is gone at 30, after a collection, the last was allocated at 40.
fn recording() -> Recording {
    let mut stacks = StacksBuilder::default();
    let stack = |stacks: &mut StacksBuilder, offset| {
        stacks.stack(&[StackFrame::method(2, Some(offset)), StackFrame::method(1, Some(7))], false)
    };
    let [first, second] = [1, 2].map(|offset| stack(&mut stacks, offset));
    let of = |time_ns: u64, object: u32, bytes: u64, stack: u32| Allocation {
        time_ns,
        objects: 1,
        bytes,
        weight: bytes,
        objects_weight: 1 << 10,
        object_type: 1,
        stack,
        object,
        ..Allocation::default()
    };
    let seen = [of(10, 1, 100, first), of(20, 2, 1_000, second), of(40, 3, 1_000, second)];
    let mut bytes: Vec<u8> = seen.iter().flat_map(Allocation::to_bytes).collect();
    for one in seen {
        // The last was allocated after the collection.
        let collections = u64::from(one.object == 3);
        bytes.extend(Allocation { kind: AllocationKind::Followed, collections, ..one }.to_bytes());
    }
    let gone =
        Allocation { kind: AllocationKind::Gone, time_ns: 30, object: 1, collections: 1, ..Allocation::default() };
    bytes.extend(gone.to_bytes());
    let chunk = EventChunk { thread: 0, sequence: 1, bytes: bytes.into() };
    let process = Process {
        pid: 7,
        threads: vec![Thread { id: 1, ..Thread::default() }],
        functions: vec![Function::default(), function("Shop.Cache::Main"), function("Shop.Cache::Fill")],
        types: vec![ObjectType::default(), ObjectType { name: "byte[]".to_owned(), module: 0 }],
        stacks: Arc::new(stacks.finish()),
        events: vec![EventArena { instrument: "alloc".into(), chunks: vec![chunk] }],
        allocation_sampling: Some(AllocationSampling { follows: true, ..AllocationSampling::default() }),
        parts: [("1", 0, 25), ("mark", 25, 100)]
            .map(|(name, since_ns, until_ns)| Part { name: name.to_owned(), since_ns, until_ns, ..Part::default() })
            .into(),
        ..Process::default()
    };
    Recording { processes: vec![process], ..Recording::default() }
}

/// Objects and bytes that are alive, and collections that the oldest has outlived; what the summary
/// says of it.
fn alive(recording: &Recording, query: &Query) -> ((u64, u64, u64), String) {
    let view = allocations(recording, query).expect("allocations");
    let live = view.rows[0].live.expect("objects are followed");
    let said =
        findings_about_allocations(&view).into_iter().map(|finding| finding.text).find(|text| text.contains("alive"));
    ((live.objects, live.bytes, live.collections), said.unwrap_or_default())
}

#[test]
fn what_is_alive_is_asked_for_at_the_end_or_at_a_mark() {
    let recording = recording();
    let (live, said) = alive(&recording, &Query::default());
    assert_eq!(live, (2, 2_000, 1));
    assert!(said.contains("was still alive at the end, or not collected yet"), "{said}");
    // The other was allocated after the only collection.
    assert!(said.contains("; 1.00 kB of it outlived a collection: 1.00 kB of that byte[]"), "{said}");
    let row = &allocations(&recording, &Query::default()).expect("allocations").rows[0];
    let survived = row.live.map(|live| (live.survived_objects, live.survived_bytes));
    assert_eq!(survived, Some((1, 1_000)));
    let (live, said) = alive(&recording, &Query { until_ns: Some(25), ..Query::default() });
    assert_eq!(live, (2, 1_100, 0), "nothing is collected yet");
    assert!(said.contains("alive at the end of the time shown"), "{said}");
    assert!(said.contains("no collection has examined it"), "{said}");
    assert_eq!(
        alive(&recording, &Query { since_ns: Some(30), ..Query::default() }).0,
        (1, 1_000, 0),
        "what came since"
    );
    let at_mark = |part: &str| {
        let mut recording = recording.clone();
        keep_parts(&mut recording, &[part.to_owned()]).expect("a part");
        alive(&recording, &Query::default()).0
    };
    assert_eq!((at_mark("1"), at_mark("mark")), ((2, 1_100, 0), (1, 1_000, 0)));
}

/// Places that allocate what stays were told by the method alone, which may be long.
#[test]
fn who_allocates_most_is_told_with_the_instruction() {
    let recording = recording();
    let place = |query: &Query| {
        let row = allocations(&recording, query).expect("allocations").rows[0].clone();
        [row.place, row.live_place]
            .map(|by| by.map(|by| (by.function.name().to_owned(), by.bytes, by.il_offset)))
            .map(|by| by.expect("somebody allocates"))
    };
    let fill = |bytes, offset| ("Shop.Cache::Fill".to_owned(), bytes, Some(offset));
    // Most of all is allocated at 2, and of what survived all.
    assert_eq!(place(&Query::default()), [fill(2_100, 2), fill(1_000, 2)]);
    assert_eq!(place(&Query { until_ns: Some(15), ..Query::default() }), [fill(100, 1), fill(100, 1)]);
}

/// The file and line of a place in a function of a module.
type FindLine = dyn FnMut(&str, u32, CodePlace<'_>) -> FoundPlace;

#[test]
fn lines_have_the_bytes_that_they_allocate_and_those_of_their_calls() {
    let recording = recording();
    let find = &mut |_: &str, _: u32, place: CodePlace<'_>| {
        let line = place.il_offset.expect("an offset") + 10;
        FoundPlace::Line { file: "Cache.cs".to_owned(), line, by_call: false }
    };
    let rows = |query: Query, find: &mut FindLine| {
        let view = lines(&recording, &query, find).expect("lines");
        assert_eq!(view.amount_without_line, 0);
        view.rows
            .iter()
            .map(|row| (row.line.expect("a line"), row.amount, row.total, row.function.name().to_owned()))
            .collect::<Vec<_>>()
    };
    let row = |line, own, total, name: &str| (line, own, total, format!("Shop.Cache::{name}"));
    let by_bytes = [row(12, 2_000, 2_000, "Fill"), row(11, 100, 100, "Fill"), row(17, 0, 2_100, "Main")];
    assert_eq!(rows(Query::default(), find), by_bytes, "bytes, where no samples were taken");
    assert_eq!(rows(Query { metric: Some(&BYTES), ..Query::default() }, find), by_bytes);
    let by_objects = rows(Query { metric: Some(&OBJECTS), limit: Some(1), ..Query::default() }, find);
    assert_eq!(by_objects, [row(12, 2, 2, "Fill")]);
    let none = lines(&recording, &Query::default(), &mut |_, _, _| FoundPlace::NoSource).expect("lines");
    assert_eq!((none.rows.len(), none.amount_without_line), (0, 2_100));
    let mut refused = |recording: &Recording| {
        let query = Query { metric: Some(&CALLS), ..Query::default() };
        lines(recording, &query, find).expect_err("no lines")
    };
    assert!(matches!(refused(&recording), QueryProblem::MetricNotRecorded { .. }));
    let mut counted = recording.clone();
    counted.processes[0].calls = Some(CallsInfo::default());
    assert!(matches!(refused(&counted), QueryProblem::NotAvailable { option: "this --metric", .. }));
}
