//! A program that puts escape sequences and line breaks into every text that a recording takes from
//! it: none reaches a terminal, whatever view or export shows it.

use clrscope_analysis::{EXCEPTIONS, Query};
use clrscope_contract::labels::Label;
use clrscope_contract::request::Pattern;
use clrscope_export::ExportOptions;
use clrscope_recording::events::{EntityRef, Kind, Tag, Value};
use clrscope_recording::layout::{flow, value};
use clrscope_recording::model::{
    CoveragePlan, CoverageSource, EntryAssembly, EventArena, EventChunk, Function, Identity, Loss, LossReason,
    MethodHits, Module, PlannedMethod, PlannedPoint, ProbeCallRecord, ProbeCaller, ProbedMethod, Process, Recording,
    Remark, RemarkKind, RootKind, StackFrame, StacksBuilder,
};
use clrscope_recording::payload::PayloadWriter;
use clrscope_recording::testing::ascii_trees::recording;
use clrscope_recording::testing::chunk::HandmadeChunk;
use clrscope_recording::testing::heap::HandmadeHeap;
use clrscope_report::{FollowState, Format, Request, VIEWS, exporters};

/// Behind a word that says which kind of text it is: a colour, a line break, a title in one byte
/// and in two, DEL, a change of direction.
const PLANTED: &str = "\x1b[31m\nforged\r\t\x1b]0;title\x07\u{9b}2J\u{7f}\u{202e}";

fn planted(kind: &str) -> String {
    format!("{kind}{PLANTED}")
}

const TREES: &str = "
thread 1 main
  Main 1 1000 10
    Pay 3 3000 500
";

fn thing(id: u64, index: u32) -> Value<'static> {
    Value::Entity(EntityRef { id, index })
}

fn events() -> EventArena {
    let (name, reason) = (planted("EVENT-NAME"), planted("EVENT-REASON"));
    let class = (Tag::CLASS, thing(0x50, 1));
    let mut chunk = HandmadeChunk::new(0, 1, 1_000);
    chunk = chunk.put(Kind::NAME, &[class, (Tag::NAME, name.as_str().into())]);
    for kind in [Kind::CLASS_LOAD_STARTED, Kind::JIT_COMPILATION_STARTED, Kind::THREAD_NAME_CHANGED] {
        chunk = chunk.put(
            kind,
            &[
                class,
                (Tag::FUNCTION, thing(0x70, 1)),
                (Tag::NAME, name.as_str().into()),
                (Tag::REASON, reason.as_str().into()),
            ],
        );
    }
    EventArena { instrument: "events".into(), chunks: vec![chunk.finish()] }
}

fn exceptions(stacks: &mut StacksBuilder) -> EventArena {
    let stack = u64::from(stacks.stack(&[StackFrame::method(1, None)], false));
    let (name, message) = (planted("EXCEPTION-TYPE"), planted("MESSAGE"));
    let class = (Tag::CLASS, thing(0x50, 1));
    let object = (Tag::OBJECT, 0x900_u64.into());
    let function = (Tag::FUNCTION, thing(0x70, 1));
    let chunk = HandmadeChunk::new(0, 1, 2_000)
        .put(Kind::NAME, &[class, (Tag::NAME, name.as_str().into())])
        .put(
            Kind::EXCEPTION_THROWN,
            &[object, class, (Tag::MESSAGE, message.as_str().into()), (Tag::STACK_NODE, stack.into())],
        )
        .put(Kind::EXCEPTION_SEARCH_FUNCTION_ENTER, &[function])
        .put(Kind::EXCEPTION_SEARCH_FUNCTION_LEAVE, &[])
        .put(Kind::EXCEPTION_CATCHER_ENTER, &[function, object]);
    EventArena { instrument: "exceptions".into(), chunks: vec![chunk.finish()] }
}

