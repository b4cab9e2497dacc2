//! Every view with every option: each option either changes what the view shows, or is refused.

mod pages;

use std::collections::BTreeSet;
use std::sync::Arc;

use clrscope_analysis::{
    BYTES, CPU, EXCEPTIONS, METRICS, Metric, NativeCode, PathKind, Query, QueryProblem, Sort, ThreadSelector, WALL,
    keep_requests, name_native_code,
};
use clrscope_contract::request::{Glob, Pattern};
use clrscope_recording::events::{EntityRef, Group, Kind, Records, Tag, Value};
use clrscope_recording::layout::{flow, probes, value};
use clrscope_recording::model::{
    Allocation, CoveragePlan, CoverageSource, EventArena, EventChunk, Function, FunctionKind, HeapType, HookCost, Loss,
    LossReason, MethodHits, Module, ModuleKind, ObjectType, PlannedBranch, PlannedMethod, PlannedPoint, ProbeCallEnd,
    ProbeCallRecord, ProbeCaller, ProbedMethod, Process, Recording, RootKind, Sample, StackFrame, StacksBuilder,
    TreeSource,
};
use clrscope_recording::payload::PayloadWriter;
use clrscope_recording::testing::ascii_trees::recording_with;
use clrscope_recording::testing::chunk::HandmadeChunk;
use clrscope_recording::testing::heap::HandmadeHeap;
use clrscope_report::{Flag, FollowState, Format, Request, VIEWS, View, view};

const TREES: &str = "
thread 1 main
  Main 1 1000 10
    Pay 3 3000 500
      Main 1 50 40
      Deep 1 60 40
    Deep 9 900 800
thread 2 worker
  Pay 2 700 600
    Main 4 100 90
    Deep 5 40 30
";

fn thing(id: u64, index: u32) -> Value<'static> {
    Value::Entity(EntityRef { id, index })
}

/// Compilations of `Main` and `Pay` on the first thread, a collection within which something is
/// finalised on the second.
fn events() -> EventArena {
    let (main, pay) = ((Tag::FUNCTION, thing(0x71, 1)), (Tag::FUNCTION, thing(0x72, 2)));
    let first = HandmadeChunk::new(0, 1, 1_000_000)
        .put(Kind::JIT_COMPILATION_STARTED, &[main])
        .put(Kind::JIT_COMPILATION_FINISHED, &[main, (Tag::RESULT, 0_u64.into())])
        .put(Kind::JIT_COMPILATION_STARTED, &[pay]);
    let second = HandmadeChunk::new(1, 2, 500_000)
        .put(Kind::GARBAGE_COLLECTION_STARTED, &[(Tag::GENERATIONS, 3_u64.into())])
        .put(Kind::GARBAGE_COLLECTION_FINISHED, &[]);
    EventArena { instrument: "events".into(), chunks: vec![first.finish(), second.finish()] }
}

/// A throw of each of two types: the rarer one, of the later name, in `Pay`. `nodes` are the stacks
/// of `Main` and `Pay`.
fn exceptions(nodes: [u32; 2]) -> EventArena {
    let thrown = |chunk: HandmadeChunk, class: u32, number: u64, function: u32| {
        let named = if class == 1 { "B.Rare" } else { "A.Frequent" };
        let node = u64::from(nodes[function as usize - 1]);
        chunk
            .put(Kind::NAME, &[(Tag::CLASS, thing(0x50, class)), (Tag::NAME, named.into())])
            .put(
                Kind::EXCEPTION_THROWN,
                &[
                    (Tag::OBJECT, (0x900 + number).into()),
                    (Tag::CLASS, thing(0x50, class)),
                    (Tag::STACK_NODE, node.into()),
                ],
            )
            .put(
                Kind::EXCEPTION_CATCHER_ENTER,
                &[(Tag::FUNCTION, thing(0x70, function)), (Tag::OBJECT, (0x900 + number).into())],
            )
    };
    let first = thrown(HandmadeChunk::new(0, 1, 2_000_000), 1, 1, 2);
    let second = thrown(thrown(HandmadeChunk::new(1, 2, 9_000_000), 2, 2, 1), 2, 3, 1);
    EventArena { instrument: "exceptions".into(), chunks: vec![first.finish(), second.finish()] }
}

/// A long wait for a lock in `Pay`, and two short ones for another in `Main`. `nodes` are the
/// stacks of `Main` and `Pay`.
fn waits(nodes: [u32; 2]) -> EventArena {
    let waits = |chunk: HandmadeChunk, class: u32, node: u32, ns: u64| {
        let lock = (1_u64 << 40) + u64::from(class) * 8;
        chunk
            .put(
                Kind::CONTENTION_STARTED,
                &[(Tag::LOCK, lock.into()), (Tag::CLASS, thing(0, class)), (Tag::STACK_NODE, u64::from(node).into())],
            )
            .after(ns)
            .put(Kind::CONTENTION_ENDED, &[])
    };
    // At the very beginning, and later.
    let long = waits(HandmadeChunk::new(0, 1, 0), 2, nodes[1], 9_000);
    let short = waits(waits(HandmadeChunk::new(1, 2, 9_000_000), 1, nodes[0], 1_000), 1, nodes[0], 1_000);
    EventArena { instrument: "locks".into(), chunks: vec![long.finish(), short.finish()] }
}

/// `Pay` waited long for `Bank::Send`, and `Main` twice for a short time, once in vain; one waits
/// still.
fn awaited(nodes: [u32; 2]) -> EventArena {
    let stack = |node: u32| (Tag::STACK_NODE, u64::from(node).into());
    let places = HandmadeChunk::new(0, 1, 0)
        .put(Kind::AWAIT_PLACE, &[stack(nodes[1]), (Tag::NAME, "Shop.Bank::Send".into())])
        .put(Kind::AWAIT_PLACE, &[stack(nodes[0]), (Tag::NAME, "System.Threading.Tasks.Task::Delay".into())]);
    let ended = |chunk: HandmadeChunk, node: u32, ns: u64, outcome: u64| {
        chunk.put(Kind::AWAIT_ENDED, &[stack(node), (Tag::DURATION, ns.into()), (Tag::OUTCOME, outcome.into())])
    };
    let long = ended(places, nodes[1], 9_000, 0);
    let short = ended(ended(HandmadeChunk::new(1, 2, 9_000_000), nodes[0], 1_000, 0), nodes[0], 1_000, 1);
    let short = short.put(Kind::AWAIT_PENDING, &[stack(nodes[0]), (Tag::DURATION, 5_000_u64.into())]);
    EventArena { instrument: "awaits".into(), chunks: vec![long.finish(), short.finish()] }
}

/// A counter that is added to, and one that measures.
fn counters() -> EventArena {
    let named = |chunk: HandmadeChunk, number: u64, kind: u64, name: &'static str| {
        let numbers = [(Tag::COUNTER, number.into()), (Tag::COUNTER_KIND, kind.into())];
        let texts = [(Tag::SOURCE, "Shop".into()), (Tag::NAME, name.into()), (Tag::UNIT, "EUR".into())];
        chunk.put(Kind::COUNTER_NAME, &[&numbers[..], &texts[..]].concat())
    };
    let value = |chunk: HandmadeChunk, number: u64, value: f64, quantiles: &'static str| {
        let fields = [(Tag::COUNTER, number.into()), (Tag::VALUE, value.to_bits().into()), (Tag::COUNT, 2_u64.into())];
        let more = [(Tag::DURATION, 500_000_000_u64.into()), (Tag::QUANTILES, quantiles.into())];
        chunk.put(Kind::COUNTER_VALUE, &[&fields[..], &more[..]].concat())
    };
    let named = named(named(HandmadeChunk::new(0, 1, 0), 1, 1, "orders"), 2, 3, "prices");
    let valued = value(value(named, 1, 40.0, ""), 2, 9.0, "0.5=4;0.95=5;0.99=5");
    // The last one lies behind what `--until` leaves.
    let late = value(HandmadeChunk::new(1, 2, 9_000_000), 1, 60.0, "");
    EventArena { instrument: "counters".into(), chunks: vec![valued.finish(), late.finish()] }
}

