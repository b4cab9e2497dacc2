//! A thread of a profiler's own, on every runtime at hand.

mod common;

use std::process::Stdio;

use clr_profiler::Events;
use clrscope_testkit as testkit;

/// Lines of what the thread saw when it began, and of what was added at the program's end.
/// `variable` asks for other ones.
fn lines(runtime: &testkit::Runtime, variable: Option<&str>) -> (Vec<String>, Vec<String>) {
    let folder = testkit::scratch();
    let output = folder.path().join("lines");
    let mut command =
        common::profiled(runtime, "Counter", &common::profiler("own_thread"), "{6F0E8E6B-2C8E-4B6B-9A55-5D1E3B1F7C0E}");
    command.args(["-", "1"]).env("OWN_THREAD_OUTPUT", &output).stdin(Stdio::piped()).stdout(Stdio::null());
    if let Some(name) = variable {
        command.env(name, "1");
    }
    let mut program = command.spawn().expect("the program starts");
    let input = program.stdin.take();
    testkit::wait_until("the thread has begun", || output.exists());
    let read = || std::fs::read_to_string(&output).expect("it is there").lines().map(str::to_owned).collect::<Vec<_>>();
    let first = read();
    drop(input);
    assert!(program.wait().expect("it ends").success());
    let last = read().split_off(first.len());
    (first, last)
}

#[test]
fn an_own_thread_begins_when_the_runtime_is_up_and_ends_before_shutdown() {
    testkit::each_runtime(|runtime| {
        let (first, last) = lines(runtime, None);
        let expected = [
            "suspended in initialize: Err(Some(\"CORPROF_E_RUNTIME_UNINITIALIZED\"))",
            "signals are blocked: true",
            "modules: true",
            "stack here: Ok(NoManagedFrames)",
        ];
        assert_eq!(first[..4], expected, "on .NET {}", runtime.version);
        // Threads without managed frames are no failures. What else there may be has its reason.
        let stacks = &first[4];
        assert!(stacks.contains("Ok(NoManagedFrames)"), "on .NET {}: {stacks}", runtime.version);
        assert!(!stacks.contains("CutShort") && !stacks.contains("Other"), "on .NET {}: {stacks}", runtime.version);
        assert_eq!(first.last().map(String::as_str), Some("session: Ok(())"), "on .NET {}", runtime.version);
        let expected = ["ended before shutdown: true", "the profiler is about to go, and threads of its own with it"];
        assert_eq!(last, expected, "on .NET {}", runtime.version);
    });
}

#[test]
fn stacks_without_their_event_are_refused_with_the_reason() {
    testkit::each_runtime(|runtime| {
        let (first, _) = lines(runtime, Some("OWN_THREAD_NO_STACKS"));
        assert_eq!(first[3..5], ["stack here: Err(NotEnabled)", "stacks: {\"Err(NotEnabled)\"}"], "{first:?}");
    });
}

#[test]
fn events_can_be_added_while_the_program_runs_as_declared() {
    testkit::each_runtime(|runtime| {
        let (first, _) = lines(runtime, None);
        let flags: Vec<Vec<&str>> =
            first.iter().filter_map(|line| Some(line.strip_prefix("flag ")?.split(' ').collect())).collect();
        assert_eq!(flags.len(), Events::ALL.len() - 1, "all but ENTER_LEAVE");
        for flag in flags {
            let (name, event) = Events::ALL.iter().find(|(name, _)| *name == flag[0]).expect("its name");
            // The framework refuses the event that tells nothing alone; and see
            // `Events::IMMUTABLE`.
            let late = Events::DISABLE_INLINING | Events::DISABLE_OPTIMIZATIONS;
            let only_at_start =
                if runtime.version.major >= 10 { Events::ONLY_AT_START - late } else { Events::ONLY_AT_START };
            let is_refused = only_at_start.intersects(*event) || *event == Events::OBJECT_ALLOCATED;
            assert_eq!(flag[1] == "true", !is_refused, "{name} on .NET {}", runtime.version);
        }
    });
}

/// A type that is loaded for a question on a thread that is not managed ends the program.
#[test]
fn types_are_loaded_on_an_own_thread_once_the_runtime_has_adopted_it() {
    testkit::each_runtime(|runtime| {
        let (first, last) = lines(runtime, Some("OWN_THREAD_REJIT"));
        let expected = [
            "types on a thread of one's own: Ok([\"CORPROF_E_NOT_MANAGED_THREAD\", \"CORPROF_E_NOT_MANAGED_THREAD\"])",
            "adopted: Ok(()), a thread: true",
            "types on an adopted thread: Ok([\"OK\", \"OK\"])",
        ];
        assert_eq!(first[3..], expected, "on .NET {}", runtime.version);
        assert_eq!(last[0], "ended before shutdown: true", "on .NET {}", runtime.version);
    });
}
