//! Programs that end badly or live dangerously: same output and exit code as bare, and what was
//! recorded until then is there.

use std::process::Command;
use std::time::Duration;

use crate::support::flow::FlowSums;
use crate::support::{Run, Sums, assert_unchanged, record_with, under_agent};
use clrscope_analysis::{ExceptionLog, ExceptionQuery, stack_overflows};
use clrscope_recording::layout::instrument;
use clrscope_recording::model::{LossReason, MethodHits, Problem, Process, Recording};
use clrscope_testkit::{
    Expectations, Finished, HOSTILE, Runtime, Service, each_runtime, fixture, last_count, pause, random_pause, run,
    run_within, runtimes, scratch, wait_for, wait_for_work,
};

/// Lines that may not differ: what the program itself says, without what it knows about this one
/// run.
fn said(finished: &Finished) -> String {
    Expectations::other_lines(&finished.stdout_text())
}

/// Message of the runtime at its end, without frames of the framework, because precompiled code
/// hides some of them, and without how often a frame was repeated.
fn complained(finished: &Finished) -> String {
    let lasting = |line: &&str| !line.starts_with("   at System.") && !line.starts_with("Repeat");
    finished.stderr_text().lines().filter(lasting).collect::<Vec<_>>().join("\n")
}

fn bare(runtime: &Runtime, name: &str, arguments: &[&str]) -> Finished {
    let mut command = runtime.command(&fixture(name));
    command.args(arguments);
    run(command)
}

/// Runs a program bare and recorded: everything a user could see is equal.
fn unchanged(runtime: &Runtime, name: &str, arguments: &[&str]) -> Run {
    unchanged_with(runtime, name, "calls", &bare(runtime, name, arguments), arguments)
}

/// As [`unchanged`], with any request, against what the program did bare.
fn unchanged_with(runtime: &Runtime, name: &str, request: &str, bare: &Finished, arguments: &[&str]) -> Run {
    let (run, place) = same_output(runtime, name, request, bare, arguments);
    for process in &run.recording.processes {
        assert_nothing_lost(process, &place);
    }
    run
}

/// As [`unchanged_with`], where data may be dropped; what ran where is the second.
fn same_output(runtime: &Runtime, name: &str, request: &str, bare: &Finished, arguments: &[&str]) -> (Run, String) {
    let run = record_with(runtime, name, request, arguments);
    let place = format!("{name} {arguments:?} with {request} on {}", runtime.version);
    assert_eq!(said(&run.finished), said(bare), "{place}: stdout");
    assert_eq!(run.finished.status, bare.status, "{place}: exit");
    assert_eq!(complained(&run.finished), complained(bare), "{place}: stderr");
    assert_eq!(run.recording.problems, [], "{place}");
    assert!(!run.recording.processes.is_empty(), "{place}: nothing recorded");
    (run, place)
}

/// But for paths that a stack that overflows makes faster than a helper thread without a processor
/// finds memory for.
fn assert_nothing_lost(process: &Process, place: &str) {
    let lost = process.losses.iter().filter(|loss| !loss.reason.is_benign() && loss.reason != LossReason::ArenaBehind);
    let lost: Vec<_> = lost.collect();
    assert!(lost.is_empty(), "{place}: {lost:?}");
}

fn count(process: &Process, module: &str, name: &str) -> u64 {
    Sums::of_process(process, module).calls.get(name).copied().unwrap_or(0)
}

#[test]
fn every_way_to_end_leaves_the_calls_until_then() {
    let ways: [&[&str]; 11] = [
        &["return", "7"],
        &["exit", "255"],
        &["_exit", "3"],
        &["signal", "9"],
        &["signal", "15"],
        &["failfast"],
        &["unhandled"],
        &["unhandled-thread"],
        &["stackoverflow"],
        &["stackoverflow-thread"],
        &["abort"],
    ];
    each_runtime(|runtime| {
        for arguments in ways {
            let run = unchanged(runtime, "Ends", arguments);
            let process = &run.recording.processes[0];
            let place = format!("{arguments:?} on {}", runtime.version);
            let truth = Expectations::parse(&run.finished.stdout_text()).calls("Ends.Program::Work");
            assert_eq!(Some(count(process, "Ends", "Ends.Program::Work")), truth, "{place}");
            // From .NET 10 on the runtime no longer turns SIGTERM into an orderly end by itself.
            let orderly =
                matches!(arguments[0], "return" | "exit") || (arguments == ["signal", "15"] && runtime.major() < 10);
            assert_eq!(process.complete, orderly, "{place}");
            let overflowed = arguments[0].starts_with("stackoverflow");
            assert_eq!(stack_overflows(&run.recording).len(), usize::from(overflowed), "{place}");
        }
    });
}

