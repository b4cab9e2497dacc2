//! Who awaits a method that throws, against programs whose roots throw exceptions of their own
//! classes.

use std::collections::BTreeMap;
use std::sync::Arc;

use clrscope_analysis::{ExceptionLog, ExceptionQuery, make_paths_logical};
use clrscope_contract::request::AGENT_CLSID;
use clrscope_recording::layout::instrument;
use clrscope_recording::model::{Allocation, RemarkKind, StackFrame};
use clrscope_testkit::{
    ASYNC_SHAPES, BurningSamples, RootTallies, Runtime, attempted, each_runtime, fixture, hooked_agent, load_profiler,
    run, scratch, throws_by_class,
};

use crate::support::{Run, record_with, under_agent};

/// Throws of the program `Roots` by shape, and what it says itself.
fn throws(runtime: &Runtime, arguments: [&str; 2]) -> (RootTallies, BTreeMap<String, u64>) {
    let run = record_with(runtime, "Roots", "exceptions", &arguments);
    let said = throws_by_class(&run.finished.stdout_text());
    let mut recording = run.recording;
    make_paths_logical(&mut recording);
    let log = ExceptionLog::open(&recording, &ExceptionQuery::default()).expect("exceptions");
    let mut tallies = RootTallies::default();
    for exception in log.rows().0 {
        let names: Vec<&str> = exception.stack.iter().map(|frame| frame.function.name()).collect();
        tallies.add(exception.type_name, &names, 1);
    }
    (tallies, said)
}

/// While memory is collected and compacted all the time, each throw is below the root that threw
/// it, on all but a few stacks that were seen before anybody awaited them, and none is below
/// another root.
#[test]
fn throws_after_awaits_are_those_of_who_awaits_them() {
    each_runtime(|runtime| {
        let (throws, said) = throws(runtime, ["200", "1000"]);
        check_roots(runtime, &throws, &said);
        let of_void = &throws.0["OfVoid"].paths;
        assert_eq!(of_void.keys().collect::<Vec<_>>(), ["[not awaited] Void"], "{}", runtime.version);
    });
}

/// Each object is below its root and below no other, except for a few at moments when nothing
/// awaited them yet.
fn check_roots(runtime: &Runtime, found: &RootTallies, said: &BTreeMap<String, u64>) {
    for shape in ASYNC_SHAPES {
        let (tally, all) = (&found.0[shape.class], said[shape.class]);
        let place = format!("{} {shape:?}: {tally:#?}", runtime.version);
        assert_eq!((tally.all(), tally.wrong), (all, 0), "{place}");
        // At most 0.5 % before who awaits them has come to its await.
        assert!(!shape.is_known || (tally.unknown == 0 && tally.early * 200 <= all), "{place}");
    }
}

/// Samples of `Burning` under an engine.
fn burning(runtime: &Runtime, engine: &str, args: &[&str]) -> BurningSamples {
    burning_of(record_with(runtime, "Burning", &format!("cpu:engine={engine}"), args))
}

fn burning_of(run: Run) -> BurningSamples {
    let mut recording = run.recording;
    make_paths_logical(&mut recording);
    BurningSamples::read(&recording.processes[0], &run.finished.stdout_text())
}

/// The share of each root is what the program clocked, within a point, and next to no sample lacks
/// its root.
#[test]
fn samples_after_awaits_are_those_of_who_awaits_them() {
    each_runtime(|runtime| {
        for engine in ["perf", "timer"] {
            let found = burning(runtime, engine, &["10", "40"]);
            let place = format!("{} {engine}: {found:?}", runtime.version);
            assert!(found.wrong.is_empty(), "{place}");
            assert!(found.percent_right() >= 98.0, "{place}");
            let (all, clocked) = (found.right.iter().sum::<u64>() as f64, found.clocked.iter().sum::<f64>());
            for (right, ns) in found.right.iter().zip(&found.clocked) {
                // A sample more or less each time that the root works, which is ten times.
                let interval = 100.0 * 10.0 / all;
                let (share, true_share) = (100.0 * *right as f64 / all, 100.0 * ns / clocked);
                assert!((share - true_share).abs() <= 1.0 + interval, "{share} of {true_share} %, {place}");
            }
        }
    });
}

/// The chain must not be another one's: with a hundred thousand awaits and a collection each
/// millisecond, and with work of some milliseconds between collections, compacting half of the
/// time. Of perf events it is looked at later than the sample, so next to none of the short work is
/// known; a timer's signal has it copied at once.
#[test]
fn no_sample_has_awaiters_of_another_method_while_objects_move() {
    each_runtime(|runtime| {
        for engine in ["perf", "timer"] {
            let [short, long] = [["100", "2", "rapid", "1"], ["1", "2000", "rapid", "30"]];
            let short = burning(runtime, engine, &short);
            let long = burning(runtime, engine, &long);
            let place = format!("{} {engine}: {short:?} {long:?}", runtime.version);
            assert!(short.wrong.is_empty() && long.wrong.is_empty(), "{place}");
            let is_at_once = engine == "timer";
            // Timers go off at the kernel's ticks, a fraction as often.
            let least = if is_at_once { 15 } else { 50 };
            assert!(short.unknown.iter().chain(&short.right).sum::<u64>() > least, "{place}");
            assert!(long.right.iter().sum::<u64>() > 10, "{place}");
            assert!(!is_at_once || (short.percent_right() > 60.0 && long.percent_right() > 80.0), "{place}");
        }
    });
}

