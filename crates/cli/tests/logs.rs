//! The views `events` and `exceptions` of a recording made by hand: layout word for word, keys,
//! refusals.

mod common;

use std::collections::BTreeSet;
use std::sync::Arc;

use clrscope_recording::events::{EntityRef, Kind, Tag, Value};
use clrscope_recording::model::{EventArena, Recording, StackFrame, StacksBuilder};
use clrscope_recording::testing::chunk::HandmadeChunk;
use clrscope_recording::testing::logs::write_logs;
use common::{TestFolder, sample, write_packed};
use insta::assert_snapshot;
use serde_json::Value as Json;

fn thing(id: u64, index: u32) -> Value<'static> {
    Value::Entity(EntityRef { id, index })
}

/// An assembly that is loaded, a compilation that fails, a collection on another thread.
fn event_arena() -> EventArena {
    let assembly = (Tag::ASSEMBLY, thing(0x7f00_0010, 1));
    let total = (Tag::FUNCTION, thing(0x7f00_0070, 2));
    let main = HandmadeChunk::new(0, 1, 1_000_000)
        .put(Kind::INITIALIZE, &[])
        .put(Kind::ASSEMBLY_LOAD_STARTED, &[assembly])
        .put(Kind::MODULE_LOAD_STARTED, &[(Tag::MODULE, thing(0x7f00_0020, 2))])
        .put(Kind::NAME, &[assembly, (Tag::NAME, "Shop".into())])
        .put(Kind::MODULE_LOAD_FINISHED, &[(Tag::MODULE, thing(0x7f00_0020, 2)), (Tag::RESULT, 0_u64.into())])
        .put(Kind::ASSEMBLY_LOAD_FINISHED, &[assembly, (Tag::RESULT, 0_u64.into())])
        .put(Kind::JIT_CACHED_FUNCTION_SEARCH_STARTED, &[total])
        .put(Kind::JIT_COMPILATION_STARTED, &[total])
        .put(Kind::JIT_INLINING, &[total, (Tag::CALLEE, thing(0x7f00_0078, 3))])
        .put(
            Kind::JIT_COMPILATION_FINISHED,
            &[
                total,
                (Tag::RESULT, 0x8013_1350_u64.into()),
                (Tag::RESULT_NAME, "CORPROF_E_FUNCTION_NOT_COMPILED".into()),
            ],
        );
    let pool = HandmadeChunk::new(1, 2, 1_002_500)
        .put(Kind::THREAD_NAME_CHANGED, &[(Tag::THREAD, thing(0x30, 3)), (Tag::NAME, "packer".into())])
        .put(Kind::JIT_CACHED_FUNCTION_SEARCH_STARTED, &[total])
        .put(Kind::JIT_CACHED_FUNCTION_SEARCH_FINISHED, &[total, (Tag::ANSWER, 1_u64.into())])
        .put(Kind::GARBAGE_COLLECTION_STARTED, &[(Tag::GENERATIONS, 3_u64.into()), (Tag::REASON, "induced".into())])
        .put(Kind::FINALIZEABLE_OBJECT_QUEUED, &[(Tag::OBJECT, 0x910_u64.into()), (Tag::ANSWER, 1_u64.into())])
        .put(Kind::FINALIZEABLE_OBJECT_QUEUED, &[(Tag::OBJECT, 0x920_u64.into()), (Tag::ANSWER, 0_u64.into())])
        .put(Kind::LIVE_OBJECTS_BY_CLASS, &[(Tag::CLASS, thing(0x40, 4)), (Tag::COUNT, 1234_u64.into())])
        .put(Kind::GARBAGE_COLLECTION_FINISHED, &[]);
    EventArena { instrument: "events".into(), chunks: vec![main.finish(), pool.finish()] }
}