/// Ends, odd stacks, code and processes that come and go, at the highest rate of the engine that
/// interrupts threads: each on one of the runtimes in turn. The soak has all of them on each, with
/// both engines.
#[test]
fn hostile_programs_of_every_kind_are_unchanged_at_the_highest_rate_of_samples() {
    for ((name, arguments), runtime) in HOSTILE.into_iter().zip(runtimes().iter().cycle()) {
        let bare = bare(runtime, name, arguments);
        let request = "cpu:rate=20000,engine=timer;wall:rate=1000";
        let (run, place) = same_output(runtime, name, request, &bare, arguments);
        let mut losses = run.recording.processes.iter().flat_map(|process| &process.losses);
        assert!(!losses.any(|loss| loss.reason == LossReason::PanicCaught), "{place}");
    }
}

/// Counters in every method of their own change nothing of what the same programs do.
#[test]
fn hostile_programs_of_every_kind_are_unchanged_with_counters_in_their_methods() {
    for ((name, arguments), runtime) in HOSTILE.into_iter().zip(runtimes().iter().cycle()) {
        let bare = bare(runtime, name, arguments);
        let (run, place) = same_output(runtime, name, &format!("coverage;include=[{name}]*"), &bare, arguments);
        for process in &run.recording.processes {
            assert_nothing_lost(process, &place);
        }
        let hits = |process: &Process| -> u64 {
            let chunks = process.arenas(instrument::COVERAGE).flat_map(|arena| &arena.chunks);
            chunks.map(|chunk| MethodHits::all(&chunk.bytes.load()).flat_map(|method| method.hits).sum::<u64>()).sum()
        };
        let hits: u64 = run.recording.processes.iter().map(hits).sum();
        assert!(hits > 0, "{place}: nothing was counted");
    }
}

/// Exit codes that shells and systems give a meaning on each runtime, against what the program does
/// bare; all others on one.
#[test]
fn every_exit_code_is_handed_on() {
    let all = runtimes();
    for (code, runtime) in (0..=255).zip(all.iter().cycle()) {
        let run = record_with(runtime, "Ends", "calls", &["return", &code.to_string()]);
        let place = format!("{code} on {}", runtime.version);
        assert_eq!((run.finished.code(), run.finished.stderr_text().as_str()), (code, ""), "{place}");
        let process = &run.recording.processes[0];
        assert!(process.complete, "{place}");
        assert_eq!(count(process, "Ends", "Ends.Program::Work"), 1000, "{place}");
    }
    each_runtime(|runtime| {
        for code in ["0", "1", "2", "77", "125", "126", "127", "128", "254"] {
            unchanged(runtime, "Ends", &["return", code]);
        }
    });
}

#[test]
fn deadly_signals_of_every_kind_are_handed_on() {
    // Of each kind: what asks a program to end, what a crash is, what the runtime does not look at,
    // what limits send.
    const SIGNALS: [&str; 12] = ["1", "2", "3", "4", "6", "8", "9", "10", "11", "14", "15", "25"];
    each_runtime(|runtime| {
        for number in SIGNALS {
            let run = unchanged(runtime, "Ends", &["signal", number]);
            let calls = count(&run.recording.processes[0], "Ends", "Ends.Program::Work");
            assert_eq!(calls, 1000, "signal {number} on {}", runtime.version);
        }
    });
}

/// A program that ends well, and whose calls are counted as it knows them.
fn counted_exactly(name: &str) {
    each_runtime(|runtime| {
        let run = unchanged(runtime, name, &[]);
        let expected = Expectations::parse(&run.finished.stdout_text());
        let sums = Sums::of_process(&run.recording.processes[0], name);
        for (function, truth) in &expected.calls {
            assert_eq!(sums.calls.get(function), Some(truth), "{function} on {}", runtime.version);
        }
    });
}

