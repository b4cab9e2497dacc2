//! What the runtime tells, as recorded, against what programs say of themselves.

mod support;

use clrscope_analysis::{EventQuery, EventRow, Events, Query, events};
use clrscope_recording::events::{Group, Kind};
use clrscope_recording::model::Recording;
use clrscope_recording::request::Pattern;
use clrscope_testkit::{Expectations, Runtime, each_runtime, fixture, run};
use support::{Run, record_with};

/// Runs a fixture and checks that nobody could tell that it was watched.
fn watched(runtime: &Runtime, name: &str, request: &str) -> Run {
    watched_with(runtime, name, request, &[])
}

fn watched_with(runtime: &Runtime, name: &str, request: &str, arguments: &[&str]) -> Run {
    let mut command = runtime.command(&fixture(name));
    command.args(arguments);
    let bare = run(command).expect_success();
    let seen = record_with(runtime, name, request, arguments);
    let place = format!("{name} on {} with {request}", runtime.version);
    assert_eq!(seen.finished.stdout_text(), bare.stdout_text(), "{place}: stdout");
    assert_eq!(seen.finished.stderr_text(), bare.stderr_text(), "{place}: stderr");
    assert_eq!(seen.recording.problems, [], "{place}");
    let process = &seen.recording.processes[0];
    assert!(process.complete, "{place}: the end was not seen");
    let lost: Vec<_> = process.losses.iter().filter(|loss| !loss.reason.is_benign()).collect();
    assert!(lost.is_empty(), "{place}: {lost:?}");
    seen
}

fn all(recording: &Recording) -> Events<'_> {
    events(recording, &EventQuery::default()).expect("events")
}

/// The first name of what an event is about.
fn about<'a>(found: &Events<'a>, row: &EventRow<'a>) -> &'a str {
    found.subjects(row).next().and_then(|subject| subject.name).unwrap_or("")
}

/// How many events of a kind are about functions of this name.
fn count(recording: &Recording, kind: Kind, function: &str) -> u64 {
    let pattern = Pattern::parse(function).expect("a pattern");
    let query = Query { functions: vec![pattern], ..Query::default() };
    let found = events(recording, &EventQuery { query, ..EventQuery::default() }).expect("events");
    found.rows.iter().filter(|row| row.kind() == kind).count() as u64
}

#[test]
fn loads_and_compilations_are_paired_and_named() {
    each_runtime(|runtime| {
        let seen = watched(runtime, "Exceptions", "events");
        let found = all(&seen.recording);
        let place = &runtime.version;
        for (kind, name) in [
            (Kind::ASSEMBLY_LOAD_STARTED, "Exceptions"),
            (Kind::ASSEMBLY_LOAD_FINISHED, "Exceptions"),
            (Kind::MODULE_LOAD_STARTED, "Exceptions.dll"),
            (Kind::MODULE_ATTACHED_TO_ASSEMBLY, "Exceptions.dll"),
            (Kind::CLASS_LOAD_FINISHED, "Exceptions.Program"),
            (Kind::JIT_COMPILATION_STARTED, "Exceptions.Program.Main()"),
            (Kind::JIT_COMPILATION_FINISHED, "Exceptions.Program.Main()"),
        ] {
            let named = found.rows.iter().filter(|row| row.kind() == kind && about(&found, row) == name).count();
            assert_eq!(named, 1, "{:?} of {name} on {place}", kind.name());
        }
        for row in &found.rows {
            if matches!(row.kind(), Kind::JIT_COMPILATION_FINISHED | Kind::ASSEMBLY_LOAD_FINISHED) {
                assert!(row.duration_ns.is_some_and(|ns| ns > 0), "{} on {place} without a begin", about(&found, row));
                assert_eq!(row.result().as_deref(), Some("S_OK"));
            }
        }
        let unnamed = found.rows.iter().flat_map(|row| found.subjects(row)).filter(|s| s.name.is_none()).count();
        assert!(unnamed * 100 < found.rows.len(), "{unnamed} of {} without a name on {place}", found.rows.len());
        let last = found.rows.iter().find(|row| row.kind() == Kind::SHUTDOWN).expect("the end");
        assert_eq!(last.depth, 0, "something is left open on {place}");
    });
}