/// An exception that is caught behind a filter and a finally block, and an uncaught one within it.
fn exception_arena(stacks: &mut StacksBuilder) -> EventArena {
    let frame = StackFrame::method;
    let whole = u64::from(stacks.stack(&[frame(4, Some(7)), frame(2, None), frame(1, None)], false));
    let cut = u64::from(stacks.stack(&[frame(2, None)], true));
    let (pay, total, main) = (thing(0x74, 4), thing(0x72, 2), thing(0x71, 1));
    let chunk = HandmadeChunk::new(0, 1, 2_000_000)
        .put(Kind::NAME, &[(Tag::CLASS, thing(0x50, 1)), (Tag::NAME, "Shop.OutOfStock".into())])
        .put(Kind::NAME, &[(Tag::CLASS, thing(0x51, 2)), (Tag::NAME, "System.ArgumentException".into())])
        .put(
            Kind::EXCEPTION_THROWN,
            &[
                (Tag::OBJECT, 0x900_u64.into()),
                (Tag::CLASS, thing(0x50, 1)),
                (Tag::STACK_NODE, whole.into()),
                (Tag::MESSAGE, "no more apples".into()),
            ],
        )
        .put(Kind::EXCEPTION_SEARCH_FUNCTION_ENTER, &[(Tag::FUNCTION, pay)])
        .put(Kind::EXCEPTION_SEARCH_FUNCTION_ENTER, &[(Tag::FUNCTION, total)])
        .put(Kind::EXCEPTION_SEARCH_FILTER_ENTER, &[(Tag::FUNCTION, total)])
        .put(Kind::EXCEPTION_SEARCH_FILTER_LEAVE, &[])
        .put(Kind::EXCEPTION_SEARCH_CATCHER_FOUND, &[(Tag::FUNCTION, total)])
        .put(Kind::EXCEPTION_UNWIND_FUNCTION_ENTER, &[(Tag::FUNCTION, pay)])
        .put(Kind::EXCEPTION_UNWIND_FINALLY_ENTER, &[(Tag::FUNCTION, pay)])
        .put(Kind::EXCEPTION_UNWIND_FINALLY_LEAVE, &[])
        .put(Kind::EXCEPTION_UNWIND_FUNCTION_ENTER, &[(Tag::FUNCTION, total)])
        .put(Kind::EXCEPTION_CATCHER_ENTER, &[(Tag::FUNCTION, total), (Tag::OBJECT, 0x900_u64.into())])
        .put(
            Kind::EXCEPTION_THROWN,
            &[
                (Tag::OBJECT, 0x980_u64.into()),
                (Tag::CLASS, thing(0x51, 2)),
                (Tag::STACK_NODE, cut.into()),
                (Tag::INNER_OBJECT, 0x900_u64.into()),
                (Tag::INNER_CLASS, thing(0x50, 1)),
            ],
        )
        .put(Kind::EXCEPTION_SEARCH_FUNCTION_ENTER, &[(Tag::FUNCTION, total)])
        .put(Kind::EXCEPTION_SEARCH_FUNCTION_ENTER, &[(Tag::FUNCTION, main)]);
    EventArena { instrument: "exceptions".into(), chunks: vec![chunk.finish()] }
}

fn recording() -> Recording {
    let mut recording = sample();
    let process = &mut recording.processes[0];
    process.complete = false;
    let mut stacks = StacksBuilder::default();
    process.events = vec![event_arena(), exception_arena(&mut stacks)];
    process.stacks = Arc::new(stacks.finish());
    recording
}

fn write_recording() -> TestFolder {
    let place = TestFolder::new();
    write_packed(&recording(), &place.file("logs.clrs"));
    place
}