/// Survivors of a collection, and a collection.
fn collections() -> EventArena {
    let (class, number) = ((Tag::CLASS, thing(0x50, 1)), (Tag::NUMBER, 1_u64.into()));
    let counted = [(Tag::GENERATION, 1_u64), (Tag::COUNT, 3), (Tag::BYTES, 72)].map(|(tag, of)| (tag, of.into()));
    let chunk = HandmadeChunk::new(0, 1, 3_000)
        .put(Kind::NAME, &[class, (Tag::NAME, planted("SURVIVOR-TYPE").as_str().into())])
        .put(Kind::GC_SURVIVORS, &[&[class][..], &counted].concat())
        .put(Kind::GC_STARTED, &[number, (Tag::GENERATION, 1_u64.into())])
        .put(Kind::GC_ENDED, &[number, (Tag::GENERATION, 1_u64.into())]);
    EventArena { instrument: "gc".into(), chunks: vec![chunk.finish()] }
}

/// A thread that waited for a lock.
fn waits(stacks: &mut StacksBuilder) -> EventArena {
    let stack = u64::from(stacks.stack(&[StackFrame::method(1, None)], false));
    let chunk = HandmadeChunk::new(0, 1, 4_000)
        .put(
            Kind::CONTENTION_STARTED,
            &[(Tag::LOCK, (1_u64 << 40).into()), (Tag::CLASS, thing(0, 1)), (Tag::STACK_NODE, stack.into())],
        )
        .put(Kind::CONTENTION_ENDED, &[]);
    EventArena { instrument: "locks".into(), chunks: vec![chunk.finish()] }
}

/// A method that waited for something.
fn awaits(stacks: &mut StacksBuilder) -> EventArena {
    let stack = u64::from(stacks.stack(&[StackFrame::method(1, None)], false));
    let chunk = HandmadeChunk::new(0, 1, 4_000)
        .put(Kind::AWAIT_PLACE, &[(Tag::STACK_NODE, stack.into()), (Tag::NAME, PLANTED.into())])
        .put(Kind::AWAIT_ENDED, &[(Tag::STACK_NODE, stack.into()), (Tag::DURATION, 1_000_u64.into())]);
    EventArena { instrument: "awaits".into(), chunks: vec![chunk.finish()] }
}

/// A request for something.
fn requests() -> EventArena {
    let chunk = HandmadeChunk::new(0, 1, 4_000)
        .put(Kind::REQUEST_NAME, &[(Tag::ROUTE, 1_u64.into()), (Tag::NAME, PLANTED.into())])
        .put(Kind::REQUEST_ENDED, &[(Tag::ROUTE, 1_u64.into()), (Tag::DURATION, 1_000_u64.into())]);
    EventArena { instrument: "requests".into(), chunks: vec![chunk.finish()] }
}

/// A counter of foreign code.
fn counters() -> EventArena {
    let texts = [Tag::SOURCE, Tag::NAME, Tag::UNIT, Tag::LABELS].map(|tag| (tag, PLANTED.into()));
    let value = [(Tag::COUNTER, 1_u64.into()), (Tag::VALUE, 1.5_f64.to_bits().into())];
    let chunk = HandmadeChunk::new(0, 1, 4_000)
        .put(Kind::COUNTER_NAME, &[&[(Tag::COUNTER, 1_u64.into())][..], &texts[..]].concat())
        .put(Kind::COUNTER_VALUE, &value);
    EventArena { instrument: "counters".into(), chunks: vec![chunk.finish()] }
}

/// Memory of a file with a planted name.
fn memory() -> EventArena {
    let number = (Tag::NUMBER, 1_u64.into());
    let place = [number, (Tag::PLACE, 3_u64.into()), (Tag::BYTES, 9_u64.into()), (Tag::NAME, PLANTED.into())];
    let chunk = HandmadeChunk::new(0, 1, 4_000)
        .put(Kind::MEMORY_LOOK, &[number, (Tag::COUNT, 1_u64.into())])
        .put(Kind::MEMORY_PLACE, &place);
    EventArena { instrument: "memory".into(), chunks: vec![chunk.finish()] }
}