#[test]
fn exceptions_are_told_as_often_as_the_program_says() {
    each_runtime(|runtime| {
        let seen = watched(runtime, "Exceptions", "events:exceptions");
        let truth = Expectations::parse(&seen.finished.stdout_text());
        let calls = |name: &str| truth.calls.iter().find(|(known, _)| *known == name).map_or(0, |(_, count)| *count);
        let rounds = calls("Exceptions.Program+Simple::Start");
        assert!(rounds > 0);
        let told = |kind, function: &str| count(&seen.recording, kind, function);
        let place = &runtime.version;
        assert_eq!(told(Kind::EXCEPTION_CATCHER_ENTER, "Exceptions.Program+Simple::Start"), rounds, "{place}");
        assert_eq!(told(Kind::EXCEPTION_UNWIND_FINALLY_ENTER, "Exceptions.Program+Simple::Through"), rounds, "{place}");
        let refused = calls("Exceptions.Program+Filters::Refuse");
        assert_eq!(told(Kind::EXCEPTION_SEARCH_FILTER_ENTER, "Exceptions.Program+Filters::Middle"), refused, "{place}");
        let found = all(&seen.recording);
        assert!(found.rows.iter().all(|row| row.group() == "exceptions"), "only this group on {place}");
    });
}

#[test]
fn the_order_of_exception_callbacks_is_the_same_up_to_what_is_known() {
    // Thrown two frames down, through a finally block: the same on every runtime.
    const SIMPLE: [&str; 17] = [
        "Thrown System.InvalidOperationException",
        "SearchFunctionEnter Exceptions.Program.Simple.Throw(int)",
        "SearchFunctionLeave ",
        "SearchFunctionEnter Exceptions.Program.Simple.Through(int)",
        "SearchFunctionLeave ",
        "SearchFunctionEnter Exceptions.Program.Simple.Start(int)",
        "SearchCatcherFound Exceptions.Program.Simple.Start(int)",
        "SearchFunctionLeave ",
        "UnwindFunctionEnter Exceptions.Program.Simple.Throw(int)",
        "UnwindFunctionLeave ",
        "UnwindFunctionEnter Exceptions.Program.Simple.Through(int)",
        "UnwindFinallyEnter Exceptions.Program.Simple.Through(int)",
        "UnwindFinallyLeave ",
        "UnwindFunctionLeave ",
        "UnwindFunctionEnter Exceptions.Program.Simple.Start(int)",
        "CatcherEnter Exceptions.Program.Simple.Start(int)",
        "CatcherLeave ",
    ];
    // An exception leaves a filter: 8 ends the search in the function of the filter, later ones unwind it.
    const OUT_OF_A_FILTER_8: [&str; 6] = [
        "SearchFunctionEnter Exceptions.Program.Nested.FromFilter(int)",
        "SearchFunctionLeave ",
        "UnwindFunctionEnter Exceptions.Program.Nested.ThrowOther()",
        "UnwindFunctionLeave ",
        "UnwindFunctionEnter Exceptions.Program.Nested.BadFilter()",
        "UnwindFunctionLeave ",
    ];
    const OUT_OF_A_FILTER_LATER: [&str; 6] = [
        "SearchFunctionEnter Exceptions.Program.Nested.FromFilter(int)",
        "UnwindFunctionLeave ",
        "UnwindFunctionEnter Exceptions.Program.Nested.ThrowOther()",
        "UnwindFunctionLeave ",
        "UnwindFunctionEnter Exceptions.Program.Nested.BadFilter()",
        "UnwindFunctionLeave ",
    ];
    each_runtime(|runtime| {
        let seen = watched(runtime, "Exceptions", "events:exceptions");
        let found = all(&seen.recording);
        let line = |row: &EventRow<'_>| {
            let event = row.event().trim_start_matches("Exception");
            format!("{event} {}", found.subjects(row).next().and_then(|s| s.name).unwrap_or(""))
        };
        let told: Vec<String> = found.rows.iter().map(line).collect();
        let place = &runtime.version;
        assert_eq!(told[..SIMPLE.len()], SIMPLE, "{place}");
        let from_filter = told.iter().position(|l| l == "SearchFunctionEnter Exceptions.Program.Nested.BadFilter()");
        let after = from_filter.expect("the filter that throws") + 2;
        let expected = if runtime.version.major == 8 { OUT_OF_A_FILTER_8 } else { OUT_OF_A_FILTER_LATER };
        assert_eq!(told[after..after + expected.len()], expected, "{place}");
    });
}

