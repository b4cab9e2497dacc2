//! Formats with an axis of time, from recordings made by hand: what viewers rely on, number by
//! number.

#[path = "common/firefox.rs"]
mod firefox;

use std::collections::{BTreeMap, BTreeSet};

use clrscope_analysis::{BYTES, CALLS, Query, QueryProblem, SAMPLES, ThreadSelector};
use clrscope_contract::request::Pattern;
use clrscope_export::{ExportError, ExportOptions, exporter};
use clrscope_recording::events::{EntityRef, Kind, Tag, Value as Field};
use clrscope_recording::layout::{flow, function};
use clrscope_recording::model::{
    EventArena, EventChunk, Recording, StackFrame, StacksBuilder, ThreadRole, ThreadState, TickClock,
};
use clrscope_recording::testing::ascii_trees::recording;
use clrscope_recording::testing::chunk::HandmadeChunk;
use clrscope_recording::testing::samples::{HandSampled, STEP_NS};
use serde_json::Value;

fn export(recording: &Recording, format: &str, query: Query) -> Result<Value, ExportError> {
    let mut out = Vec::new();
    exporter(format).expect("a format").write(
        recording,
        &ExportOptions { query, ..ExportOptions::default() },
        &mut out,
    )?;
    Ok(serde_json::from_slice(&out).expect("JSON"))
}

fn plain(recording: &Recording, format: &str) -> Value {
    export(recording, format, Query::default()).expect("written")
}

fn list<'v>(value: &'v Value, key: &str) -> &'v Vec<Value> {
    value[key].as_array().unwrap_or_else(|| panic!("{key} is a list in {value}"))
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("{value} is a number"))
}

/// Two threads: three samples of the main one, two of the other between them.
fn sampled() -> HandSampled {
    let mut taken = HandSampled::default();
    let (main, worker) = (taken.thread("", ThreadRole::Main), taken.thread("mailer", ThreadRole::User));
    for (step, path) in [(0, "App::Main > App::Pay"), (4, "App::Main"), (8, "App::Main > App::Pay")] {
        taken.cpu(main, step, path);
    }
    for step in [6, 2] {
        taken.cpu(worker, step, "System.Thread::Start > App::Send > libc.so!write");
    }
    taken
}

/// Calls of `flow` on two threads: on the first `Main` calls `Pay` twice and never returns, after
/// an end whose begin was overwritten; on the second `Pay` ends by a tail call of `Main`.
fn calls() -> Recording {
    let mut r = recording("thread 1 main\n  Main 1 1\n    Pay 2 1\nthread 2\n  Pay 1 1\n");
    let (main, pay) = (1, 2);
    let first: &[(u32, u32)] = &[
        (flow::LEAVE | pay, 650),
        (flow::ENTER | main, 800),
        (flow::ENTER | pay, 700),
        (flow::LEAVE | pay, 700),
        (flow::ENTER | pay, 700),
        (flow::LEAVE | pay, 700),
    ];
    let second: &[(u32, u32)] =
        &[(flow::ENTER | pay, 800), (flow::TAILCALL | pay, 800), (flow::ENTER | main, 800), (flow::LEAVE | main, 800)];
    let chunk = |(thread, events): (u32, &[(u32, u32)])| {
        let mut bytes = Vec::new();
        for (at, (what, sp)) in (1_u64..).zip(events) {
            bytes.extend_from_slice(&(at * 100).to_le_bytes());
            bytes.extend_from_slice(&what.to_le_bytes());
            bytes.extend_from_slice(&sp.to_le_bytes());
        }
        EventChunk { thread, sequence: u64::from(thread) + 1, bytes: bytes.into() }
    };
    let chunks = [(0, first), (1, second)].map(chunk).into();
    r.processes[0].events.push(EventArena { instrument: "flow".into(), chunks });
    r.processes[0].ticks = TickClock { start: 0, ns_per_tick: 10.0 };
    r
}