/// A call with a string as its argument, and the dictionary that says so.
fn calls() -> [EventArena; 2] {
    let mut values = vec![value::STRING];
    let text: Vec<u16> = planted("STRING").encode_utf16().collect();
    values.extend((text.len() as u32).to_le_bytes());
    values.extend((text.len() as u16).to_le_bytes());
    values.extend(text.iter().flat_map(|unit| unit.to_le_bytes()));
    let mut bytes = Vec::new();
    let mut put = |what: u32, sp: u32| {
        let ticks = 1_000 + bytes.len() as u64;
        bytes.extend(ticks.to_le_bytes().into_iter().chain(what.to_le_bytes()).chain(sp.to_le_bytes()));
    };
    put(flow::ENTER | 1, 800);
    put(flow::VALUES, values.len() as u32);
    values.resize(values.len().next_multiple_of(flow::BYTES), 0);
    bytes.extend(&values);
    let mut leave = 2_000_u64.to_le_bytes().to_vec();
    leave.extend((flow::LEAVE | 1).to_le_bytes().into_iter().chain(800_u32.to_le_bytes()));
    bytes.extend(leave);
    let mut function = PayloadWriter::default();
    function.u32(value::FUNCTION).u32(1).u32(1);
    function.text(&planted("PARAMETER")).text(&planted("PARAMETER-TYPE")).u32(0).text("").u32(0);
    let mut types = (function.bytes().len() as u32).to_le_bytes().to_vec();
    types.extend_from_slice(function.bytes());
    let arena = |instrument: &str, bytes: Vec<u8>| EventArena {
        instrument: instrument.into(),
        chunks: vec![EventChunk { thread: 0, sequence: 1, bytes: bytes.into() }],
    };
    [arena("flow", bytes), arena("flow-types", types)]
}

/// A call of the probed method, and its parameter.
fn probe_calls() -> [EventArena; 2] {
    let mut values = vec![value::STRING];
    let text: Vec<u16> = planted("GIVEN").encode_utf16().collect();
    values.extend((text.len() as u32).to_le_bytes());
    values.extend((text.len() as u16).to_le_bytes());
    values.extend(text.iter().flat_map(|unit| unit.to_le_bytes()));
    let bytes = ProbeCallRecord { method: 1, ticks: 1_500, end: None, values: &values }.to_bytes();
    let mut method = PayloadWriter::default();
    method.u32(value::PROBED).u32(1).u32(1);
    method.text(&planted("GIVEN-NAME")).text(&planted("GIVEN-TYPE")).u32(0).text("").u32(0);
    let mut types = (method.bytes().len() as u32).to_le_bytes().to_vec();
    types.extend_from_slice(method.bytes());
    let arena = |instrument: &str, bytes: Vec<u8>| EventArena {
        instrument: instrument.into(),
        chunks: vec![EventChunk { thread: 0, sequence: 1, bytes: bytes.into() }],
    };
    [arena("probe-calls", bytes), arena("flow-types", types)]
}

/// An array of static fields that holds an object.
fn heap() -> HandmadeHeap {
    let mut heap = HandmadeHeap::default();
    let class = heap.class(&planted("HEAP-TYPE"), 32, &[&planted("HEAP-FIELD")]);
    let statics = heap.array("object[]", 8, &[""]);
    let (fields, held, further) = (heap.object(statics, 1), heap.object(class, 0), heap.object(class, 0));
    heap.refer(fields, 0, held);
    heap.refer(held, 0, further);
    heap.root(RootKind::Handle, fields, 0, 0);
    heap.static_field(fields, 0, &planted("STATIC-FIELD"), 0);
    heap
}

/// Every text that comes from the program has something planted in it.
/// A method of one line, which ran.
fn coverage(process: &mut Process) -> EventArena {
    let point = PlannedPoint { start_line: 7, end_line: 7, ..PlannedPoint::default() };
    let method = PlannedMethod { token: 9, source: 0, fingerprint: 9, points: vec![point], branches: Vec::new() };
    let [class, name, parameters] = ["COVERED-TYPE", "COVERED-METHOD", "(COVERED-PARAMETERS)"].map(planted);
    process.coverage_plans = vec![CoveragePlan {
        module: 0,
        files: vec![planted("/src/SOURCE")],
        sources: vec![CoverageSource { class, name, parameters }],
        methods: vec![method],
        ..CoveragePlan::default()
    }];
    let hits = vec![3];
    let of = MethodHits { module: 0, token: 9, fingerprint: 9, points: 1, branches: 0, counted: true, hits };
    let chunk = EventChunk { thread: u32::MAX, sequence: 1, bytes: of.to_bytes().into() };
    EventArena { instrument: "coverage".into(), chunks: vec![chunk] }
}