fn text(place: &TestFolder, line: &str) -> String {
    let output = place.run(line);
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

fn rows(place: &TestFolder, line: &str) -> Vec<Json> {
    let document: Json = serde_json::from_str(&text(place, &format!("{line} --format json"))).expect("JSON");
    let keys: Vec<_> = document.as_object().expect("an object").keys().cloned().collect();
    assert_eq!(keys, ["schema", "recording", "rows"]);
    document["rows"].as_array().expect("rows").clone()
}

fn assert_keys(value: &Json, keys: &str) {
    let found: BTreeSet<&str> = value.as_object().expect("an object").keys().map(String::as_str).collect();
    assert_eq!(found, keys.split_whitespace().collect::<BTreeSet<_>>());
}

#[test]
fn events_are_a_log_indented_by_nesting() {
    let place = write_recording();
    assert_snapshot!("events", text(&place, "report logs.clrs --view events"));
    assert_snapshot!("events_interleaved", text(&place, "report logs.clrs --view events --interleave --name *Coll*"));
}

#[test]
fn filters_that_leave_nothing_say_so() {
    let place = write_recording();
    let nothing = "No events to show: none was recorded, or the filters leave nothing.\n";
    assert_eq!(text(&place, "report logs.clrs --view events --name Nope*"), nothing);
    let output = place.run("report logs.clrs --view events --name Nope* --per-thread -o none");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(said, format!("clrscope: no file was written. {nothing}"));
    assert!(rows(&place, "report logs.clrs --view events --name Nope*").is_empty());
}

#[test]
fn exceptions_are_a_table_or_stories() {
    let place = write_recording();
    assert_snapshot!("exceptions", text(&place, "report logs.clrs --view exceptions"));
    assert_snapshot!("exceptions_each", text(&place, "report logs.clrs --view exceptions --each"));
}

#[test]
fn rows_have_the_documented_keys() {
    const EVENT: &str = "time_ns thread depth group event phase names ids result reason duration_ns";
    const STORY: &str = "number type message name thread time_ns stack stack_cut search filters unwound finally catcher \
                         caught_by_runtime unhandled rethrown rethrow_of replaced_by inner throw_to_catch_ns";
    let place = write_recording();
    let events = rows(&place, "report logs.clrs --view events");
    assert_keys(&events[0], EVENT);
    assert_eq!(
        (&events[1]["names"]["assembly"], &events[1]["ids"]["assembly"]),
        (&"Shop".into(), &"0x7f000010".into())
    );
    assert_eq!(events[2]["names"]["module"], "0x7f000020", "the id where there is no name");
    assert_eq!((&events[3]["phase"], &events[3]["depth"]), (&"end".into(), &1.into()));
    let about = |event: &str, key: &str| {
        let events_of = events.iter().filter(|row| row["event"] == event);
        events_of.map(|row| row[key].clone()).collect::<Vec<_>>()
    };
    assert_eq!(about("FinalizeableObjectQueued", "critical"), [true, false]);
    assert_eq!(about("JITCachedFunctionSearchFinished", "found"), [true]);
    let groups = rows(&place, "report logs.clrs --view exceptions");
    assert_keys(
        &groups[0],
        "type message name signature module own_place caught_by exceptions count unhandled caught_by_runtime rethrown throw_to_catch_ns longest_ns first_ns \
         last_ns",
    );
    let each = rows(&place, "report logs.clrs --view exceptions --each");
    assert_keys(&each[0], STORY);
    assert_keys(&each[0]["stack"][0], "name signature module il_offset");
    assert_eq!(each[0]["filters"][0]["accepted"], true);
    assert_eq!(each[1]["inner"], serde_json::json!({"type": "Shop.OutOfStock", "number": 1}));
    assert_eq!((&each[0]["unhandled"], &each[1]["unhandled"]), (&false.into(), &true.into()));
    let csv = text(&place, "report logs.clrs --view exceptions --format csv");
    assert_eq!(csv.lines().count(), 3, "{csv}");
}

#[test]
fn a_file_per_thread_holds_what_the_view_shows() {
    let place = write_recording();
    assert_eq!(text(&place, "report logs.clrs --view events --per-thread -o threads"), "");
    let read = |name: &str| std::fs::read_to_string(place.file("threads").join(name)).expect(name);
    let together = format!("{}{}", read("thread-1.log"), read("thread-2.log"));
    assert_eq!(together, text(&place, "report logs.clrs --view events"));
}

/// Files of `flow` had the escape sequences of colours all the same.
#[test]
fn files_per_thread_have_no_colours() {
    let place = TestFolder::new();
    write_logs(&place.file("calls.clrs.d"), 1 << 16).expect("a recording");
    for view in ["flow", "events"] {
        assert_eq!(text(&place, &format!("report calls.clrs.d --view {view} --per-thread -o {view}")), "");
        let files: Vec<_> =
            std::fs::read_dir(place.file(view)).expect("a folder").map(|file| file.expect("a file")).collect();
        assert!(!files.is_empty(), "{view}");
        for file in files {
            let log = std::fs::read_to_string(file.path()).expect("text");
            assert!(log.lines().count() > 10 && !log.contains('\u{1b}'), "{view}: {log}");
        }
    }
}

#[test]
fn following_a_program_that_has_ended_prints_everything_once() {
    let place = write_recording();
    let lines = text(&place, "report logs.clrs --view events --follow");
    // And what the columns are.
    assert_eq!(lines.lines().count(), rows(&place, "report logs.clrs --view events").len() + 1, "{lines}");
}

#[test]
fn what_makes_no_sense_is_refused_with_a_hint() {
    let place = write_recording().with_sample();
    let all = [
        "report logs.clrs --view events --group jitter",
        "report logs.clrs --view functions --each",
        "report logs.clrs --view exceptions --group jit",
        "report logs.clrs --view events --per-thread",
        "report logs.clrs --view events --follow --format json",
        "report sample.clrs --view events",
        "report sample.clrs --view exceptions",
        "run -i events:jitter -- true",
    ];
    assert_snapshot!("refusals_of_logs", all.map(|line| place.transcript(line)).join("\n"));
}