/// Looks at the memory: the first is the peak, the last whole one lies behind what `--until`
/// leaves.
fn memory() -> EventArena {
    let look = |chunk: HandmadeChunk, number: u64, heap: u64, records: u64| {
        let number = (Tag::NUMBER, number.into());
        let place = |place: u64, bytes: u64| {
            [number, (Tag::PLACE, place.into()), (Tag::BYTES, bytes.into()), (Tag::COMMITTED, (bytes * 2).into())]
        };
        let file = [&place(4, 3_000_000)[..], &[(Tag::NAME, "/usr/lib/libcoreclr.so".into())]].concat();
        let sizes = |generation: u64, bytes: u64| {
            let after = (Tag::AFTER, bytes.into());
            [number, (Tag::GENERATION, generation.into()), after, (Tag::FREE_AFTER, (bytes / 4).into())]
        };
        let head = [number, (Tag::COUNT, records.into()), (Tag::MOST, 99_000_000_u64.into())];
        chunk
            .put(Kind::MEMORY_LOOK, &head)
            .put(Kind::MEMORY_PLACE, &place(1, heap))
            .put(Kind::MEMORY_PLACE, &file)
            .put(Kind::MEMORY_PLACE, &place(6, 1_000_000))
            .put(Kind::MEMORY_GENERATION, &sizes(0, 0))
            .put(Kind::MEMORY_GENERATION, &sizes(2, 4_000_000))
    };
    let first = look(HandmadeChunk::new(0, 1, 0), 1, 30_000_000, 5);
    let last = look(look(HandmadeChunk::new(1, 2, 9_000_000), 2, 20_000_000, 5), 3, 90_000_000, 6);
    EventArena { instrument: "memory".into(), chunks: vec![first.finish(), last.finish()] }
}

/// Two requests that were served, one of them in vain, one that was made, and one that never ended.
fn requests() -> EventArena {
    let name = |chunk: HandmadeChunk, number: u64, direction: u64, name: &'static str| {
        let fields = [(Tag::ROUTE, number.into()), (Tag::DIRECTION, direction.into()), (Tag::NAME, name.into())];
        chunk.put(Kind::REQUEST_NAME, &fields)
    };
    let ended = |chunk: HandmadeChunk, number: u64, ns: u64, status: u64| {
        let fields = [(Tag::ROUTE, number.into()), (Tag::DURATION, ns.into()), (Tag::STATUS, status.into())];
        // Times are ids as well.
        chunk.put(Kind::REQUEST_ENDED, &[&fields[..], &[(Tag::REQUEST, ns.into())]].concat())
    };
    let named = name(name(HandmadeChunk::new(0, 1, 0), 1, 0, "GET /orders/{id}"), 2, 1, "POST bank.example");
    let served = ended(ended(named, 1, 4_000, 503), 1, 9_000, 200);
    // A thread works for the second one from its beginning on.
    let served = served.put(Kind::REQUEST_ON_THREAD, &[(Tag::REQUEST, 9_000_u64.into())]);
    let made = ended(HandmadeChunk::new(1, 2, 9_000_000), 2, 20_000, 200);
    let made = made.put(Kind::REQUEST_PENDING, &[(Tag::ROUTE, 2_u64.into()), (Tag::DURATION, 700_u64.into())]);
    EventArena { instrument: "requests".into(), chunks: vec![served.finish(), made.finish()] }
}

/// `Main` calls `Pay` on each thread.
fn calls() -> EventArena {
    let chunk = |thread: u32, start: u64| {
        let events = [(flow::ENTER | 1, 800), (flow::ENTER | 2, 700), (flow::LEAVE | 2, 700), (flow::LEAVE | 1, 800)];
        let mut bytes = Vec::new();
        for (at, (what, sp)) in (0_u64..).zip(events) {
            bytes.extend_from_slice(&(start + at * 100).to_le_bytes());
            bytes.extend_from_slice(&what.to_le_bytes());
            bytes.extend_from_slice(&u32::to_le_bytes(sp));
        }
        EventChunk { thread, sequence: u64::from(thread) + 1, bytes: bytes.into() }
    };
    EventArena { instrument: "flow".into(), chunks: vec![chunk(0, 1_000), chunk(1, 5_000)] }
}

/// A module with a symbol file: lines of a real one.
fn lines_of() -> String {
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../dotnet/fixtures/bin/Exceptions.dll").to_owned()
}

/// A collection that `Main` causes on the first thread, and one that `Pay` does on the second.
/// `nodes` are their stacks.
fn collections(nodes: [u32; 2]) -> EventArena {
    let collection = |thread: u32, number: u64| {
        let [number_of, generation] = [(Tag::NUMBER, number.into()), (Tag::GENERATION, (number % 3).into())];
        HandmadeChunk::new(thread, number, number * 3_000_000)
            .put(
                Kind::RUNTIME_SUSPEND_STARTED,
                &[(Tag::REASON_CODE, 1_u64.into()), (Tag::STACK_NODE, nodes[thread as usize].into())],
            )
            .put(Kind::GC_STARTED, &[number_of, generation, (Tag::REASON_CODE, 1_u64.into())])
            .put(Kind::GC_ENDED, &[number_of, generation])
            .put(Kind::RUNTIME_RESUME_FINISHED, &[])
            .finish()
    };
    let survivors = |class: u32, generation: u64, objects: u64, bytes: u64| {
        let fields = [(Tag::GENERATION, generation), (Tag::COUNT, objects), (Tag::BYTES, bytes), (Tag::MOVED, 1)];
        [(Tag::CLASS, thing(0, class))].into_iter().chain(fields.map(|(tag, number)| (tag, number.into()))).collect()
    };
    let put = |chunk: HandmadeChunk, fields: Vec<_>| chunk.put(Kind::GC_SURVIVORS, &fields);
    // At the very beginning, and later.
    let survived = put(HandmadeChunk::new(0, 3, 0), survivors(1, 0, 9, 100));
    let survived = put(survived, survivors(2, 2, 5, 200)).finish();
    EventArena { instrument: "gc".into(), chunks: vec![survived, collection(0, 4), collection(1, 5)] }
}

/// A method of the module that has several lines.
fn method_with_lines(module: &str) -> u32 {
    let mut lines = clrscope_symbols::Lines::default();
    let mut line = |method, offset| lines.find(module, method, offset).map(|found| found.line);
    let has_two = |method: &u32| line(*method, 0).is_some() && line(*method, 39) > line(*method, 0);
    (0x0600_0001..0x0600_0100).find(has_two).expect("a method of several lines")
}

/// Samples of two lines: more in `Pay`, but more through `Main`, on both threads.
fn samples(stacks: &mut StacksBuilder, nameless: [u32; 2]) -> EventArena {
    let at = |function, offset| StackFrame::method(function, Some(offset));
    let alone = stacks.stack(&[at(2, 0)], false);
    let below = stacks.stack(&[at(2, 39), at(1, 0)], false);
    let called = stacks.stack(&[at(nameless[1], 0), at(nameless[0], 0), at(2, 39), at(1, 0)], false);
    let all = [(1, alone, 3), (1, below, 4), (2, alone, 1), (2, below, 1), (2, called, 2)];
    let mut chunk = Vec::new();
    for (at, (thread, stack, count)) in (0_u64..).zip(all) {
        let time_ns = 100 + at * 1_000_000;
        let weight_ns = u64::from(count) * 1_000;
        let sample = Sample { time_ns, weight_ns, thread, stack, count, complete: true, ..Sample::default() };
        chunk.extend(sample.to_bytes());
    }
    let chunk = EventChunk { thread: u32::MAX, sequence: 1, bytes: chunk.into() };
    EventArena { instrument: "cpu".into(), chunks: vec![chunk] }
}

/// `Main` allocates points on the first thread, `Pay` a large array on the second. `nodes` are
/// their stacks.
fn allocations(nodes: [u32; 2]) -> EventArena {
    let record = |thread: u32, sum: Allocation| {
        let bytes = sum.to_bytes().to_vec();
        EventChunk { thread, sequence: u64::from(thread) + 1, bytes: bytes.into() }
    };
    let of = |object_type: u32, objects: u64, bytes: u64| Allocation {
        time_ns: u64::from(object_type - 1) * 50,
        objects,
        bytes,
        weight: bytes,
        objects_weight: objects << 10,
        object_type,
        stack: nodes[object_type as usize - 1],
        ..Allocation::default()
    };
    EventArena { instrument: "alloc".into(), chunks: vec![record(0, of(1, 3, 72)), record(1, of(2, 1, 90_024))] }
}