#[test]
fn little_stack_is_enough() {
    counted_exactly("Stacks");
}

#[test]
fn code_that_comes_and_goes_keeps_its_names_and_counts() {
    counted_exactly("Loading");
}

#[test]
fn children_are_processes_of_the_recording() {
    each_runtime(|runtime| {
        let run = unchanged(runtime, "Processes", &["start"]);
        let processes = &run.recording.processes;
        assert_eq!(processes.len(), 3, "on {}", runtime.version);
        let root = processes[0].pid;
        for (child, calls) in processes[1..].iter().zip([200, 300]) {
            assert_eq!(child.parent_pid, root);
            assert_eq!(count(child, "Processes", "Processes.Program::Work"), calls);
        }
    });
}

#[test]
fn children_are_left_alone_when_told_so() {
    each_runtime(|runtime| {
        let folder = scratch();
        let out = folder.path().join("run.clrs.d");
        // A service that is started again records into the same folder, and is no child of the one
        // before.
        for round in 1..=2 {
            let mut command = runtime.command(&fixture("Processes"));
            command.arg("start");
            under_agent(&mut command, "calls;children=off", &out);
            run(command).expect_success();
            let recording = clrscope_recording::open(&out).expect("a recording");
            assert_eq!(recording.processes.len(), round, "on {}", runtime.version);
        }
    });
}

#[test]
fn forked_children_that_become_programs_are_processes_of_the_recording() {
    each_runtime(|runtime| {
        let run = unchanged(runtime, "Processes", &["fork-exec", "50"]);
        let (root, children) = run.recording.processes.split_first().expect("the program");
        assert_eq!(count(root, "Processes", "Processes.Program::Work"), 3, "on {}", runtime.version);
        assert_eq!(children.len(), 3, "on {}", runtime.version);
        for child in children {
            assert_eq!(child.parent_pid, root.pid);
            assert_eq!(count(child, "Processes", "Processes.Program::Work"), 50, "on {}", runtime.version);
        }
    });
}

#[test]
fn a_program_that_becomes_another_is_two_processes_with_one_id() {
    each_runtime(|runtime| {
        let run = unchanged(runtime, "Processes", &["exec", "60"]);
        let [before, after] = run.recording.processes.as_slice() else { panic!("{:?}", run.recording.processes) };
        assert_eq!(before.pid, after.pid, "on {}", runtime.version);
        let calls = [before, after].map(|process| count(process, "Processes", "Processes.Program::Work"));
        assert_eq!(calls, [100, 60], "on {}", runtime.version);
        assert_eq!((before.complete, after.complete), (false, true), "on {}", runtime.version);
    });
}

#[test]
fn a_program_that_closes_its_descriptors_is_recorded_on() {
    each_runtime(|runtime| {
        // The fixture also checks that nothing writes into files that took the closed numbers.
        let run = unchanged(runtime, "Processes", &["close"]);
        let process = &run.recording.processes[0];
        assert_eq!(count(process, "Processes", "Processes.Program::Work"), 300, "on {}", runtime.version);
        assert!(process.complete && process.losses.is_empty(), "{:?} on {}", process.losses, runtime.version);
    });
}

/// Also what a recording would be written by, were it written by a descriptor.
#[test]
fn a_program_that_closes_every_descriptor_is_recorded_on() {
    each_runtime(|runtime| {
        let place = format!("on {}", runtime.version);
        let folder = scratch();
        let out = folder.path().join("run.clrs.d");
        let prepared = || {
            let mut command = runtime.command(&fixture("Processes"));
            // Code that is recompiled in the background would need one.
            command.args(["close-all", "6"]).env("DOTNET_TieredCompilation", "0");
            command
        };
        let mut command = prepared();
        under_agent(&mut command, "calls;flow:all;include=[Processes]*", &out);
        let (bare, with) = (run(prepared()), run(command));
        assert_eq!(bare.code(), 6, "{place}");
        assert_unchanged(&with, &bare, &place);
        let recording = clrscope_recording::open(&out).expect("a recording");
        assert_eq!(recording.problems, [], "{place}");
        let process = &recording.processes[0];
        assert_nothing_lost(process, &place);
        let name = "Processes.Program::Work";
        let flow = FlowSums::replay(&recording, "Processes").sums.calls.get(name).copied();
        assert_eq!((count(process, "Processes", name), flow), (300, Some(300)), "{place}");
    });
}