/// Looks at everything that the schema of speedscope asks for, and that its reader relies on; the
/// profiles by name.
fn speedscope_profiles(document: &Value) -> BTreeMap<String, Value> {
    assert_eq!(document["$schema"], "https://www.speedscope.app/file-format-schema.json");
    let frames = list(&document["shared"], "frames");
    assert!(frames.iter().all(|frame| frame["name"].is_string()));
    let distinct: BTreeSet<String> = frames.iter().map(Value::to_string).collect();
    assert_eq!(distinct.len(), frames.len(), "each frame once");
    let is_frame = |frame: &Value| (number(frame) as usize) < frames.len();
    assert!((number(&document["activeProfileIndex"]) as usize) < list(document, "profiles").len());
    for profile in list(document, "profiles") {
        let (start, end) = (number(&profile["startValue"]), number(&profile["endValue"]));
        assert!(["none", "nanoseconds", "bytes"].contains(&profile["unit"].as_str().expect("a unit")));
        match profile["type"].as_str().expect("a type") {
            "sampled" => {
                let (samples, weights) = (list(profile, "samples"), list(profile, "weights"));
                assert_eq!(samples.len(), weights.len());
                assert_eq!(weights.iter().map(number).sum::<u64>(), end - start);
                let is_path = |sample: &Value| sample.as_array().is_some_and(|path| path.iter().all(is_frame));
                assert!(samples.iter().all(is_path));
            }
            "evented" => {
                let (mut open, mut last) = (Vec::new(), start);
                for event in list(profile, "events") {
                    assert!(is_frame(&event["frame"]) && number(&event["at"]) >= last, "{event}");
                    last = number(&event["at"]);
                    match event["type"].as_str() {
                        Some("O") => open.push(event["frame"].clone()),
                        Some("C") => assert_eq!(open.pop().as_ref(), Some(&event["frame"])),
                        other => panic!("{other:?} is no kind of event"),
                    }
                }
                assert!(open.is_empty() && last <= end, "all that begins ends");
            }
            other => panic!("{other} is no type of profile"),
        }
    }
    let named = |profile: &Value| (profile["name"].as_str().expect("a name").to_owned(), profile.clone());
    list(document, "profiles").iter().map(named).collect()
}

/// Paths of a profile of samples with their weights, names joined.
fn paths(document: &Value, profile: &Value) -> Vec<(String, u64)> {
    let frames = list(&document["shared"], "frames");
    let name = |frame: &Value| frames[number(frame) as usize]["name"].as_str().expect("a name").to_owned();
    let path = |sample: &Value| sample.as_array().expect("a path").iter().map(name).collect::<Vec<_>>().join(";");
    list(profile, "samples").iter().map(path).zip(list(profile, "weights").iter().map(number)).collect()
}

#[test]
fn speedscope_has_samples_by_thread_in_the_order_of_time_and_all_together_first() {
    let r = sampled().recording();
    let document = plain(&r, "speedscope");
    let profiles = speedscope_profiles(&document);
    assert_eq!(list(&document, "profiles")[0]["name"], "all threads");
    let names: Vec<&str> = profiles.keys().map(String::as_str).collect();
    assert_eq!(names.len(), 3);
    assert!(names[1].starts_with("mailer (thread 2") || names[2].starts_with("mailer (thread 2"), "{names:?}");
    let of = |start: &str| profiles.iter().find(|(name, _)| name.starts_with(start)).expect("a profile").1;
    let expected = [("App::Main;App::Pay", STEP_NS), ("App::Main", STEP_NS), ("App::Main;App::Pay", STEP_NS)];
    assert_eq!(paths(&document, of("main")), expected.map(|(path, weight)| (path.to_owned(), weight)));
    let merged: BTreeMap<String, u64> = paths(&document, of("all threads")).into_iter().collect();
    assert_eq!(merged["App::Main;App::Pay"], 2 * STEP_NS);
    assert_eq!(merged["System.Thread::Start;App::Send;write"], 2 * STEP_NS);
    let frames = list(&document["shared"], "frames");
    assert!(frames.iter().any(|frame| frame["name"] == "write" && frame["file"] == "libc.so"), "{frames:?}");
    // By another metric, of one thread, from a function on, in a part of the time.
    let query = Query {
        metric: Some(&SAMPLES),
        threads: vec![ThreadSelector::parse("main")],
        functions: vec![Pattern::parse("*Pay").expect("a pattern")],
        since_ns: Some(2 * STEP_NS),
        ..Query::default()
    };
    let document = export(&r, "speedscope", query).expect("written");
    let profiles = speedscope_profiles(&document);
    assert_eq!(profiles.len(), 1, "one thread needs no sum");
    let only = profiles.values().next().expect("a profile");
    assert_eq!((paths(&document, only), &only["unit"]), (vec![("App::Pay".to_owned(), 1)], &Value::from("none")));
}