/// A snapshot with so many orders in a list that a static field of `Lib` holds, and as many equal
/// strings on a stack.
fn snapshot(process: &mut Process, lib: u32, orders: u64) {
    let mut heap = HandmadeHeap::default();
    let statics = heap.array("object[]", 8, &[""]);
    let list = heap.class("System.Collections.Generic.List<Shop.Order>", 32, &["_items", "_large"]);
    let array = heap.array("Shop.Order[]", 8, &[""]);
    let order = heap.class("Shop.Order", 32, &["Name"]);
    let text = heap.with_content("string", HeapType::STRING);
    heap.type_mut(order).module = lib;
    let of_statics = heap.object(statics, 1);
    heap.root(RootKind::PinnedHandle, of_statics, 0, 0);
    heap.static_field(of_statics, 0, "Shop.Program.orders", 0);
    let (of_list, of_array) = (heap.object(list, 0), heap.object(array, 4 * orders));
    heap.refer(of_statics, 0, of_list);
    heap.refer(of_list, 0, of_array);
    for at in 0..orders {
        let one = heap.object(order, 0);
        heap.refer(of_array, at, one);
        let name = heap.object_with(text, 1, 5);
        heap.root(RootKind::Stack, name, 1, 1);
    }
    // As many bytes as the orders hold in all, in one object.
    let large = heap.class("Shop.Large", 1_000_000, &[]);
    let of_large = heap.object(large, 0);
    heap.refer(of_list, 1, of_large);
    let several = heap.class("Shop.Several", 100_000 * orders as u32, &["Own"]);
    let of_several = heap.object(several, 0);
    let small = heap.class("A.Small", 24, &[]);
    let of_small = heap.object(small, 0);
    heap.refer(of_several, 0, of_small);
    heap.root(RootKind::Handle, of_several, 0, 0);
    operations(&mut heap);
    heap.add_to(process);
}

/// Two methods that wait for a task each, and one that waits for a time.
fn operations(heap: &mut HandmadeHeap) {
    let builder = "System.Runtime.CompilerServices.AsyncTaskMethodBuilder<int>";
    let boxed = heap.class(
        &format!("{builder}.AsyncStateMachineBox<Shop.Cart.<Pay>d__0>"),
        80,
        &["m_continuationObject", "StateMachine"],
    );
    let task = heap.class("System.Threading.Tasks.Task<int>", 64, &["m_continuationObject"]);
    let delay = heap.class("System.Threading.Tasks.Task.DelayPromise", 72, &["m_continuationObject"]);
    for awaited in [task, task, delay] {
        let (awaited, method) = (heap.object(awaited, 0), heap.object(boxed, 0));
        heap.refer(awaited, 0, method);
        heap.refer(method, 1, method);
    }
}

/// A method of two lines and a condition in each of two modules; the first ran.
fn coverage(process: &mut Process, modules: [u32; 2]) {
    let mut chunk = Vec::new();
    for (module, hits) in modules.into_iter().zip([vec![3, 2, 1, 0], vec![0; 4]]) {
        let point = |line| PlannedPoint { start_line: line, end_line: line, ..PlannedPoint::default() };
        let branch = |path| PlannedBranch { line: 7, path, ..PlannedBranch::default() };
        let (points, branches) = (vec![point(7), point(8)], vec![branch(0), branch(1)]);
        let method = PlannedMethod { token: 0x0600_0001, source: 0, fingerprint: 9, points, branches };
        let source = CoverageSource { class: "Zoo.Cage".into(), name: "Open".into(), parameters: "()".into() };
        let (sources, files, methods) = (vec![source], vec!["/src/Cage.cs".into()], vec![method]);
        process.coverage_plans.push(CoveragePlan { module, files, sources, methods, ..CoveragePlan::default() });
        let of = MethodHits { module, token: 0x0600_0001, fingerprint: 9, points: 2, branches: 2, counted: true, hits };
        chunk.extend(of.to_bytes());
    }
    let chunk = EventChunk { thread: u32::MAX, sequence: 1, bytes: chunk.into() };
    process.events.push(EventArena { instrument: "coverage".into(), chunks: vec![chunk] });
}

/// Two probed methods of a module: one whose calls ended, but for one, and one that was called more
/// often.
fn probed(module: u32) -> EventArena {
    let (name, signature) = ("Zoo.Cage::Open".to_owned(), "Zoo.Cage.Open()".to_owned());
    let mut bytes =
        ProbedMethod { module, token: 7, number: 1, name, signature, ..ProbedMethod::default() }.to_empty_bytes(1);
    let counters = [
        (probes::CALLS, 3),
        (probes::FAILED, 1),
        (probes::TICKS, 9),
        (probes::LONGEST, 5),
        (probes::BUCKETS + 4 * 8, 1),
        (probes::BUCKETS + 5 * 8, 1),
    ];
    counters.into_iter().for_each(|(at, value)| bytes[probes::HEAD + at] = value);
    let (name, signature) = ("Zoo.Ape::Eat".to_owned(), "Zoo.Ape.Eat()".to_owned());
    let mut more = ProbedMethod { module, token: 8, name, signature, ..ProbedMethod::default() }.to_empty_bytes(1);
    more[probes::HEAD + probes::CALLS] = 8;
    bytes.extend(more);
    let chunk = EventChunk { thread: u32::MAX, sequence: 1, bytes: bytes.into() };
    EventArena { instrument: "probes".into(), chunks: vec![chunk] }
}

/// Calls of the first of these methods: one that returned, one that failed within it, one that goes
/// on.
fn probe_calls() -> [EventArena; 2] {
    let number = |number: u8| [value::INT, number, 0, 0, 0, 0, 0, 0, 0];
    let (given, returned) = (number(5), number(6));
    let begin = |ticks, values| ProbeCallRecord { method: 1, ticks, end: None, values };
    let end = |began, ticks, has_failed, values| {
        let end = Some(ProbeCallEnd { began, has_failed });
        ProbeCallRecord { method: 1, ticks, end, values }
    };
    let records = [
        begin(10, &given[..]),
        begin(12, &given),
        end(12, 15, true, &[]),
        end(10, 20, false, &returned),
        begin(30, &given),
    ];
    let mut method = PayloadWriter::default();
    method.u32(value::PROBED).u32(1).u32(1).text("width").text("int").u32(0).text("int").u32(0);
    let mut types = (method.bytes().len() as u32).to_le_bytes().to_vec();
    types.extend_from_slice(method.bytes());
    let arena = |instrument: &str, bytes: Vec<u8>| {
        let chunks = vec![EventChunk { thread: 1, sequence: 1, bytes: bytes.into() }];
        EventArena { instrument: instrument.into(), chunks }
    };
    let calls = records.iter().flat_map(ProbeCallRecord::to_bytes).collect();
    [arena("probe-calls", calls), arena("flow-types", types)]
}

/// Callers of the first of these methods, whose stacks are those of `Main` and `Pay`: neither has a
/// caller further out.
fn probe_callers(stacks: [u32; 2]) -> EventArena {
    let [main, pay] = stacks;
    let of = |stack, calls| ProbeCaller {
        method: 1,
        stack,
        calls,
        ended: calls,
        ticks: 4 * calls,
        ..ProbeCaller::default()
    };
    let bytes: Vec<u8> = [of(main, 1), of(pay, 1)].iter().flat_map(ProbeCaller::to_bytes).collect();
    let chunk = EventChunk { thread: u32::MAX, sequence: 1, bytes: bytes.into() };
    EventArena { instrument: "probe-callers".into(), chunks: vec![chunk] }
}