#[test]
fn names_of_threads_stand_with_their_events() {
    each_runtime(|runtime| {
        let seen = watched(runtime, "Threads", "events:threads");
        let found = all(&seen.recording);
        let named = found.rows.iter().filter(|row| row.kind() == Kind::THREAD_NAME_CHANGED);
        for row in named {
            let subject = found.subjects(row).next().expect("a thread");
            assert_eq!(subject.name, row.given_name(), "{}", runtime.version);
        }
        let created = found.rows.iter().filter(|row| row.kind() == Kind::THREAD_CREATED).count();
        assert!(created >= 8, "{created} threads on {}", runtime.version);
    });
}

#[test]
fn collections_tell_how_many_objects_there_are_of_each_class() {
    each_runtime(|runtime| {
        let seen = watched_with(runtime, "Loading", "events:gc,objects,suspend,loads", &["contexts"]);
        let found = all(&seen.recording);
        let place = &runtime.version;
        let of = |kind: Kind| found.rows.iter().filter(move |row| row.kind() == kind);
        assert!(of(Kind::GARBAGE_COLLECTION_STARTED).count() > 0, "no collection on {place}");
        for row in of(Kind::GARBAGE_COLLECTION_FINISHED) {
            assert!(row.duration_ns.is_some(), "a collection without a begin on {place}");
        }
        assert!(of(Kind::GARBAGE_COLLECTION_STARTED).any(|row| row.reason() == Some("induced")), "{place}");
        assert!(of(Kind::RUNTIME_SUSPEND_STARTED).any(|row| row.reason() == Some("GC")), "{place}");
        let strings = of(Kind::LIVE_OBJECTS_BY_CLASS).filter(|row| about(&found, row) == "string");
        let counts: Vec<_> = strings.flat_map(EventRow::details).filter(|(key, _)| *key == "count").collect();
        assert!(counts.iter().all(|(_, count)| *count > 10) && !counts.is_empty(), "{counts:?} on {place}");
        // Plugins come and go in a loop: each has its own name although the runtime uses identifiers again.
        let unloaded: Vec<_> = of(Kind::ASSEMBLY_UNLOAD_FINISHED).map(|row| about(&found, row)).collect();
        assert!(!unloaded.is_empty() && unloaded.iter().all(|name| *name == "Plugin"), "{unloaded:?} on {place}");
    });
}

#[test]
fn calls_of_native_code_begin_and_end() {
    each_runtime(|runtime| {
        let seen = watched(runtime, "Native", "events:transitions");
        let found = all(&seen.recording);
        let of_program = |row: &&EventRow<'_>| about(&found, row).starts_with("Native.");
        let told: Vec<_> = found.rows.iter().filter(of_program).collect();
        assert!(!told.is_empty(), "{}", runtime.version);
        let unpaired = told.iter().filter(|row| row.duration_ns.is_none()).count();
        assert_eq!(unpaired, 0, "of {} on {}", told.len(), runtime.version);
    });
}

#[test]
fn filters_choose_functions_and_remarks_say_what_can_not_come() {
    each_runtime(|runtime| {
        let seen = watched(runtime, "Exceptions", "events:jit,com;include=[Exceptions]*");
        let found = all(&seen.recording);
        let jit = EventQuery { groups: vec![Group::Jit], ..EventQuery::default() };
        assert_eq!(events(&seen.recording, &jit).expect("events").rows.len(), found.rows.len());
        let own = |row: &EventRow<'_>| ["Exceptions.", "Fixture."].iter().any(|n| about(&found, row).starts_with(n));
        let foreign = found.rows.iter().find(|row| !own(row) && row.event().starts_with("JIT"));
        assert!(foreign.is_none(), "{:?} on {}", foreign.map(|row| about(&found, row)), runtime.version);
        let facts = &seen.recording.processes[0].facts;
        assert!(facts.iter().any(|fact| fact.text.contains("group com")), "{facts:?}");
    });
}

#[test]
fn all_groups_beside_all_instruments_change_nothing() {
    each_runtime(|runtime| {
        for name in ["Exceptions", "Threads", "Dynamic", "Native"] {
            let seen = watched(runtime, name, "events:all,allocations=on;exceptions;calls");
            let found = all(&seen.recording);
            let of = |kind: Kind| found.rows.iter().filter(|row| row.kind() == kind).count();
            assert!(of(Kind::OBJECT_ALLOCATED) > 100, "{name} on {}", runtime.version);
            assert!(seen.recording.processes[0].threads.iter().any(|thread| thread.tree.load().len() > 1));
        }
    });
}
