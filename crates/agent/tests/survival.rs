//! Programs that end badly or live dangerously: same output and exit code as bare, and what was
//! recorded until then is there.

mod support;

use std::process::Command;
use std::time::Duration;

use clrscope_recording::model::{LossReason, Process};
use clrscope_testkit::{Expectations, Finished, Runtime, Service, each_runtime, fixture, run, run_within, scratch};
use support::{Run, Sums, record_with, under_agent};

/// Lines that may not differ: what the program itself says, without what it knows about this one run.
fn said(finished: &Finished) -> String {
    Expectations::other_lines(&finished.stdout_text())
}

fn bare(runtime: &Runtime, name: &str, arguments: &[&str]) -> Finished {
    let mut command = runtime.command(&fixture(name));
    command.args(arguments);
    run(command)
}

/// The same program bare and recorded: everything a user could see is equal.
fn unchanged(runtime: &Runtime, name: &str, arguments: &[&str]) -> Run {
    let bare = bare(runtime, name, arguments);
    let run = record_with(runtime, name, "calls", arguments);
    let place = format!("{name} {arguments:?} on {}", runtime.version);
    assert_eq!(said(&run.finished), said(&bare), "{place}: stdout");
    assert_eq!(run.finished.status, bare.status, "{place}: exit");
    assert!(!run.finished.stderr_text().contains("clrscope"), "{place}: {}", run.finished.stderr_text());
    assert_eq!(run.recording.problems, [], "{place}");
    assert!(!run.recording.processes.is_empty(), "{place}: nothing recorded");
    run
}

fn count(process: &Process, module: &str, name: &str) -> u64 {
    Sums::of(process, module).calls.get(name).copied().unwrap_or(0)
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
        }
    });
}

#[test]
fn every_exit_code_is_handed_on() {
    each_runtime(|runtime| {
        for code in ["0", "1", "2", "77", "125", "126", "127", "128", "254"] {
            unchanged(runtime, "Ends", &["return", code]);
        }
    });
}

#[test]
fn little_stack_is_enough() {
    each_runtime(|runtime| {
        let run = unchanged(runtime, "Stacks", &[]);
        let expected = Expectations::parse(&run.finished.stdout_text());
        let sums = Sums::of(&run.recording.processes[0], "Stacks");
        for (name, truth) in &expected.calls {
            assert_eq!(sums.calls.get(name), Some(truth), "{name} on {}", runtime.version);
        }
    });
}

#[test]
fn code_that_comes_and_goes_keeps_its_names_and_counts() {
    each_runtime(|runtime| {
        let run = unchanged(runtime, "Loading", &[]);
        let expected = Expectations::parse(&run.finished.stdout_text());
        let sums = Sums::of(&run.recording.processes[0], "Loading");
        for (name, truth) in &expected.calls {
            assert_eq!(sums.calls.get(name), Some(truth), "{name} on {}", runtime.version);
        }
    });
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
        // A service that is started anew records into the same folder, and is no child of the one before.
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
        // It also sees that nobody writes into files that took the closed numbers.
        let run = unchanged(runtime, "Processes", &["close"]);
        let process = &run.recording.processes[0];
        assert_eq!(count(process, "Processes", "Processes.Program::Work"), 300, "on {}", runtime.version);
        assert!(process.complete && process.losses.is_empty(), "{:?} on {}", process.losses, runtime.version);
    });
}

#[test]
fn a_forked_child_never_writes_its_parents_recording() {
    each_runtime(|runtime| {
        let run = unchanged(runtime, "Processes", &["fork"]);
        let expected = Expectations::parse(&run.finished.stdout_text());
        let sums = Sums::of(&run.recording.processes[0], "Processes");
        for (name, truth) in &expected.calls {
            assert_eq!(sums.calls.get(name), Some(truth), "{name} on {}", runtime.version);
        }
    });
}

/// The last `count N` that a killed counter said.
fn last_count(text: &str) -> u64 {
    let counts = text.lines().filter_map(|line| line.strip_prefix("count "));
    counts.filter_map(|n| n.trim().parse().ok()).next_back().unwrap_or(0)
}

/// Three moments within the first second and a half, other ones in each run.
fn random_moments() -> [u64; 3] {
    use std::hash::{BuildHasher, Hasher};
    let random = |least| least + std::hash::RandomState::new().build_hasher().finish() % 400;
    [random(200), random(600), random(1000)]
}

#[test]
fn kill_at_any_moment_loses_nothing() {
    each_runtime(|runtime| {
        for wait_ms in random_moments() {
            let folder = scratch();
            let out = folder.path().join("run.clrs.d");
            let mut command = Command::new("timeout");
            let seconds = format!("{}.{:03}", wait_ms / 1000, wait_ms % 1000);
            command
                .args(["--signal=KILL", &seconds])
                .args(runtime.words(&fixture("Counter")))
                .args(["1000000000000", "1000"]);
            runtime.prepare(&mut command);
            under_agent(&mut command, "calls", &out);
            let finished = run_within(command, Duration::from_secs(60));
            let said = last_count(&finished.stdout_text());
            let Ok(recording) = clrscope_recording::open(&out) else {
                // Killed before the runtime had started: then it can't have counted either.
                assert_eq!(said, 0);
                continue;
            };
            let Some(process) = recording.processes.first() else { continue };
            let found = count(process, "Counter", "Counter.Program::Step");
            assert!(
                (said..=said + 1000).contains(&found),
                "said {said}, recorded {found} after {wait_ms} ms on {}",
                runtime.version
            );
            assert!(!process.complete);
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
        let sums = Sums::of(process, "Recursion");
        assert!(sums.calls.get("(truncated)").is_some_and(|&calls| calls > 0), "on {}", runtime.version);
    });
}

#[test]
fn a_duration_ends_the_recording_and_not_the_program() {
    each_runtime(|runtime| {
        let folder = scratch();
        let out = folder.path().join("run.clrs.d");
        let mut command = runtime.command(&fixture("Counter"));
        // It counts until it is killed: how soon the helper thread gets to run is the machine's affair.
        command.args(["1000000000000", "1000000"]);
        under_agent(&mut command, "calls;duration=200ms", &out);
        let service = Service::start(command);
        let stopped = || {
            let recording = clrscope_recording::open(&out).ok()?;
            let process = recording.processes.into_iter().next()?;
            process.losses.iter().any(|loss| loss.reason == LossReason::Stopped).then_some(process)
        };
        let process = (0..600)
            .find_map(|_| {
                std::thread::sleep(Duration::from_millis(100));
                stopped()
            })
            .unwrap_or_else(|| panic!("not stopped within a minute on {}", runtime.version));
        // Hooks that were under way may still have counted.
        std::thread::sleep(Duration::from_millis(200));
        let then = stopped().map(|process| count(&process, "Counter", "Counter.Program::Step"));
        std::thread::sleep(Duration::from_millis(300));
        let now = stopped().map(|process| count(&process, "Counter", "Counter.Program::Step"));
        assert_eq!(then, now, "still recording on {}", runtime.version);
        let finished = service.stop("KILL");
        let said = last_count(&finished.stdout_text());
        assert!(now.is_some_and(|now| now < said), "{now:?} recorded of {said} on {}", runtime.version);
        assert!(!process.complete);
    });
}