#[test]
fn callers_of_probed_methods_stand_below_them_and_what_is_missing_is_nobodys() {
    let recording = everything();
    let probes = view("probes").expect("the view");
    let request = Request { callers: true, ..plain(probes) };
    let report = |format| {
        let mut out = Vec::new();
        probes.open(&recording, &request).expect("callers").write(format, 100, &mut out).expect("memory takes all");
        String::from_utf8(out).expect("UTF-8")
    };
    let document: serde_json::Value = serde_json::from_str(&report(Format::Json)).expect("JSON");
    let open = &document["rows"][0];
    use serde_json::json;
    let shown =
        |row: &serde_json::Value| ["name", "calls", "failed", "total_ns", "mean_ns"].map(|key| row[key].clone());
    // Two processes are added up.
    assert_eq!(shown(open), [json!("Zoo.Cage::Open"), json!(6), json!(2), json!(18), json!(4)], "{document:#}");
    let callers: Vec<_> = open["children"].as_array().expect("callers").iter().map(shown).collect();
    let wanted = [
        [json!("Main"), json!(2), json!(0), json!(8), json!(4)],
        [json!("Pay"), json!(2), json!(0), json!(8), json!(4)],
        [json!("(unknown caller)"), json!(2), json!(2), json!(2), json!(null)],
    ];
    assert_eq!(callers, wanted, "{document:#}");
    let text = anstream::adapter::strip_str(&report(Format::Text)).to_string();
    assert!(text.contains("  (unknown caller)") && text.contains("  Main"), "{text}");
    let csv = report(Format::Csv);
    assert!(csv.starts_with("depth,name,signature,module,kind,calls,failed,total_ns,mean_ns\n"), "{csv}");
    assert_eq!(csv.lines().filter(|line| line.starts_with("1,")).count(), 4, "{csv}");
    let both = Request { each: true, ..request.clone() };
    let refusal = probes.check(&both, Format::Json).expect_err("one of them");
    assert!(refusal.to_string().contains("'--callers' can't be combined with '--each'"), "{refusal}");
}