#[test]
fn speedscope_has_every_call_with_its_begin_and_its_end() {
    let r = calls();
    let document = plain(&r, "speedscope");
    let profiles = speedscope_profiles(&document);
    assert_eq!(profiles.len(), 2);
    let events = |start: &str| -> Vec<(String, u64)> {
        let profile = profiles.iter().find(|(name, _)| name.starts_with(start)).expect("a profile").1;
        let frames = list(&document["shared"], "frames");
        let event = |event: &Value| {
            let name = frames[number(&event["frame"]) as usize]["name"].as_str().expect("a name");
            (format!("{} {name}", event["type"].as_str().expect("a type")), number(&event["at"]))
        };
        list(profile, "events").iter().map(event).collect()
    };
    let expected = |all: &[(&str, u64)]| all.iter().map(|(text, at)| ((*text).to_owned(), *at)).collect::<Vec<_>>();
    let of_main =
        [("O Main", 2000), ("O Pay", 3000), ("C Pay", 4000), ("O Pay", 5000), ("C Pay", 6000), ("C Main", 6000)];
    assert_eq!(events("main"), expected(&of_main));
    let of_second = [("O Pay", 1000), ("C Pay", 2000), ("O Main", 3000), ("C Main", 4000)];
    assert_eq!(events("user"), expected(&of_second));
    // The trees of the same recording, when a metric is named.
    let document = export(&r, "speedscope", Query { metric: Some(&CALLS), ..Query::default() }).expect("written");
    let profiles = speedscope_profiles(&document);
    assert!(profiles.values().all(|profile| profile["type"] == "sampled"));
    assert_eq!(paths(&document, &profiles["all threads"]).len(), 3);
    assert_eq!(profiles.len(), 3);
}

#[test]
fn formats_with_times_say_what_they_would_need() {
    let r = recording("thread 1 main\n  Main 1 1\n");
    for format in ["chrome", "firefox", "parquet-samples"] {
        let refused = export(&r, format, Query::default()).expect_err("no times");
        let is_it = matches!(refused, ExportError::Query(QueryProblem::NotRecorded { instrument: "cpu", .. }));
        assert!(is_it, "{format}: {refused}");
    }
    let refused = export(&r, "speedscope", Query { metric: Some(&BYTES), ..Query::default() }).expect_err("no bytes");
    assert!(matches!(refused, ExportError::Query(QueryProblem::MetricNotRecorded { .. })), "{refused}");
    let nothing = export(&Recording::default(), "speedscope", Query::default()).expect_err("nothing");
    assert!(matches!(nothing, ExportError::Empty(_) | ExportError::Query(_)), "{nothing}");
}

/// Samples of threads, states of another, a compilation, an exception and a collection.
fn everything() -> Recording {
    let mut taken = sampled();
    taken.wall(2, 0, "System.Thread::Sleep").state = ThreadState::Sleeping;
    taken.wall(2, 1, "System.Thread::Sleep").state = ThreadState::Sleeping;
    taken.wall(2, 2, "App::Send").state = ThreadState::Running;
    let mut r = taken.recording();
    let thing = |index: u32| Field::Entity(EntityRef { id: 0x70, index });
    let main = (Tag::FUNCTION, thing(function::FIRST));
    let compiled = HandmadeChunk::new(0, 1, 1_000_000)
        .put(Kind::JIT_COMPILATION_STARTED, &[main])
        .put(Kind::JIT_COMPILATION_FINISHED, &[main, (Tag::RESULT, 0_u64.into())]);
    let thrown = HandmadeChunk::new(0, 1, 2_000_000)
        .put(Kind::NAME, &[(Tag::CLASS, thing(1)), (Tag::NAME, "App.\"Bad\"".into())])
        .put(Kind::EXCEPTION_THROWN, &[(Tag::OBJECT, 9_u64.into()), (Tag::CLASS, thing(1))]);
    let collected = HandmadeChunk::new(0, 1, 3_000_000)
        .put(Kind::RUNTIME_SUSPEND_STARTED, &[(Tag::REASON_CODE, 1_u64.into())])
        .put(Kind::GC_STARTED, &[(Tag::NUMBER, 1_u64.into()), (Tag::GENERATION, 2_u64.into())])
        .put(Kind::GC_ENDED, &[(Tag::NUMBER, 1_u64.into()), (Tag::GENERATION, 2_u64.into())])
        .put(Kind::RUNTIME_RESUME_FINISHED, &[]);
    for (instrument, chunk) in [("events", compiled), ("exceptions", thrown), ("gc", collected)] {
        r.processes[0].events.push(EventArena { instrument: instrument.into(), chunks: vec![chunk.finish()] });
    }
    r
}