/// A probed method.
fn probed() -> EventArena {
    let [name, signature] = ["PROBED-TYPE::PROBED-METHOD", "PROBED-SIGNATURE()"].map(planted);
    let number = 1;
    let bytes =
        ProbedMethod { module: 0, token: 9, number, name, signature, ..ProbedMethod::default() }.to_empty_bytes(1);
    let chunk = EventChunk { thread: u32::MAX, sequence: 1, bytes: bytes.into() };
    EventArena { instrument: "probes".into(), chunks: vec![chunk] }
}

fn everything() -> Recording {
    let mut recording = recording(TREES);
    recording.run.command = vec!["dotnet".into(), planted("ARGUMENT")];
    let first = &mut recording.processes[0];
    first.command = vec!["dotnet".into(), planted("ARGUMENT")];
    first.runtime = planted("RUNTIME");
    first.identity = Identity {
        id: planted("IDENTIFIER"),
        host: planted("HOST"),
        container: planted("CONTAINER"),
        labels: vec![Label { key: planted("LABEL-KEY"), value: planted("LABEL-VALUE") }],
    };
    first.entry_assembly = EntryAssembly { name: planted("ENTRY"), version: planted("ENTRY-VERSION") };
    recording.run.id = planted("IDENTIFIER");
    let first = &mut recording.processes[0];
    for (number, function) in first.functions.iter_mut().enumerate() {
        let name = planted(&format!("App{number}.TYPE"));
        *function = Function {
            name: format!("{name}::{}", planted("METHOD")),
            signature: format!("{}()", planted("SIGNATURE")),
            ..function.clone()
        };
    }
    for module in &mut first.modules {
        *module = Module {
            name: planted("MODULE"),
            path: planted("/lib/PATH"),
            version: planted("VERSION"),
            ..module.clone()
        };
    }
    first.threads[0].name = planted("THREAD");
    first.remarks = vec![Remark { text: planted("REMARK"), kind: RemarkKind::Note, ..Remark::default() }];
    first.losses = vec![Loss::new(LossReason::PanicCaught, 2, 10, 20)];
    let [calls, types] = calls();
    let samples = EventArena { instrument: "cpu".into(), chunks: Vec::new() };
    let allocations = EventArena { instrument: "alloc".into(), chunks: Vec::new() };
    let coverage = coverage(first);
    let mut stacks = StacksBuilder::default();
    first.events = vec![
        events(),
        exceptions(&mut stacks),
        waits(&mut stacks),
        awaits(&mut stacks),
        requests(),
        counters(),
        memory(),
        calls,
        types,
        samples,
        collections(),
        allocations,
    ];
    first.events.extend([coverage, probed()]);
    first.events.extend(probe_calls());
    let stack = stacks.stack(&[1, 2].map(|function| StackFrame::method(function, None)), false);
    first.stacks = stacks.finish().into();
    let bytes = ProbeCaller { method: 1, stack, calls: 1, ..ProbeCaller::default() }.to_bytes().to_vec();
    let chunk = EventChunk { thread: u32::MAX, sequence: 1, bytes: bytes.into() };
    first.events.push(EventArena { instrument: "probe-callers".into(), chunks: vec![chunk] });
    first.ticks.ns_per_tick = 1.0;
    (0..2).for_each(|_| _ = heap().add_to(first));
    let second = Process { pid: 8, ..first.clone() };
    recording.processes.push(second);
    recording
}