#[test]
fn calls_of_probed_methods_have_their_values_and_say_how_they_ended() {
    let recording = everything();
    let probes = view("probes").expect("the view");
    let request = Request { each: true, ..plain(probes) };
    let report = |format| {
        let mut out = Vec::new();
        probes.open(&recording, &request).expect("calls").write(format, 100, &mut out).expect("memory takes all");
        String::from_utf8(out).expect("UTF-8")
    };
    let document: serde_json::Value = serde_json::from_str(&report(Format::Json)).expect("JSON");
    let rows = document["rows"].as_array().expect("rows");
    let first: Vec<_> = rows.iter().filter(|row| row["pid"] == rows[0]["pid"]).collect();
    let shown =
        |row: &serde_json::Value| [&row["duration_ns"], &row["failed"], &row["returns"]["value"]].map(Clone::clone);
    use serde_json::json;
    let wanted = [
        [json!(10), json!(false), json!(6)],
        [json!(3), json!(true), json!(null)],
        [json!(null), json!(null), json!(null)],
    ];
    assert_eq!(first.iter().map(|row| shown(row)).collect::<Vec<_>>(), wanted, "{document:#}");
    assert!(
        first.iter().all(|row| row["args"] == json!([{ "name": "width", "type": "int", "value": 5 }])),
        "{document:#}"
    );
    let text = report(Format::Text);
    for words in ["Zoo.Cage::Open(int width: 5) = int 6", "by an exception", "no end"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    assert_eq!(report(Format::Csv).lines().count(), rows.len() + 1);
}

/// Adds a library with two functions that have no names.
fn nameless(process: &mut Process) -> [u32; 2] {
    process.modules.push(Module { name: "libx.so".into(), kind: ModuleKind::Native, ..Module::default() });
    let module = process.modules.len() as u32 - 1;
    [0x10, 0x20].map(|place| {
        let name = format!("libx.so+{place:#x}");
        process.functions.push(Function { name, module, kind: FunctionKind::Native, ..Function::default() });
        process.functions.len() as u32 - 1
    })
}

/// Two processes with two threads each, functions of two modules, and something of every
/// instrument.
fn everything() -> Recording {
    let cost = HookCost { enter_ns: 2.0, leave_ns: 1.0, pair_low_ns: 1.0, pair_high_ns: 4.0 };
    let mut recording = recording_with(TREES, cost);
    let first = &mut recording.processes[0];
    let library = Module { name: "Lib".into(), path: "/lib/Lib".into(), ..Module::default() };
    first.modules.push(library);
    let lib = first.modules.len() as u32 - 1;
    first.functions[2].module = lib;
    for function in 1..=2 {
        first.functions[function].token = method_with_lines(&lines_of());
    }
    first.modules.iter_mut().for_each(|module| module.path = lines_of());
    let nameless = nameless(first);
    let mut stacks = StacksBuilder::default();
    let nodes = [1, 2].map(|function| stacks.stack(&[StackFrame::method(function, None)], false));
    let below_method =
        [1, 2].map(|function| stacks.stack(&[1, function].map(|one| StackFrame::method(one, None)), false));
    first.events = vec![
        events(),
        exceptions(nodes),
        waits(nodes),
        awaited(nodes),
        requests(),
        counters(),
        memory(),
        calls(),
        samples(&mut stacks, nameless),
        collections(nodes),
        allocations(nodes),
    ];
    let types =
        ["", "Zoo.Point", "byte[]"].map(|name| ObjectType { name: name.into(), module: u32::from(name == "byte[]") });
    first.types = types.to_vec();
    first.stacks = Arc::new(stacks.finish());
    [2, 5, 9].into_iter().for_each(|orders| snapshot(first, lib, orders));
    coverage(first, [1, lib]);
    first.events.push(probed(1));
    first.events.extend(probe_calls());
    first.events.push(probe_callers(below_method));
    first.ticks.ns_per_tick = 1.0;
    first.losses = vec![Loss::new(LossReason::PanicCaught, 2, 10, 20), Loss::new(LossReason::AbruptEnd, 1, 80, 90)];
    let mut second = Process { pid: 8, command: vec!["dotnet".into(), "/app/Other.dll".into()], ..first.clone() };
    // Nothing is known of the other module's method there.
    second.coverage_plans.truncate(1);
    recording.processes.push(second);
    name_native_code(&mut recording);
    recording.run.duration_ns = 100;
    recording
}

/// The samples of the same recording.
fn samples_alone() -> Recording {
    let mut recording = everything();
    for process in &mut recording.processes {
        process.calls = None;
        process.threads.iter_mut().for_each(|thread| thread.tree = TreeSource::default());
        process.events.retain(|events| events.instrument == "cpu");
    }
    recording
}

/// The request that a view answers with everything it has.
fn plain(view: &View) -> Request {
    let functions = match view.name {
        "callers" | "callees" => vec![Pattern::parse("*").expect("a pattern")],
        _ => Vec::new(),
    };
    Request { query: Query { functions, ..Query::default() }, ..Request::default() }
}

fn json(view: &'static View, recording: &Recording, request: &Request) -> Result<String, QueryProblem> {
    let mut out = Vec::new();
    view.open(recording, request)?.write(Format::Json, 100, &mut out).expect("memory takes all");
    Ok(String::from_utf8(out).expect("UTF-8"))
}

/// The lines of a view in text, without styles.
fn lines(view: &'static View, recording: &Recording, width: usize) -> Vec<String> {
    let mut out = Vec::new();
    view.open(recording, &plain(view)).expect("a view").write(Format::Text, width, &mut out).expect("memory takes all");
    let text = String::from_utf8(out).expect("UTF-8");
    anstream::adapter::strip_str(&text).to_string().lines().map(str::to_owned).collect()
}

/// Own methods are what readers look for among native functions. No managed module of this
/// recording is a part of the framework.
#[test]
fn own_code_stands_out_among_other_code() {
    let recording = samples_alone();
    let view = view("functions").expect("the view");
    let mut out = Vec::new();
    view.open(&recording, &plain(view)).expect("a view").write(Format::Text, 200, &mut out).expect("memory takes all");
    let text = String::from_utf8(out).expect("UTF-8");
    let function = |row: &serde_json::Value| row["name"].as_str().expect("a name").to_owned();
    let document = json(view, &recording, &plain(view)).expect("an answer");
    let document: serde_json::Value = serde_json::from_str(&document).expect("JSON");
    let rows = pages::array(&document["rows"]);
    let (own, others): (Vec<_>, Vec<_>) = rows.iter().partition(|row| row["kind"] == "managed");
    assert!(!own.is_empty() && !others.is_empty(), "{document}");
    let is_bold = |name: &str| text.contains(&format!("\u{1b}[1m{name}"));
    for row in own {
        assert!(is_bold(&function(row)), "{row} {text:?}");
    }
    for row in others {
        assert!(!is_bold(&function(row)), "{row} {text:?}");
    }
}

/// Facts about the method pushed the answer off the first screen.
#[test]
fn two_lines_stand_before_the_answer() {
    for mut recording in [everything(), samples_alone()] {
        recording.processes.truncate(1);
        recording.processes[0].losses.clear();
        recording.run.given = "calls:clock=tsc;cpu;wall;gc;exceptions:args;requests".into();
        recording.run.command = vec!["dotnet".into(), "/srv/shop/bin/Release/net10.0/linux-x64/Shop.Web.dll".into()];
        for (view, width) in VIEWS.iter().filter(|view| view.has_head).flat_map(|view| [(view, 80), (view, 120)]) {
            let Ok(_) = view.open(&recording, &plain(view)) else { continue };
            let lines = lines(view, &recording, width);
            let head = lines.iter().take_while(|line| !line.is_empty()).count();
            // Facts are the answer of this view, and one view begins without an empty line.
            assert!(head <= 2 || view.name == "conditions", "{} at {width}: {lines:#?}", view.name);
            assert!(lines.iter().take(head).all(|line| line.chars().count() <= width), "{lines:#?}");
        }
    }
}

#[test]
fn the_first_table_begins_within_twelve_lines_and_no_finding_is_left_out() {
    let recording = everything();
    let summary = view("summary").expect("the view");
    let document: serde_json::Value =
        serde_json::from_str(&json(summary, &recording, &plain(summary)).expect("JSON")).expect("JSON");
    let findings = document["findings"].as_array().expect("findings");
    assert!(findings.len() > 4, "{findings:#?}");
    for width in [80, 120] {
        let lines = lines(summary, &recording, width);
        let begin = lines.iter().position(|line| line.starts_with("What stands out")).expect("findings");
        let end = begin + lines[begin..].iter().position(String::is_empty).expect("an end");
        // Two sentences come first, however long they and the head are.
        let first = lines[begin..end].iter().filter(|line| line.starts_with("- ")).count();
        assert!(end + 2 <= 12 || first == 2, "{lines:#?}");
        let text = lines.iter().map(|line| line.trim()).collect::<Vec<_>>().join(" ");
        for finding in findings {
            let words = finding["text"].as_str().expect("text");
            assert!(text.contains(words), "{words}: {lines:#?}");
        }
    }
}

/// A time with rows before and behind it: the middle of what the rows say.
fn middle(view: &'static View, recording: &Recording) -> u64 {
    let document: serde_json::Value =
        serde_json::from_str(&json(view, recording, &plain(view)).expect("rows")).expect("JSON");
    let times = |row: &serde_json::Value| ["time_ns", "first_ns", "start_ns"].iter().find_map(|key| row[*key].as_u64());
    let all: BTreeSet<u64> = document["rows"].as_array().into_iter().flatten().filter_map(times).collect();
    let (Some(first), Some(last)) = (all.first(), all.last()) else { return 1 };
    first.midpoint(*last)
}

/// Three calls on the second thread of either process, which began after 10, 12 and 30 ns: options
/// choose among them as among events, and those that sums refuse are refused without `--each`, with
/// that as a cure.
#[test]
fn calls_of_probed_methods_are_chosen_by_method_thread_and_time() {
    let recording = everything();
    let probes = view("probes").expect("the view");
    let shown = |change: &dyn Fn(&mut Query)| {
        let mut request = Request { each: true, ..plain(probes) };
        change(&mut request.query);
        assert_eq!(probes.check(&request, Format::Json), Ok(()));
        let document = json(probes, &recording, &request).map_err(|problem| problem.to_string())?;
        let document: serde_json::Value = serde_json::from_str(&document).expect("JSON");
        let rows = document["rows"].as_array().expect("rows").iter();
        let time = |row: &serde_json::Value| (row["pid"].as_u64(), row["time_ns"].as_u64().expect("a time"));
        Ok::<_, String>(rows.map(time).collect::<Vec<_>>())
    };
    let all = shown(&|_| {}).expect("calls");
    assert_eq!(all.len(), 6, "{all:?}");
    let function = |text: &str| shown(&|query| query.functions = vec![Pattern::parse(text).expect("a pattern")]);
    assert_eq!((function("Cage::Open"), function("Zoo.Ape")), (Ok(all.clone()), Ok(Vec::new())));
    let thread = |text: &str| shown(&|query| query.threads = vec![ThreadSelector::parse(text)]);
    assert_eq!((thread("2"), thread("worker")), (Ok(all.clone()), Ok(all.clone())));
    assert_eq!(thread("main"), Ok(Vec::new()));
    assert!(thread("nobody").is_err_and(|problem| problem.contains("no thread matches 'nobody'")));
    let second = all[1].1;
    let kept = |keeps: &dyn Fn(u64) -> bool| Ok(all.iter().copied().filter(|call| keeps(call.1)).collect::<Vec<_>>());
    let (since, until) = (shown(&|query| query.since_ns = Some(second)), shown(&|query| query.until_ns = Some(second)));
    assert_eq!((since, until), (kept(&|time| time >= second), kept(&|time| time <= second)));
    for (flag, name) in [(Flag::Thread, "--thread"), (Flag::Since, "--since"), (Flag::Until, "--until")] {
        let refusal = probes.check(&with(flag, probes, &recording)[0], Format::Text).expect_err("sums");
        assert!(refusal.what.contains(name) && refusal.hint.contains("probes --each"), "{refusal}");
    }
}

/// A recording of probes alone has no function but those with probes: filters by name found none in
/// it.
#[test]
fn methods_with_probes_are_named_by_filters_where_nothing_else_was_recorded() {
    let mut recording = everything();
    recording.processes.truncate(1);
    let process = &mut recording.processes[0];
    process.functions.truncate(1);
    process.events.retain(|arena| arena.instrument.starts_with("probe"));
    let resolved = |text: &str| {
        let query = Query { functions: vec![Pattern::parse(text).expect("a pattern")], ..Query::default() };
        clrscope_analysis::resolve_names(&recording, &query)
    };
    assert!(resolved("zoo.cage::open").is_ok_and(|query| query.functions[0].matches("Lib", "Zoo.Cage::Open", "")));
    assert!(
        matches!(resolved("Oppen"), Err(QueryProblem::NoFunction { nearest, .. }) if nearest == ["Zoo.Cage::Open"])
    );
    let modules = vec![Glob::new("Lib")];
    assert!(clrscope_analysis::resolve_names(&recording, &Query { modules, ..Query::default() }).is_ok());
}

/// Requests with an option; at least one of them must show something else.
fn with(flag: Flag, view: &'static View, recording: &Recording) -> Vec<Request> {
    let pattern = |text| Pattern::parse(text).expect("a pattern");
    let mut request = plain(view);
    let query = &mut request.query;
    match flag {
        Flag::Pid => query.pid = Some(8),
        Flag::Process => query.process = Some(Glob::new("*Other*")),
        Flag::Thread => query.threads = vec![ThreadSelector::parse("2")],
        Flag::Function => query.functions = vec![pattern("Pay")],
        Flag::Module => query.modules = vec![Glob::new("Lib")],
        Flag::Part => query.parts = vec!["1".to_owned()],
        Flag::Since => query.since_ns = Some(middle(view, recording)),
        Flag::Until => query.until_ns = Some(middle(view, recording)),
        Flag::Limit => query.limit = Some(1),
        Flag::Sort => {
            let sorted = |sort: &Sort| {
                let mut request = plain(view);
                request.query.sort = Some(*sort);
                request
            };
            return match view.sorts {
                [] => vec![sorted(&Sort::Name)],
                sorts => sorts.iter().map(sorted).collect(),
            };
        }
        Flag::Raw => query.raw = true,
        Flag::PerThread => query.per_thread = true,
        Flag::Columns => request.columns = Some(vec![view.columns(&Request::default())[0].key.to_owned()]),
        Flag::Metric => query.metric = Some(&CPU),
        Flag::Depth => request.max_depth = Some(0),
        Flag::Follow => request.follow = true,
        Flag::Group => request.groups = vec![Group::parse("gc").expect("a group")],
        Flag::Name => request.names = vec![Glob::new("*Rare*")],
        Flag::Each => request.each = true,
        Flag::Request => query.requests.routes = vec![Glob::new("* /Rare")],
        Flag::SlowerThan => query.requests.slower_than_ns = Some(u64::MAX),
        Flag::Failed => query.requests.failed = true,
        Flag::Trace => query.requests.trace = Some(7),
        Flag::Callers => request.callers = true,
        Flag::Interleave => request.interleave = true,
        Flag::Output => request.files = true,
        Flag::Verbose => request.verbose = true,
        Flag::JustMyCode => query.just_my_code = true,
        Flag::NoInlined => query.no_inlined = true,
        Flag::Paths => query.paths = Some(PathKind::Physical),
        Flag::NativeCode => query.native_code = Some(NativeCode::Places),
        Flag::Symbols => query.symbols = Some("symbols".into()),
        Flag::Source => request.source = true,
        Flag::Lines => request.lines = true,
        Flag::Snapshot => request.snapshot = Some(2),
        Flag::Against => request.against = Some(2),
        Flag::Type => query.types = vec![Glob::new(if view.name == "allocations" { "*Point" } else { "*Order" })],
    }
    vec![request]
}

fn is_of_requests(flag: Flag) -> bool {
    matches!(flag, Flag::Request | Flag::SlowerThan | Flag::Failed | Flag::Trace)
}

/// The recording as it is when a view is asked.
fn reduced_to_requests(recording: &Recording, query: &Query) -> Result<Recording, QueryProblem> {
    let mut reduced = recording.clone();
    keep_requests(&mut reduced, &query.requests)?;
    Ok(reduced)
}

/// The recording as it is with names from symbol files.
fn with_other_native_names(recording: &Recording) -> Recording {
    let mut named = recording.clone();
    for function in named.processes.iter_mut().flat_map(|process| &mut process.functions) {
        if function.kind == FunctionKind::Native {
            for name in [&mut function.name, &mut function.signature, &mut function.raw_name] {
                name.push_str("_named");
            }
        }
    }
    named
}

#[test]
fn every_option_of_every_view_changes_what_is_shown_or_is_refused() {
    let everything = everything();
    let samples = samples_alone();
    let mut without_effect = Vec::new();
    for view in VIEWS {
        for (name, flag) in Flag::ALL {
            // Only samples have native code.
            let is_of_samples = matches!(flag, Flag::NativeCode | Flag::Symbols) && view.why_not(flag).is_none();
            let recording = if is_of_samples { &samples } else { &everything };
            let all = json(view, recording, &plain(view)).expect("an answer");
            let requests = with(flag, view, recording);
            let case = format!("{} {name}", view.name);
            assert!(requests.iter().all(|request| flag.is_in(request)), "{case}");
            if let Some(why) = view.why_not(flag) {
                let refusal = view.check(&requests[0], Format::Text).expect_err(&case);
                assert!(refusal.what.contains(name) && refusal.what.contains(view.name), "{refusal}");
                assert!(refusal.why == why && !refusal.hint.is_empty(), "{refusal}");
                continue;
            }
            let changes = |request: &Request| {
                if let Err(refusal) = view.check(request, Format::Text) {
                    // Logs are kept apart by files alone.
                    let is_log = ["events", "flow"].contains(&view.name);
                    assert!(is_log && flag == Flag::PerThread, "{case}: {refusal}");
                    return true;
                }
                // The option is applied when a recording is opened.
                if flag == Flag::Symbols {
                    let named = with_other_native_names(recording);
                    return json(view, &named, request).expect("an answer") != all;
                }
                let is_reduced = is_of_requests(flag) && !view.is_of_requests();
                let reduced = is_reduced.then(|| reduced_to_requests(recording, &request.query));
                let recording = match &reduced {
                    // None is meant, and the error says so.
                    Some(Err(_)) => return true,
                    Some(Ok(reduced)) => reduced,
                    None => recording,
                };
                match (flag, json(view, recording, request)) {
                    // Whether a part of the time can be had depends on the metric, which is one of
                    // sums here. The same goes for own code alone, and for types.
                    (
                        Flag::Since | Flag::Until | Flag::JustMyCode | Flag::NoInlined | Flag::Paths | Flag::Type,
                        Err(QueryProblem::NotAvailable { .. }),
                    ) => true,
                    (_, Err(QueryProblem::NotAvailable { .. })) if is_reduced => true,
                    // Files of threads, and following a growing recording, are the command's work:
                    // tested elsewhere.
                    (Flag::Output | Flag::Follow, Ok(_)) => true,
                    // The recording is reduced to its parts, and its frames are changed, before a
                    // view is asked of it.
                    (Flag::Part | Flag::NoInlined | Flag::Paths, Ok(_)) => true,
                    // Only text has a head.
                    (Flag::Verbose, Ok(_)) => {
                        let text = |request: &Request| {
                            let mut out = Vec::new();
                            let report = view.open(recording, request).expect("an answer");
                            report.write(Format::Text, 100, &mut out).expect("memory takes all");
                            out
                        };
                        text(request).len() > text(&plain(view)).len()
                    }
                    (_, answer) => answer.unwrap_or_else(|problem| panic!("{case}: {problem}")) != all,
                }
            };
            if !requests.iter().any(changes) {
                without_effect.push(case);
            }
        }
    }
    assert!(without_effect.is_empty(), "{without_effect:?} show the same as without");
}

/// Of a recording of allocations alone it said that there were no functions.
#[test]
fn the_first_screen_of_allocations_has_types_with_the_lines_that_allocate_them() {
    let mut recording = everything();
    recording.processes.truncate(1);
    let process = &mut recording.processes[0];
    let mut stacks = StacksBuilder::default();
    let nodes = [1, 2].map(|function| stacks.stack(&[StackFrame::method(function, Some(39))], false));
    process.events = vec![allocations(nodes)];
    process.stacks = Arc::new(stacks.finish());
    process.calls = None;
    process.threads.iter_mut().for_each(|thread| thread.tree = TreeSource::default());
    let token = process.functions[1].token;
    let found = clrscope_symbols::Lines::default().find(lines_of(), token, 39).expect("a line");
    let summary = view("summary").expect("a view");
    let document: serde_json::Value =
        serde_json::from_str(&json(summary, &recording, &plain(summary)).expect("a summary")).expect("JSON");
    let rows = document["allocated"].as_array().expect("types");
    let types: Vec<&str> = rows.iter().filter_map(|row| row["type"].as_str()).collect();
    assert_eq!(types, ["byte[]", "Zoo.Point"]);
    assert!(rows.iter().all(|row| row["allocated_at"] == format!("{}:{}", found.file, found.line)), "{rows:?}");
    let mut out = Vec::new();
    let report = summary.open(&recording, &plain(summary)).expect("a summary");
    report.write(Format::Text, 100, &mut out).expect("memory takes all");
    let text = String::from_utf8(out).expect("UTF-8");
    let name = found.file.rsplit('/').next().expect("a name");
    assert!(text.contains("What was allocated") && !text.contains("no functions"), "{text}");
    assert!(text.contains(&format!("100.0 % by Pay ({name}:{})", found.line)), "{text}");
}

/// A method's own amount is what readers of JSON know: it has no leaves.
#[test]
fn paths_of_allocations_end_in_types_in_text_and_not_in_json() {
    let recording = everything();
    for name in ["tree", "flame"] {
        let of_paths = view(name).expect("a view");
        let mut request = plain(of_paths);
        request.query.metric = Some(&BYTES);
        let document = json(of_paths, &recording, &request).expect("paths");
        assert!(document.contains("\"self_bytes\":72") && !document.contains("Zoo.Point"), "{document}");
        let mut out = Vec::new();
        let report = of_paths.open(&recording, &of_paths.for_people(&request)).expect("paths");
        report.write(Format::Text, 100, &mut out).expect("memory takes all");
        let text = String::from_utf8(out).expect("UTF-8");
        assert!(text.contains("byte[]"), "{text}");
    }
}

#[test]
fn what_can_be_followed_is_a_log_that_shows_each_row_once() {
    let recording = everything();
    let followed: Vec<_> = VIEWS.iter().filter(|view| view.why_not(Flag::Follow).is_none()).collect();
    assert!(!followed.is_empty());
    for view in followed {
        let mut state = FollowState::default();
        let mut look = || {
            let mut out = Vec::new();
            let request = Request { follow: true, ..Request::default() };
            let report = view.open(&recording, &request).expect("an answer");
            report.write_news(&mut state, &mut out).expect("memory takes all");
            out.len()
        };
        assert!(look() > 0, "{}", view.name);
        assert_eq!(look(), 0, "{}", view.name);
    }
}

#[test]
fn columns_are_named_once_and_each_can_be_picked_in_every_format() {
    let recording = everything();
    for view in VIEWS {
        for (each, callers) in [(false, false), (true, false), (false, true)] {
            let request = Request { each, callers, ..plain(view) };
            if view.check(&request, Format::Csv).is_err() {
                continue;
            }
            let columns = view.columns(&request);
            let keys: BTreeSet<_> = columns.iter().map(|column| column.key).collect();
            assert_eq!(keys.len(), columns.len(), "{}", view.name);
            for column in &columns {
                let request = Request { columns: Some(vec![column.key.to_owned()]), ..request.clone() };
                view.check(&request, Format::Csv).expect("a known column");
                let report = view.open(&recording, &request).expect("an answer");
                let written = |format| {
                    let mut out = Vec::new();
                    report.write(format, 200, &mut out).expect("memory takes all");
                    String::from_utf8(out).expect("UTF-8")
                };
                let csv = written(Format::Csv);
                let head = csv.lines().next().expect("a header");
                let expected: Vec<_> = match column.parts {
                    [] => vec![column.key.to_owned()],
                    parts => parts.iter().map(|part| format!("{}_{part}", column.key)).collect(),
                };
                assert_eq!(head, expected.join(","), "{}", view.name);
                assert!(
                    written(Format::Json).contains(&format!("\"{}\":", column.key)),
                    "{} {}",
                    view.name,
                    column.key
                );
                // A tree of threads has another title for its names.
                let title = column.title.rsplit(' ').next().expect("a word");
                assert!(written(Format::Text).contains(title), "{} {}", view.name, column.key);
            }
        }
    }
}

/// `--columns self_cpu_ns` was refused, with and without `--metric cpu`.
#[test]
fn a_column_of_one_metric_chooses_that_metric() {
    let recording = everything();
    let functions = view("functions").expect("the view");
    let picked = |keys: &[&str]| Some(keys.iter().map(|key| (*key).to_owned()).collect());
    for keys in [&["self_cpu_ns", "name"][..], &["total_exceptions"], &["self_samples"]] {
        let request = Request { columns: picked(keys), ..Request::default() };
        functions.check(&request, Format::Csv).expect("known columns");
        let mut csv = Vec::new();
        functions.open(&recording, &request).expect("rows").write(Format::Csv, 0, &mut csv).expect("memory takes all");
        let csv = String::from_utf8(csv).expect("UTF-8");
        let (head, rows) = csv.split_once('\n').expect("a header");
        assert_eq!(head, keys.join(","));
        assert!(rows.lines().any(|row| !row.starts_with("0,") && !row.is_empty()), "{csv}");
    }
    // What was not recorded is said: columns were left out without a word.
    let of_calls = recording_with(TREES, HookCost::default());
    let refused = |recording: &Recording, key: &str| {
        let request = Request { columns: picked(&[key]), ..Request::default() };
        functions.open(recording, &request).err().map(|problem| problem.to_string())
    };
    let expected = "the column 'self_cpu_ns' needs the instrument cpu, which was not recorded";
    assert_eq!(refused(&of_calls, "self_cpu_ns").as_deref(), Some(expected));
    let mut sampled = everything();
    sampled.processes.iter_mut().for_each(|process| process.calls = None);
    let expected = "the column 'calls' needs the instrument calls, which was not recorded";
    assert_eq!(refused(&sampled, "calls").as_deref(), Some(expected));
    assert_eq!(refused(&sampled, "self_cpu_ns"), None);
}

#[test]
fn picked_columns_stand_in_the_order_in_which_they_were_named() {
    let recording = everything();
    let functions = view("functions").expect("the view");
    let picked = |keys: &[&str]| Some(keys.iter().map(|key| (*key).to_owned()).collect());
    let request = Request { columns: picked(&["calls", "name"]), ..Request::default() };
    let mut csv = Vec::new();
    functions.open(&recording, &request).expect("rows").write(Format::Csv, 0, &mut csv).expect("memory takes all");
    assert!(csv.starts_with(b"calls,name\n5,Pay\n"), "{}", String::from_utf8_lossy(&csv));
    let refused = |keys| {
        let request = Request { columns: picked(keys), ..Request::default() };
        functions.check(&request, Format::Csv).expect_err("refused")
    };
    assert_eq!(refused(&["call"]).hint, "did you mean 'calls'?");
    assert!(refused(&["colour_of_the_sky"]).hint.starts_with("its columns: name, signature, "));
    assert_eq!(refused(&["name", "name"]).why, "it is named twice");
}

/// Columns that narrow terminals leave out, and some that no width showed, once decided the order
/// unseen.
#[test]
fn the_column_that_rows_are_sorted_by_is_shown_at_every_width() {
    let recording = everything();
    let mut seen = 0;
    for view in VIEWS {
        for sort in view.sorts {
            let mut request = plain(view);
            request.query.sort = Some(*sort);
            let key = match sort {
                Sort::Recursion => "max_recursion".to_owned(),
                Sort::Name if view.name == "exceptions" => "type".to_owned(),
                Sort::Calls | Sort::Name | Sort::Module => sort.name().to_owned(),
                _ => format!("{}_ns", sort.name().replace('-', "_")),
            };
            let columns = view.columns(&request);
            let Some(column) = columns.iter().find(|column| column.key == key) else { continue };
            // A tree of threads has another title for its names.
            let titles = if *sort == Sort::Name { [column.title, "function"] } else { [column.title; 2] };
            for width in [40, 60, 100, 160] {
                let mut text = Vec::new();
                let report = view.open(&recording, &view.for_people(&request)).expect("rows");
                report.write(Format::Text, width, &mut text).expect("memory takes all");
                let text = String::from_utf8(text).expect("UTF-8");
                let is_head = |line: &str| line.contains('\u{1b}') && titles.iter().any(|title| line.contains(title));
                assert!(text.lines().any(is_head), "{} by {} at {width}:\n{text}", view.name, sort.name());
                seen += 1;
            }
        }
    }
    assert!(seen > 100, "{seen}");
}

/// The header of the first ten thousand rows once stood above rows with other columns.
#[test]
fn rows_of_a_long_log_have_the_columns_of_its_header() {
    let mut recording = everything();
    let chunk = |sequence: u64| {
        let mut bytes = Vec::new();
        for at in 0..6_000_u64 {
            for (what, sp) in [(flow::ENTER | 1, 800_u32), (flow::ENTER | 2, 700)] {
                bytes.extend_from_slice(&(sequence * 1_000_000 + at * 10).to_le_bytes());
                bytes.extend_from_slice(&what.to_le_bytes());
                bytes.extend_from_slice(&sp.to_le_bytes());
            }
        }
        EventChunk { thread: 0, sequence, bytes: bytes.into() }
    };
    let arena = EventArena { instrument: "flow".into(), chunks: vec![chunk(1)] };
    recording.processes.truncate(1);
    recording.processes[0].events = vec![arena];
    let flow = view("flow").expect("the view");
    let mut csv = Vec::new();
    let report = flow.open(&recording, &Request::default()).expect("rows");
    report.write(Format::Csv, 0, &mut csv).expect("memory takes all");
    let csv = String::from_utf8(csv).expect("UTF-8");
    let columns = |line: &str| line.split(',').count();
    let head = columns(csv.lines().next().expect("a header"));
    assert!(csv.lines().count() > 20_000);
    assert!(csv.lines().all(|line| columns(line) == head), "a row has other columns than the header");
}

#[test]
fn json_names_a_metric_that_is_not_the_default() {
    let recording = everything();
    let named = |view: &'static View, metric| {
        let mut request = plain(view);
        request.query.metric = metric;
        let text = json(view, &recording, &request).expect("rows");
        serde_json::from_str::<serde_json::Value>(&text).expect("JSON").get("metric").cloned()
    };
    let views: Vec<_> = VIEWS.iter().filter(|view| view.why_not(Flag::Metric).is_none()).collect();
    assert!(["functions", "tree", "callers"].iter().all(|name| views.iter().any(|view| view.name == *name)));
    for view in views {
        // Calls are counted by function, and by the clock nothing was sampled.
        let is_shown = |metric: &Metric| view.name != "lines" || !metric.is_of_calls() || metric.name == "cpu";
        for metric in METRICS.into_iter().filter(|metric: &&Metric| is_shown(metric)) {
            let expected = (metric != METRICS[0]).then(|| serde_json::json!(metric.name));
            assert_eq!(named(view, Some(metric)), expected, "{} by {metric}", view.name);
        }
        assert_eq!(named(view, None), None, "{} unasked", view.name);
    }
}

