//! Events of the runtime as recorded, against what programs say of themselves.

use crate::support::{Run, record_with};
use clrscope_analysis::{EventLog, EventQuery, EventRow, Query};
use clrscope_contract::request::Pattern;
use clrscope_recording::events::{Group, Kind};
use clrscope_recording::model::Recording;
use clrscope_testkit::{Expectations, Runtime, each_runtime, fixture, run};

/// Runs a fixture and checks that it ran as if it was not watched.
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

fn all(recording: &Recording) -> EventLog<'_> {
    EventLog::open(recording, &EventQuery::default()).expect("events")
}

/// The first name of what an event is about.
fn about<'a>(row: &EventRow<'a>) -> &'a str {
    row.subjects().next().and_then(|subject| subject.name).unwrap_or("")
}

/// Number of events of a kind that are about functions of this name.
fn count(recording: &Recording, kind: Kind, function: &str) -> u64 {
    let pattern = Pattern::parse(function).expect("a pattern");
    let query = Query { functions: vec![pattern], ..Query::default() };
    let log = EventLog::open(recording, &EventQuery { query, ..EventQuery::default() }).expect("events");
    log.rows().0.iter().filter(|row| row.kind() == kind).count() as u64
}

#[test]
fn loads_and_compilations_are_paired_and_named() {
    each_runtime(|runtime| {
        let seen = watched(runtime, "Exceptions", "events");
        let log = all(&seen.recording);
        let (found, _) = log.rows();
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
            let named = found.iter().filter(|row| row.kind() == kind && about(row) == name).count();
            assert_eq!(named, 1, "{:?} of {name} on {place}", kind.name());
        }
        for row in &found {
            if matches!(row.kind(), Kind::JIT_COMPILATION_FINISHED | Kind::ASSEMBLY_LOAD_FINISHED) {
                assert!(row.duration_ns.is_some_and(|ns| ns > 0), "{} on {place} without a begin", about(row));
                assert_eq!(row.result().as_deref(), Some("S_OK"));
            }
        }
        let unnamed = found.iter().flat_map(|row| row.subjects()).filter(|s| s.name.is_none()).count();
        assert!(unnamed * 100 < found.len(), "{unnamed} of {} without a name on {place}", found.len());
        let first = (found[0].kind(), found[0].thread.map(|thread| thread.id));
        assert_eq!(first, (Kind::INITIALIZE, Some(1)), "on {place}");
        let last = found.iter().find(|row| row.kind() == Kind::SHUTDOWN).expect("the end");
        assert_eq!(last.depth, 0, "something is left open on {place}");
    });
}

#[test]
fn searches_for_precompiled_code_end_or_say_that_it_was_rejected() {
    each_runtime(|runtime| {
        let seen = watched(runtime, "Exceptions", "events:jit");
        let log = all(&seen.recording);
        let (found, _) = log.rows();
        let of = |kind: Kind| found.iter().filter(move |row| row.kind() == kind);
        // Code for vectors is compiled for the processor that is there: whether some is rejected
        // depends on both.
        let mut open = of(Kind::JIT_CACHED_FUNCTION_SEARCH_STARTED).filter(|row| row.duration_ns.is_none());
        assert!(open.all(|row| row.reason() == Some("the precompiled code was rejected")), "{}", runtime.version);
        assert!(of(Kind::JIT_CACHED_FUNCTION_SEARCH_FINISHED).count() > 0, "{}", runtime.version);
        assert!(of(Kind::JIT_CACHED_FUNCTION_SEARCH_FINISHED).all(|row| row.duration_ns.is_some()));
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
        let events_about = |kind, function: &str| count(&seen.recording, kind, function);
        let place = &runtime.version;
        assert_eq!(events_about(Kind::EXCEPTION_CATCHER_ENTER, "Exceptions.Program+Simple::Start"), rounds, "{place}");
        assert_eq!(
            events_about(Kind::EXCEPTION_UNWIND_FINALLY_ENTER, "Exceptions.Program+Simple::Through"),
            rounds,
            "{place}"
        );
        let refused = calls("Exceptions.Program+Filters::Refuse");
        assert_eq!(
            events_about(Kind::EXCEPTION_SEARCH_FILTER_ENTER, "Exceptions.Program+Filters::Middle"),
            refused,
            "{place}"
        );
        let log = all(&seen.recording);
        let (found, _) = log.rows();
        assert!(found.iter().all(|row| row.group() == "exceptions"), "only this group on {place}");
    });
}