/// Own colours are taken away; then no control character but line feeds may be left, and none that
/// was planted.
#[track_caller]
fn assert_harmless(what: &str, bytes: &[u8], is_text: bool) {
    let text = std::str::from_utf8(bytes).expect("UTF-8");
    for code in ["\x1b[31m", "\nforged", "\u{202e}"].into_iter().filter(|_| is_text) {
        assert!(!text.contains(code), "{what}: {code:?} in {text:?}");
    }
    let plain = if is_text { anstream::adapter::strip_str(text).to_string() } else { text.to_owned() };
    let raw = plain.chars().find(|&c| c.is_control() && c != '\n');
    assert_eq!(raw, None, "{what}: {plain:?}");
}

#[test]
fn escape_sequences_in_names_of_the_program_never_reach_the_terminal() {
    let recording = everything();
    let mut all_text = String::new();
    for view in VIEWS {
        let functions = match view.name {
            "callers" | "callees" => vec![Pattern::parse("*").expect("a pattern")],
            _ => Vec::new(),
        };
        let plain = Request { query: Query { functions, ..Query::default() }, ..Request::default() };
        let mut requests = vec![plain.clone()];
        if view.name == "exceptions" {
            requests.push(Request { each: true, ..plain.clone() });
        }
        if view.name == "probes" {
            requests.push(Request { callers: true, ..plain });
        }
        for request in requests {
            for (name, _, format) in Format::ALL {
                let mut out = Vec::new();
                let report = view.open(&recording, &request).expect("rows");
                report.write(format, 300, &mut out).expect("memory takes all");
                assert_harmless(&format!("{} as {name}", view.name), &out, format == Format::Text);
                if format == Format::Text {
                    all_text += &String::from_utf8_lossy(&out);
                }
            }
            let mut out = Vec::new();
            let report = view.open(&recording, &request).expect("rows");
            report.write_news(&mut FollowState::default(), &mut out).expect("memory takes all");
            assert_harmless(&format!("{} followed", view.name), &out, true);
        }
    }
    for kind in [
        "ARGUMENT",
        "RUNTIME",
        "IDENTIFIER",
        "HOST",
        "LABEL-KEY",
        "LABEL-VALUE",
        "ENTRY",
        "ENTRY-VERSION",
        "METHOD",
        "SIGNATURE",
        "MODULE",
        "THREAD",
        "REMARK",
        "EVENT-NAME",
        "EVENT-REASON",
        "EXCEPTION-TYPE",
        "MESSAGE",
        "PARAMETER",
        "HEAP-TYPE",
        "HEAP-FIELD",
        "STATIC-FIELD",
        "COVERED-TYPE",
        "COVERED-METHOD",
        "SOURCE",
    ] {
        assert!(
            all_text.contains(&format!("{kind}\\u{{1b}}[31m\\nforged")),
            "{kind} is not shown: the test shows nothing"
        );
    }
    // Strings in values are written as in C#.
    assert!(all_text.contains("\"STRING\\u001b[31m\\nforged"), "the test shows no string");
    for format in exporters() {
        let mut out = Vec::new();
        // The recording has no samples: a profile of those would be empty.
        let metric = (format.name() == "firefox").then_some(&EXCEPTIONS);
        // A file of one heap asks whose.
        let pid = (format.name() == "heapsnapshot").then_some(recording.processes[0].pid);
        let query = Query { metric, pid, ..Query::default() };
        format.write(&recording, &ExportOptions { query, ..ExportOptions::default() }, &mut out).expect("written");
        // A file of numbers and texts with their lengths is for no terminal; its texts are
        // printable all the same.
        match format.name() {
            // Texts are compressed: they are those of `collapsed`, and their library's.
            "parquet" | "parquet-samples" => continue,
            "pprof" | "otlp" | "otlp-metrics" => {
                if format.name() == "pprof" {
                    let mut plain = Vec::new();
                    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&out[..]), &mut plain).expect("gzip");
                    out = plain;
                }
                assert!(!String::from_utf8_lossy(&out).contains("\x1b[31m"), "{}", format.name())
            }
            // JSON escapes control characters, and no others.
            name => assert_harmless(name, &out, name != "heapsnapshot"),
        }
        assert!(String::from_utf8_lossy(&out).contains("[31m"), "{}", format.name());
    }
}