#[test]
fn rows_measured_by_exceptions_have_numbers_and_no_times() {
    let mut recording = everything();
    recording.processes.truncate(1);
    let asked = |metric, view: &'static View| {
        let mut request = plain(view);
        request.query.metric = metric;
        serde_json::from_str::<serde_json::Value>(&json(view, &recording, &request).expect("rows")).expect("JSON")
    };
    let functions = view("functions").expect("a view");
    let rows = asked(Some(&EXCEPTIONS), functions)["rows"].clone();
    let amounts = |row: &serde_json::Value| {
        (row["name"].as_str().map(str::to_owned), row["self_exceptions"].as_u64(), row["total_exceptions"].as_u64())
    };
    let all: Vec<_> = rows.as_array().into_iter().flatten().map(amounts).collect();
    assert_eq!(all, [(Some("Main".into()), Some(2), Some(2)), (Some("Pay".into()), Some(1), Some(1))]);
    let keys =
        |value: &serde_json::Value| value["rows"][0].as_object().map(|row| row.keys().cloned().collect::<Vec<_>>());
    let here = keys(&asked(Some(&EXCEPTIONS), functions)).expect("a row");
    assert!(here.iter().all(|key| !key.ends_with("_ns") && key != "calls"), "{here:?}");
    assert_eq!(asked(None, functions), asked(Some(&WALL), functions), "unasked nothing changes");
    let mut text = Vec::new();
    let tree = view("tree").expect("a view");
    let mut request = plain(tree);
    request.query.metric = Some(&EXCEPTIONS);
    tree.open(&recording, &request).expect("a tree").write(Format::Text, 100, &mut text).expect("written");
    let text = String::from_utf8(text).expect("UTF-8");
    assert!(text.contains("total") && text.contains("66.7 %") && text.contains("Main"), "{text}");
}