/// Short names of callbacks about exceptions in [`in_short`].
const SHORT: [(&str, &str); 14] = [
    ("ExceptionThrown", "thrown"),
    ("ExceptionSearchFunctionEnter", "search"),
    ("ExceptionSearchFunctionLeave", "searched"),
    ("ExceptionSearchFilterEnter", "filter"),
    ("ExceptionSearchFilterLeave", "filtered"),
    ("ExceptionSearchCatcherFound", "found"),
    ("ExceptionUnwindFunctionEnter", "unwind"),
    ("ExceptionUnwindFunctionLeave", "unwound"),
    ("ExceptionUnwindFinallyEnter", "finally"),
    ("ExceptionUnwindFinallyLeave", "finished"),
    ("ExceptionCatcherEnter", "catch"),
    ("ExceptionCatcherLeave", "caught"),
    ("ExceptionCLRCatcherFound", "clr-found"),
    ("ExceptionCLRCatcherExecute", "clr-catch"),
];

/// The callbacks of a thread in order, each with the last part of the name of what it is about.
fn in_short(recording: &Recording, wanted: impl Fn(&EventRow<'_>) -> bool) -> Vec<String> {
    let log = all(recording);
    let (found, _) = log.rows();
    let short = |row: &EventRow<'_>| {
        let (_, event) = SHORT.iter().find(|(event, _)| *event == row.event()).expect("a callback about exceptions");
        let name = row.subjects().next().and_then(|subject| subject.name).unwrap_or("");
        let name = name.split('(').next().and_then(|name| name.rsplit('.').next()).unwrap_or("");
        if name.is_empty() { (*event).to_owned() } else { format!("{event}:{name}") }
    };
    found.iter().filter(|row| wanted(row)).map(short).collect()
}

fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

/// The first round of the fixture `Exceptions`, scenario by scenario, up to the exception that
/// leaves a filter.
const BEFORE_BAD_FILTER: &str = "
    thrown:InvalidOperationException search:Throw searched search:Through searched search:Start found:Start searched
    unwind:Throw unwound unwind:Through finally:Through finished unwound unwind:Start catch:Start caught

    thrown:ArgumentException search:Throw searched search:Inner searched
    search:Middle filter:Middle filtered searched search:Start filter:Start filtered found:Start searched
    unwind:Throw unwound unwind:Inner finally:Inner finished unwound unwind:Middle unwound
    unwind:Start catch:Start caught

    thrown:InvalidOperationException search:Throw searched search:FromCatch found:FromCatch searched
    unwind:Throw unwound unwind:FromCatch catch:FromCatch
        thrown:NotSupportedException search:ThrowOther searched search:FromCatch searched search:Start found:Start searched
        unwind:ThrowOther unwound unwind:FromCatch unwound unwind:Start catch:Start caught

    thrown:InvalidOperationException search:Throw searched search:FromFinally searched
    search:Start filter:Start filtered found:Start searched unwind:Throw unwound unwind:FromFinally finally:FromFinally
        thrown:NotSupportedException search:ThrowOther searched search:FromFinally searched
        search:Start filter:Start filtered found:Start searched
        unwind:ThrowOther unwound unwind:FromFinally unwound unwind:Start catch:Start caught

    thrown:InvalidOperationException search:Throw searched search:FromFilter filter:FromFilter
        thrown:NotSupportedException search:ThrowOther searched search:BadFilter searched search:FromFilter";

/// .NET 8 ends the search in the function of the filter and unwinds the filter; later ones begin to
/// unwind where they searched.
const BAD_FILTER_8: &str = "searched unwind:ThrowOther unwound unwind:BadFilter unwound unwind:FromFilter unwound";
const BAD_FILTER_LATER: &str = "unwound unwind:ThrowOther unwound unwind:BadFilter unwound unwind:FromFilter";