/// A signal's handler copies who awaits a method at once: that is known of work that lasts less
/// than a millisecond.
#[test]
fn short_work_has_its_awaiters_where_samples_are_taken_by_signals() {
    each_runtime(|runtime| {
        for args in [["1", "200", "rapid"], ["10", "20", "rapid"], ["100", "2", "rapid"]] {
            // On a busy machine timers go off too seldom for a share.
            let outcome = attempted(|| {
                let found = burning(runtime, "timer", &args);
                let place = format!("{} {args:?}: {found:?}", runtime.version);
                assert!(found.wrong.is_empty(), "{place}");
                if found.percent_right() > 80.0 { Ok(()) } else { Err(place) }
            });
            assert_eq!(outcome, Ok(()));
        }
    });
}

/// What is sampled goes: classes of its boxes must not be asked about any more.
#[test]
fn awaiters_are_looked_up_while_their_classes_unload() {
    each_runtime(|runtime| {
        for engine in ["perf", "timer"] {
            let path = fixture("Burning");
            let args = [&*path.to_string_lossy(), "20", "1", "400", "rapid"];
            let run = record_with(runtime, "Unloading", &format!("cpu:rate=5000,engine={engine}"), &args);
            let printed = run.finished.stdout_text();
            let found = burning_of(run);
            let place = format!("{} {engine}: {found:?} {printed}", runtime.version);
            let gone = printed.lines().find_map(|line| line.strip_prefix("GONE ")?.parse::<u32>().ok());
            // When a context goes is for the runtime to say.
            assert!(gone.is_some_and(|gone| gone > 0), "{place}");
            assert!(found.wrong.is_empty(), "{place}");
            assert!(found.unknown.iter().chain(&found.right).sum::<u64>() > 100, "{place}");
        }
    });
}

/// Objects of each class in a run of `Roots`, by outermost frame and root of their logical stacks.
fn allocated(runtime: &Runtime, arguments: [&str; 2]) -> (RootTallies, BTreeMap<String, u64>) {
    let run = record_with(runtime, "Roots", "alloc:exact", &arguments);
    let said = throws_by_class(&run.finished.stdout_text());
    let mut recording = run.recording;
    make_paths_logical(&mut recording);
    let process = &recording.processes[0];
    let name = |frame| match frame {
        StackFrame::Method { function, .. } => Some(process.functions.get(function as usize)?.name.as_str()),
        _ => None,
    };
    let mut objects = RootTallies::default();
    let chunks = process.arenas(instrument::ALLOC).flat_map(|arena| &arena.chunks);
    for record in chunks.flat_map(|chunk| Allocation::all(&chunk.bytes.load()).collect::<Vec<_>>()) {
        let Some(class) = process.types.get(record.object_type as usize) else { continue };
        let names: Vec<&str> = process.stacks.frames(record.stack).filter_map(name).collect();
        objects.add(&class.name, &names, record.objects);
    }
    (objects, said)
}

#[test]
fn objects_allocated_after_awaits_are_those_of_who_awaits_them() {
    each_runtime(|runtime| {
        let (objects, said) = allocated(runtime, ["200", "1000"]);
        check_roots(runtime, &objects, &said);
    });
}

/// A field that has another name is not looked for elsewhere: paths stay as threads had them, and
/// the recording says why.
#[test]
fn paths_are_those_of_threads_where_the_runtime_names_a_field_otherwise() {
    each_runtime(|runtime| {
        for field in ["m_continuationObject", "_target"] {
            let folder = scratch();
            let out = folder.path().join("run.clrs.d");
            let mut command = runtime.command(&fixture("Roots"));
            command.args(["20", "1000"]);
            under_agent(&mut command, "exceptions", &out);
            load_profiler(&mut command, hooked_agent(), AGENT_CLSID);
            command.env("CLRSCOPE_TEST_RENAMED", field);
            run(command).expect_success();
            let mut recording = clrscope_recording::open(&out).expect("a recording");
            let remarks = &recording.processes[0].remarks;
            let remark = remarks.iter().find(|remark| remark.kind == RemarkKind::NoAwaiters);
            let text = remark.map(|remark| remark.text.as_str()).unwrap_or_default();
            assert!(text.contains(&format!("has no field {field}")), "{}: {remarks:?}", runtime.version);
            let before = Arc::clone(&recording.processes[0].stacks);
            make_paths_logical(&mut recording);
            assert!(recording.physical.is_none(), "{}", runtime.version);
            assert!(Arc::ptr_eq(&before, &recording.processes[0].stacks), "{}", runtime.version);
        }
    });
}