#[test]
fn what_was_thrown_again_has_columns_of_its_own() {
    let mut recording = everything();
    recording.processes.truncate(1);
    let written = |recording: &Recording, name: &str| {
        let of = view(name).expect("a view");
        let mut request = plain(of);
        if name != "exceptions" {
            request.query.metric = Some(&EXCEPTIONS);
        }
        let rows: serde_json::Value =
            serde_json::from_str(&json(of, recording, &request).expect("rows")).expect("JSON");
        let mut text = Vec::new();
        of.open(recording, &request).expect("a view").write(Format::Text, 80, &mut text).expect("written");
        (rows, String::from_utf8(text).expect("UTF-8"))
    };
    for name in ["functions", "tree", "exceptions"] {
        let text = written(&everything(), name).1;
        assert!(!text.contains("rethrown"), "{name}: {text}");
    }
    let of_exceptions = |arena: &&mut EventArena| &*arena.instrument == "exceptions";
    let arena = recording.processes[0].events.iter_mut().find(of_exceptions).expect("exceptions");
    // The stack of the throw in `Pay`.
    let pay = {
        let bytes = arena.chunks[0].bytes.load();
        Records::new(&bytes).find_map(|record| record.number(Tag::STACK_NODE)).expect("a stack")
    };
    let again = [(Tag::STACK_NODE, pay.into()), (Tag::ANSWER, 1_u64.into())];
    let chunk = HandmadeChunk::new(0, 9, 20_000_000);
    arena.chunks.push(chunk.put(Kind::EXCEPTION_THROWN, &again).put(Kind::EXCEPTION_THROWN, &again).finish());

    let (document, text) = written(&recording, "functions");
    let row = document["rows"].as_array().and_then(|rows| rows.iter().find(|row| row["name"] == "Pay")).expect("Pay");
    let numbers =
        ["self_exceptions", "total_exceptions", "self_rethrown", "total_rethrown"].map(|key| row[key].as_u64());
    assert_eq!(numbers, [Some(1), Some(1), Some(2), Some(2)], "{document:#}");
    assert!(text.contains("rethrown"), "{text}");
    let (document, text) = written(&recording, "tree");
    assert!(document.to_string().contains(r#""self_rethrown":2"#), "{document:#}");
    assert!(text.contains("rethrown"), "{text}");
    let (document, text) = written(&recording, "exceptions");
    let sum =
        |key: &str| document["rows"].as_array().into_iter().flatten().filter_map(|row| row[key].as_u64()).sum::<u64>();
    assert_eq!(["exceptions", "rethrown", "count"].map(sum), [3, 2, 5], "{document:#}");
    assert!(text.contains("An object counts once, at its first throw"), "{text}");
    for name in ["functions", "tree", "exceptions"] {
        let (_, text) = written(&recording, name);
        // Without the colours.
        let parts = text.split('\u{1b}').enumerate().map(|(at, part)| match part.split_once('m') {
            Some((_, shown)) if at > 0 => shown,
            _ => part,
        });
        let plain: String = parts.collect();
        assert!(plain.lines().all(|line| line.chars().count() <= 80), "{name}:\n{plain}");
    }
}

/// The request that an option list of a page stands for.
fn request_of(options: &[serde_json::Value]) -> Request {
    let words: Vec<&str> = options.iter().filter_map(serde_json::Value::as_str).collect();
    let after = |name: &str| words.iter().position(|word| *word == name).map(|at| words[at + 1]);
    let has = |word: &str| words.contains(&word);
    let (each, callers) = (has("--each"), has("--callers"));
    let (interleave, source) = (has("--interleave"), has("--source"));
    let mut request = Request { each, callers, interleave, source, ..Request::default() };
    request.columns = after("--columns").map(|all| all.split(',').map(str::to_owned).collect());
    request.query.per_thread = has("--per-thread");
    request.query.metric = after("--metric").and_then(clrscope_analysis::Metric::parse);
    request.query.native_code = after("--native-code").and_then(NativeCode::parse);
    request
}

#[test]
fn the_documents_of_a_page_are_those_of_json() {
    let recording = everything();
    let page = pages::page(view("summary").expect("the view"), &recording, &Request::default());
    let data = pages::data(&page);
    let mut seen = BTreeSet::new();
    for document in pages::array(&data["documents"]) {
        let name = document["view"].as_str().expect("a name");
        let mut request = request_of(pages::array(&document["options"]));
        // Flame graphs are made of these paths.
        request.query.type_leaves = name == "tree";
        let expected = json(view(name).expect("a view"), &recording, &request).expect("an answer");
        let expected: serde_json::Value = serde_json::from_str(&expected).expect("JSON");
        assert_eq!(pages::unpacked(&data, document), expected, "{name} {}", document["options"]);
        seen.insert(name);
    }
    // Callers and callees need a function: the page makes them of the tree, as it does flame
    // graphs.
    let is_of_tree = |name: &&str| name.starts_with("calle") || *name == "flame";
    let all: BTreeSet<_> = VIEWS.iter().map(|view| view.name).filter(|name| !is_of_tree(name)).collect();
    assert_eq!(seen, all);
}