const AFTER_BAD_FILTER: &str = "
    filtered searched search:Start found:Start searched
    unwind:Throw unwound unwind:FromFilter unwound unwind:Start catch:Start caught

    thrown:InvalidOperationException search:Throw searched search:Cleaner searched search:Inside filter:Inside
        thrown:NotSupportedException search:ThrowOther searched search:Careful found:Careful searched
        unwind:ThrowOther unwound unwind:Careful catch:Careful caught
    filtered found:Inside searched unwind:Throw unwound unwind:Cleaner finally:Cleaner
        thrown:NotSupportedException search:ThrowOther searched search:Careful found:Careful searched
        unwind:ThrowOther unwound unwind:Careful catch:Careful caught
    finished unwound unwind:Inside catch:Inside caught

    thrown:FormatException search:ThrowFormatException<char> searched search:Parse searched search:Plain found:Plain searched
    unwind:ThrowFormatException<char> unwound unwind:Parse unwound unwind:Plain catch:Plain
        thrown:FormatException search:Plain searched search:Again found:Again searched
        unwind:Plain finally:Plain finished unwound unwind:Again catch:Again
            thrown:FormatException search:Again searched search:Start found:Start searched
            unwind:Again unwound unwind:Start catch:Start caught";

#[test]
fn exception_callbacks_come_in_the_documented_order() {
    each_runtime(|runtime| {
        let seen = watched(runtime, "Exceptions", "events:exceptions");
        let events = in_short(&seen.recording, |_| true);
        let filter = if runtime.version.major == 8 { BAD_FILTER_8 } else { BAD_FILTER_LATER };
        let expected = [BEFORE_BAD_FILTER, filter, AFTER_BAD_FILTER].map(words).concat();
        assert_eq!(events[..expected.len()], expected, "{}", runtime.version);
    });
}

#[test]
fn exception_callbacks_of_other_threads_and_below_native_code_come_in_order() {
    // The object was thrown and caught on the first thread before.
    const ON_ANOTHER_THREAD: &str = "thrown:TimeoutException search:Throw searched search:Again found:Again searched
        unwind:Throw unwound unwind:Again catch:Again caught";
    // In a callback from native code, which no exception may pass on Unix: it is caught before.
    const BELOW_NATIVE_CODE: &str =
        "thrown:InvalidOperationException search:CompareAndSort found:CompareAndSort searched
        unwind:CompareAndSort catch:CompareAndSort caught";
    each_runtime(|runtime| {
        let seen = watched(runtime, "Throws", "events:exceptions");
        let events = in_short(&seen.recording, |row| row.thread.is_some_and(|thread| thread.name == "rethrower"));
        assert_eq!(events, words(ON_ANOTHER_THREAD), "{}", runtime.version);
        let seen = watched(runtime, "Native", "events:exceptions");
        let events = in_short(&seen.recording, |_| true);
        let one = words(BELOW_NATIVE_CODE);
        assert!(events.len() >= one.len() && events.len() % one.len() == 0, "{} on {}", events.len(), runtime.version);
        assert!(events.chunks(one.len()).all(|throw| throw == one), "{}", runtime.version);
    });
}

#[test]
fn exception_callbacks_of_an_unhandled_one_end_with_the_search_or_the_first_frames() {
    const SEARCH: &str = "thrown:InvalidOperationException search:Throw searched search:End searched search:Main";
    each_runtime(|runtime| {
        let seen = record_with(runtime, "Ends", "events:exceptions", &["unhandled"]);
        let events = in_short(&seen.recording, |_| true);
        // Later ones end no search that finds nothing, and unwind before they give up.
        let end = if runtime.version.major == 8 {
            "searched"
        } else {
            "unwound unwind:Throw unwound unwind:End unwound unwind:Main"
        };
        assert_eq!(events, [words(SEARCH), words(end)].concat(), "{}", runtime.version);
    });
}

#[test]
fn names_of_threads_stand_with_their_events() {
    each_runtime(|runtime| {
        let seen = watched(runtime, "Threads", "events:threads");
        let log = all(&seen.recording);
        let (found, _) = log.rows();
        let named = found.iter().filter(|row| row.kind() == Kind::THREAD_NAME_CHANGED);
        for row in named {
            let subject = row.subjects().next().expect("a thread");
            assert_eq!(subject.name, row.given_name(), "{}", runtime.version);
        }
        let created = found.iter().filter(|row| row.kind() == Kind::THREAD_CREATED).count();
        assert!(created >= 8, "{created} threads on {}", runtime.version);
    });
}