/// Looks at everything that readers of trace events rely on; the events but for names, by track.
fn trace_tracks(document: &Value) -> BTreeMap<String, Vec<Value>> {
    let (mut names, mut tracks) = (BTreeMap::new(), BTreeMap::<(u64, u64), Vec<Value>>::new());
    for event in list(document, "traceEvents") {
        let track = (number(&event["pid"]), number(&event["tid"]));
        assert!(track.1 < 1 << 31);
        if event["ph"] != "M" {
            assert!(event["ts"].is_number() && event["cat"].is_string() && event["name"].is_string(), "{event}");
            tracks.entry(track).or_default().push(event.clone());
        } else if event["name"] == "thread_name" {
            names.insert(track, event["args"]["name"].as_str().expect("a name").to_owned());
        }
    }
    for events in tracks.values() {
        let (mut open, mut last, mut ends) = (0, 0.0, Vec::<f64>::new());
        for event in events {
            let at = event["ts"].as_f64().expect("a time");
            match event["ph"].as_str().expect("a phase") {
                "B" => open += 1,
                "E" => open -= 1,
                "X" => {
                    let end = at + event["dur"].as_f64().expect("a duration");
                    ends.retain(|open| *open > at + 1e-6);
                    assert!(ends.iter().all(|open| *open >= end - 1e-6), "spans nest: {event}");
                    ends.push(end);
                }
                "i" => assert_eq!(event["s"], "t"),
                other => panic!("{other} is no phase"),
            }
            let is_in_order = at >= last || event["ph"] == "i";
            assert!(open >= 0 && is_in_order, "{event}");
            last = if event["ph"] == "i" { last } else { at };
        }
        assert_eq!(open, 0, "all that begins ends");
    }
    tracks.into_iter().map(|(track, events)| (names[&track].clone(), events)).collect()
}

#[test]
fn chrome_has_a_track_for_each_thread_and_for_what_overlaps() {
    let tracks = trace_tracks(&plain(&everything(), "chrome"));
    let of = |name: &str| tracks.iter().find(|(known, _)| known.starts_with(name)).map(|(_, events)| events.as_slice());
    let names = |events: &[Value]| -> Vec<String> {
        events.iter().map(|event| event["name"].as_str().expect("a name").to_owned()).collect()
    };
    let of_mailer = of("mailer").expect("the thread");
    assert_eq!(names(of_mailer), ["sleeping", "running"], "states that follow each other are one");
    assert_eq!(names(of("garbage collections").expect("a track")), ["generation 2"]);
    let main = of("main (thread 1, OS").expect("the thread");
    assert_eq!((main[0]["ph"].as_str(), main[0]["name"].as_str()), (Some("i"), Some("App.\"Bad\"")));
    let runtime = tracks.iter().find(|(name, _)| name.ends_with(": the runtime")).expect("a track").1;
    assert_eq!(names(runtime), ["JITCompilation App::Pay"]);
}