#[test]
fn a_forked_child_never_writes_its_parents_recording() {
    each_runtime(|runtime| {
        let run = unchanged(runtime, "Processes", &["fork"]);
        let expected = Expectations::parse(&run.finished.stdout_text());
        let sums = Sums::of_process(&run.recording.processes[0], "Processes");
        for (name, truth) in &expected.calls {
            assert_eq!(sums.calls.get(name), Some(truth), "{name} on {}", runtime.version);
        }
    });
}

/// Requests for a program that is killed, how many steps it would make, and how long it is let go
/// on after its first word at most. Each step is two events of `flow`, so that there it can't go on
/// for ever.
const KILLED: [(&str, &str, u64); 4] = [
    ("calls", "1000000000000", 400),
    ("calls:clock=tsc", "1000000000000", 400),
    ("flow:all;include=[Counter]*", "200000", 20),
    ("calls;flow:all;events;exceptions;include=[Counter]*", "200000", 20),
];

#[test]
fn kill_at_any_moment_loses_nothing() {
    const BATCH: u64 = 20_000;
    each_runtime(|runtime| {
        for (request, steps, most_ms) in KILLED {
            let folder = scratch();
            let out = folder.path().join("run.clrs.d");
            let mut command = runtime.command(&fixture("Counter"));
            command.args([steps, &BATCH.to_string()]);
            under_agent(&mut command, request, &out);
            let service = Service::start(command);
            pause(random_pause(Duration::from_millis(most_ms)));
            let finished = service.stop("KILL");
            let said = last_count(&finished, BATCH);
            let recording = clrscope_recording::open(&out).expect("a recording");
            assert_eq!(recording.problems, [], "{request} on {}", runtime.version);
            let process = &recording.processes[0];
            let place = format!("{said} said with {request} on {}: {:?}", runtime.version, process.losses);
            assert!(said >= BATCH, "{place}");
            if request.contains("calls") {
                let found = count(process, "Counter", "Counter.Program::Step");
                assert!((said..=said + BATCH).contains(&found), "{found} calls in the tree, {place}");
            }
            if request.contains("flow") {
                let flow = FlowSums::replay(&recording, "Counter");
                let found = flow.sums.calls.get("Counter.Program::Step").copied().unwrap_or(0);
                assert!((said..=said + BATCH).contains(&found), "{found} calls in order, {place}");
            }
            // The program may have made all its steps, and even ended, before it was killed.
            assert!(process.complete || !finished.status.success(), "{place}");
            assert!(!process.complete || said.to_string() == steps, "{place}");
        }
    });
}

/// Number of recorded exceptions of `Throws COUNT`; each must have its whole stack.
fn exceptions_with_whole_stacks(recording: &Recording, place: &str) -> usize {
    let log = ExceptionLog::open(recording, &ExceptionQuery::default()).expect("exceptions");
    let (found, _) = log.rows();
    for exception in &found {
        let stack: Vec<_> = exception.stack.iter().map(|frame| frame.function.name()).collect();
        let expected = ["Throw", "Middle", "Catch", "Main"].map(|name| format!("Throws.Program::{name}"));
        assert_eq!(stack, expected, "{place}");
        assert_eq!(exception.type_name, "System.InvalidOperationException", "{place}");
    }
    found.len()
}

#[test]
fn kill_at_any_moment_loses_no_exception_and_no_stack() {
    each_runtime(|runtime| {
        let folder = scratch();
        let out = folder.path().join("run.clrs.d");
        let mut command = runtime.command(&fixture("Throws"));
        // More than it can throw before it is killed.
        command.arg("1000000000");
        under_agent(&mut command, "exceptions", &out);
        let service = Service::start_silent(command);
        let place = format!("killed on {}", runtime.version);
        let so_far = || {
            let recording = clrscope_recording::open(&out).ok()?;
            Some(ExceptionLog::open(&recording, &ExceptionQuery::default()).ok()?.rows().0.len())
        };
        wait_for("the first exceptions", || so_far().filter(|&count| count > 0));
        pause(random_pause(Duration::from_millis(100)));
        let before = so_far().expect("it was there already");
        let finished = service.stop("KILL");
        assert_eq!((finished.stdout_text(), finished.stderr_text()), (String::new(), String::new()), "{place}");
        let recording = clrscope_recording::open(&out).expect("a recording");
        assert_eq!(recording.problems, [], "{place}");
        assert_nothing_lost(&recording.processes[0], &place);
        assert!(!recording.processes[0].complete, "{place}");
        let after = exceptions_with_whole_stacks(&recording, &place);
        assert!(after >= before && before > 0, "{before} seen before and {after} after it was {place}");
    });
}