#[test]
fn collections_tell_how_many_objects_there_are_of_each_class() {
    each_runtime(|runtime| {
        let seen = watched_with(runtime, "Loading", "events:gc,objects,suspend,loads", &["contexts"]);
        let log = all(&seen.recording);
        let (found, _) = log.rows();
        let place = &runtime.version;
        let of = |kind: Kind| found.iter().filter(move |row| row.kind() == kind);
        assert!(of(Kind::GARBAGE_COLLECTION_STARTED).count() > 0, "no collection on {place}");
        for row in of(Kind::GARBAGE_COLLECTION_FINISHED) {
            assert!(row.duration_ns.is_some(), "a collection without a begin on {place}");
        }
        assert!(of(Kind::GARBAGE_COLLECTION_STARTED).any(|row| row.reason() == Some("induced")), "{place}");
        assert!(of(Kind::RUNTIME_SUSPEND_STARTED).any(|row| row.reason() == Some("GC")), "{place}");
        let strings = of(Kind::LIVE_OBJECTS_BY_CLASS).filter(|row| about(row) == "string");
        let counts: Vec<_> = strings.flat_map(EventRow::details).filter(|(key, _)| *key == "count").collect();
        assert!(counts.iter().all(|(_, count)| *count > 10) && !counts.is_empty(), "{counts:?} on {place}");
        // Plugins come and go in a loop: each has its own name although the runtime uses
        // identifiers again.
        let unloaded: Vec<_> = of(Kind::ASSEMBLY_UNLOAD_FINISHED).map(|row| about(row)).collect();
        assert!(!unloaded.is_empty() && unloaded.iter().all(|name| *name == "Plugin"), "{unloaded:?} on {place}");
    });
}

#[test]
fn calls_of_native_code_begin_and_end() {
    each_runtime(|runtime| {
        let seen = watched(runtime, "Native", "events:transitions");
        let log = all(&seen.recording);
        let (found, _) = log.rows();
        let of_program = |row: &&EventRow<'_>| about(row).starts_with("Native.");
        let events: Vec<_> = found.iter().filter(of_program).collect();
        assert!(!events.is_empty(), "{}", runtime.version);
        let unpaired = events.iter().filter(|row| row.duration_ns.is_none()).count();
        assert_eq!(unpaired, 0, "of {} on {}", events.len(), runtime.version);
    });
}

#[test]
fn filters_choose_functions_and_remarks_say_what_can_not_come() {
    each_runtime(|runtime| {
        let seen = watched(runtime, "Exceptions", "events:jit,com;include=[Exceptions]*");
        let log = all(&seen.recording);
        let (found, _) = log.rows();
        let jit = EventQuery { groups: vec![Group::Jit], ..EventQuery::default() };
        assert_eq!(EventLog::open(&seen.recording, &jit).expect("events").rows().0.len(), found.len());
        let own = |row: &EventRow<'_>| ["Exceptions.", "Fixture."].iter().any(|n| about(row).starts_with(n));
        let foreign = found.iter().find(|row| !own(row) && row.event().starts_with("JIT"));
        assert!(foreign.is_none(), "{:?} on {}", foreign.map(|row| about(row)), runtime.version);
        let remarks = &seen.recording.processes[0].remarks;
        assert!(remarks.iter().any(|remark| remark.text.contains("group com")), "{remarks:?}");
    });
}

#[test]
fn all_groups_beside_all_instruments_change_nothing() {
    each_runtime(|runtime| {
        for name in ["Exceptions", "Threads", "Dynamic", "Native"] {
            let seen = watched(runtime, name, "events:all,allocations=on;exceptions;calls");
            let log = all(&seen.recording);
            let (found, _) = log.rows();
            let of = |kind: Kind| found.iter().filter(|row| row.kind() == kind).count();
            assert!(of(Kind::OBJECT_ALLOCATED) > 100, "{name} on {}", runtime.version);
            let named = |kind: Kind| found.iter().find(|row| row.kind() == kind && !about(row).is_empty());
            assert!(named(Kind::EVENT_PIPE_PROVIDER_CREATED).is_some(), "{name} on {}", runtime.version);
            assert!(named(Kind::HANDLE_CREATED).is_some(), "{name} on {}", runtime.version);
            assert!(seen.recording.processes[0].threads.iter().any(|thread| thread.tree.load().len() > 1));
        }
    });
}