#[test]
fn chrome_has_every_call_with_its_begin_and_its_end() {
    let tracks = trace_tracks(&plain(&calls(), "chrome"));
    let phases = |name: &str| -> String {
        let events = tracks.iter().find(|(known, _)| known.starts_with(name)).expect("a track").1;
        events.iter().map(|event| event["ph"].as_str().expect("a phase")).collect()
    };
    assert_eq!((phases("main"), phases("user")), ("BBEBEE".to_owned(), "BEBE".to_owned()));
    // Samples alongside calls have a track of their own.
    let mut both = everything();
    let calls = calls().processes.remove(0);
    both.processes[0].events.extend(calls.events);
    both.processes[0].ticks = calls.ticks;
    let tracks = trace_tracks(&plain(&both, "chrome"));
    assert!(tracks.keys().any(|name| name.ends_with(": samples")), "{:?}", tracks.keys());
}

/// The threads of a profile that is as it must be, by name.
fn firefox_threads(document: &Value) -> BTreeMap<String, Value> {
    assert_eq!(firefox::check(document), Ok(()));
    let named = |thread: &Value| (thread["name"].as_str().expect("a name").to_owned(), thread.clone());
    list(document, "threads").iter().map(named).collect()
}

/// Two awaits of a method that ended on one thread, the longer one last.
fn awaited() -> Recording {
    let mut r = recording("thread 1 main\n  Main 1 1\n");
    let mut stacks = StacksBuilder::default();
    let stack = u64::from(stacks.stack(&[StackFrame::method(1, Some(7))], false));
    let ended = |chunk: HandmadeChunk, ns: u64| {
        chunk.put(Kind::AWAIT_ENDED, &[(Tag::STACK_NODE, stack.into()), (Tag::DURATION, ns.into())])
    };
    let chunk = ended(ended(HandmadeChunk::new(0, 1, 40_000), 10_000).after(5_000), 30_000);
    r.processes[0].stacks = stacks.finish().into();
    r.processes[0].events = vec![EventArena { instrument: "awaits".into(), chunks: vec![chunk.finish()] }];
    r
}

#[test]
fn firefox_has_awaits_that_were_side_by_side_in_the_order_in_which_they_began() {
    let document = plain(&awaited(), "firefox");
    let threads = firefox_threads(&document);
    let samples = &threads.values().next().expect("a thread")["samples"];
    let weights: Vec<u64> = list(samples, "weight").iter().map(number).collect();
    assert_eq!(weights, [30_000, 10_000], "{samples}");
}

#[test]
fn firefox_has_threads_with_their_samples_and_markers() {
    let mut r = everything();
    r.processes[0].command = vec!["Shop".to_owned()];
    let document = plain(&r, "firefox");
    let threads = firefox_threads(&document);
    assert_eq!(
        threads.keys().map(String::as_str).collect::<Vec<_>>(),
        ["Shop", "mailer"],
        "the first thread has the name of its process"
    );
    let path = |thread: &Value, stack: &Value| -> String {
        let at = |table: &str, column: &str, row: &Value| thread[table][column][number(row) as usize].clone();
        let mut names = Vec::new();
        let mut next = stack.clone();
        while next.is_u64() {
            let name = at("funcTable", "name", &at("frameTable", "func", &at("stackTable", "frame", &next)));
            names.push(thread["stringArray"][number(&name) as usize].as_str().expect("a name").to_owned());
            next = at("stackTable", "prefix", &next);
        }
        names.reverse();
        names.join(" > ")
    };
    let main = &threads["Shop"];
    let paths: Vec<String> = list(&main["samples"], "stack").iter().map(|stack| path(main, stack)).collect();
    let deep = "App::Main  [App] > App::Pay  [App]";
    assert_eq!(paths, [deep, "App::Main  [App]", deep]);
    let markers = |thread: &Value| -> Vec<String> {
        let name = |name: &Value| thread["stringArray"][number(name) as usize].as_str().expect("a name").to_owned();
        list(&thread["markers"], "name").iter().map(name).collect()
    };
    assert_eq!(markers(main), ["GC generation 2", "App.\"Bad\""]);
    // By the clock: what lasts has a sample at its end.
    let asked = Query { metric: Some(&clrscope_analysis::WALL), ..Query::default() };
    let threads = firefox_threads(&export(&everything(), "firefox", asked).expect("written"));
    assert_eq!(list(&threads["mailer"]["samples"], "weight").iter().map(number).sum::<u64>(), 3);
}