#[test]
fn kill_while_the_runtime_starts_leaves_what_can_be_read() {
    each_runtime(|runtime| {
        let mut opened = 0;
        // Twice at least, and longer and longer until the agent had begun when the program was
        // killed.
        for attempt in 1.. {
            if attempt > 2 && opened > 0 {
                break;
            }
            assert!(attempt < 40, "killed before the agent was there, each time, on {}", runtime.version);
            let folder = scratch();
            let out = folder.path().join("run.clrs.d");
            let mut command = Command::new("timeout");
            let seconds =
                format!("{:.6}", random_pause(Duration::from_millis(125) * attempt.max(2)).as_secs_f64().max(1e-6));
            command.args(["--signal=KILL", &seconds]).args(runtime.words(&fixture("Counter"))).args(["-", "1"]);
            runtime.prepare(&mut command);
            under_agent(&mut command, "calls;flow;events;exceptions", &out);
            let finished = run_within(command, Duration::from_secs(60));
            let said = (finished.stdout_text(), finished.stderr_text());
            assert_eq!(said, (String::new(), String::new()), "no line comes, on {}", runtime.version);
            // Killed before the agent was there: then there is nothing.
            let Ok(recording) = clrscope_recording::open(&out) else { continue };
            opened += 1;
            // At that moment a file may be there and have nothing in it.
            let is_new = |problem: &Problem| problem.what == "is empty" || problem.what.starts_with("was not begun");
            assert!(recording.problems.iter().all(is_new), "{:?} on {}", recording.problems, runtime.version);
            let ended = finished.status.success();
            assert!(recording.processes.iter().all(|process| process.complete || !ended), "on {}", runtime.version);
        }
    });
}

#[test]
fn a_tree_without_room_folds_and_says_so() {
    each_runtime(|runtime| {
        let run = record_with(runtime, "Recursion", "calls:max=256KiB", &[]);
        assert_eq!(run.finished.code(), 0);
        let process = &run.recording.processes[0];
        let full = process.losses.iter().find(|loss| loss.reason == LossReason::TreeFull);
        assert!(full.is_some_and(|loss| loss.count > 0), "{:?} on {}", process.losses, runtime.version);
        let sums = Sums::of_process(process, "Recursion");
        assert!(sums.calls.get("(truncated)").is_some_and(|&calls| calls > 0), "on {}", runtime.version);
    });
}

#[test]
fn a_duration_ends_the_recording_and_not_the_program() {
    each_runtime(|runtime| {
        let folder = scratch();
        let out = folder.path().join("run.clrs.d");
        let mut command = runtime.command(&fixture("Counter"));
        // The program counts until it is killed: how soon the helper thread gets to run is the
        // machine's affair.
        command.args(["1000000000000", "1000000"]);
        under_agent(&mut command, "calls;duration=200ms", &out);
        let service = Service::start(command);
        let stopped = || {
            let recording = clrscope_recording::open(&out).ok()?;
            let process = recording.processes.into_iter().next()?;
            process.has_lost(LossReason::Stopped).then_some(process)
        };
        let process = wait_for("the end of the recording", stopped);
        // Hooks that were under way may still have counted.
        wait_for_work(service.id(), Duration::from_millis(200));
        let then = stopped().map(|process| count(&process, "Counter", "Counter.Program::Step"));
        wait_for_work(service.id(), Duration::from_millis(300));
        let now = stopped().map(|process| count(&process, "Counter", "Counter.Program::Step"));
        assert_eq!(then, now, "still recording on {}", runtime.version);
        let finished = service.stop("KILL");
        let said = last_count(&finished, 1_000_000);
        assert!(now.is_some_and(|now| now < said), "{now:?} recorded of {said} on {}", runtime.version);
        assert!(!process.complete);
    });
}
