//! `attach PID -i requests`: requests of a program that runs already.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use clrscope_recording::model::Process;
use clrscope_testkit::{self as testkit, WorkOfThreads};

use crate::common::TestFolder;
use crate::server::{attach, kill, said};
use crate::waiting::{Waiting, is_following, rows};

/// Count, failures and abortions of requests, by direction and name.
type Counts = BTreeMap<(String, String), [u64; 3]>;

fn printed(lines: &[String]) -> Counts {
    let parse = |line: &String| {
        let mut parts = line.split('|');
        let (direction, name) = parts.next()?.split_once(' ')?;
        let numbers: Vec<u64> = parts.filter_map(|number| number.parse().ok()).collect();
        let counts = <[u64; 3]>::try_from(numbers.get(..3)?).ok()?;
        Some(((direction.to_lowercase(), name.to_owned()), counts))
    };
    lines.iter().filter_map(parse).collect()
}

/// The second recording finds the methods in their changed code. What was under way when the first
/// one began is apart.
#[test]
fn requests_of_a_running_program_are_those_that_it_counts_and_one_that_was_under_way_is_partial() {
    testkit::each_web_runtime(|runtime| {
        let (place, mut program) = (TestFolder::new(), Waiting::start(runtime, "Serves", &["5", "wait", "listens"]));
        let mut before = Counts::new();
        let mut lines = Vec::new();
        for (name, last, partial) in [("first.clrs", "DONE", 2), ("second.clrs", "", 0)] {
            let options = format!("-q -i requests -o {name}");
            let mut recorder = attach(&place, program.child.id(), &options).spawn().expect("the tool starts");
            testkit::wait_until("it records", || is_following(&place, name));
            testkit::pause(Duration::from_secs(1));
            let output = program.go_on(last);
            if !last.is_empty() {
                kill(recorder.id(), "INT");
            }
            assert!(recorder.wait().expect("it ends").success(), "{output:?} on {}", runtime.version);
            let (all, rows) = (printed(&output), rows(&place, name, "requests"));
            assert_eq!(all.len(), 15, "{output:?}");
            for (key, counted) in &all {
                let known = before.get(key).copied().unwrap_or_default();
                let row = rows.iter().find(|row| row["direction"] == *key.0 && row["route"] == *key.1);
                let row = row.unwrap_or_else(|| panic!("no {key:?} in {rows:#?}"));
                let found = ["count", "failed", "aborted"].map(|column| row[column].as_u64().expect("a number"));
                let now: Vec<u64> = (0..3).map(|at| counted[at] - known[at]).collect();
                assert_eq!(found.as_slice(), now, "{name}, {key:?} on {}", runtime.version);
            }
            let found: u64 = rows.iter().filter_map(|row| row["partial"].as_u64()).sum();
            assert_eq!(found, partial, "{rows:#?}");
            before = all;
            lines = output;
        }
        assert!(program.child.wait().expect("it ends").success(), "on {}", runtime.version);

        // The program sees the same as without an attach.
        let mut alone = Waiting::start(runtime, "Serves", &["5", "wait", "listens"]);
        alone.go_on("DONE");
        let bare = alone.go_on("");
        let seen =
            |lines: &[String]| lines.iter().filter(|line| line.starts_with("SEEN ")).cloned().collect::<Vec<_>>();
        assert!(!seen(&bare).is_empty());
        assert_eq!(seen(&lines), seen(&bare), "on {}", runtime.version);
    });
}

/// What `record` does with a recording under way.
fn record(place: &TestFolder, program: &Waiting, act: &str) {
    let output = place.run(&format!("record {} {act}", program.child.id()));
    assert!(output.status.success(), "{}", said(&output));
}

fn process(place: &TestFolder, name: &str) -> Process {
    let recording = clrscope_recording::open(&place.file(name)).expect("a recording");
    recording.processes.into_iter().next().expect("a process")
}

/// Threads of the pool end after a tenth of a second without work, so recordings find others. Two
/// requests begin outside of them: they are none of theirs.
#[test]
fn threads_of_a_running_program_work_for_the_requests_that_it_says_in_each_recording() {
    testkit::each_web_runtime(|runtime| {
        let (place, mut program) = (TestFolder::new(), Waiting::start(runtime, "Whose", &["10", "0.2", "wait"]));
        for (name, last) in [("first.clrs", "DONE"), ("second.clrs", "")] {
            let options = format!("-q -i requests -i exceptions -i events:jit -o {name}");
            let mut recorder = attach(&place, program.child.id(), &options).spawn().expect("the tool starts");
            testkit::wait_until("it records", || is_following(&place, name));
            testkit::pause(Duration::from_secs(1));
            program.go_on(last);
            if !last.is_empty() {
                kill(recorder.id(), "INT");
            }
            assert!(recorder.wait().expect("it ends").success(), "on {}", runtime.version);

            let process = process(&place, name);
            let (work, marks) = (WorkOfThreads::new(&process), testkit::marks(&process));
            let wrong = work.misplaced(&marks, |mark, found| match mark.route.as_str() {
                "GET /held" => !found.starts_with("GET "),
                route => route == found,
            });
            assert!(wrong.is_empty(), "{name}, {} of {}: {wrong:#?} on {}", wrong.len(), marks.len(), runtime.version);
            let routes: BTreeSet<&str> = marks.iter().map(|mark| mark.route.as_str()).collect();
            assert_eq!((routes.len(), work.requests() >= 280), (29, true), "{routes:?}, {}", work.requests());
            // The runtime's own methods had got their own code back.
            let found = testkit::recompiled(&process, "System.Private.CoreLib");
            assert_eq!(found, BTreeSet::from(testkit::SWITCHING_METHODS), "{name} on {}", runtime.version);
        }
        assert!(program.child.wait().expect("it ends").success(), "on {}", runtime.version);
    });
}

/// What a thread works for while recording is stopped is not known: it works for none until it
/// gets another context.
#[test]
fn a_recording_that_stops_and_starts_says_of_no_thread_a_request_that_it_does_not_work_for() {
    testkit::each_web_runtime(|runtime| {
        let (place, mut program) = (TestFolder::new(), Waiting::start(runtime, "Whose", &["60", "0.2", "wait"]));
        let options = "-q -i requests -i exceptions -o stops.clrs";
        let mut recorder = attach(&place, program.child.id(), options).spawn().expect("the tool starts");
        testkit::wait_until("it records", || is_following(&place, "stops.clrs"));
        testkit::pause(Duration::from_secs(1));
        program.begin();
        for _ in 0..10 {
            for act in ["stop", "start"] {
                record(&place, &program, act);
                testkit::random_pause(Duration::from_millis(50));
            }
        }
        program.read_to("DONE");
        kill(recorder.id(), "INT");
        assert!(recorder.wait().expect("it ends").success(), "on {}", runtime.version);
        drop(program);

        let process = process(&place, "stops.clrs");
        let (work, marks) = (WorkOfThreads::new(&process), testkit::marks(&process));
        let wrong = work.misplaced(&marks, |mark, found| !found.starts_with("GET ") || mark.route == found);
        assert!(wrong.is_empty(), "{} of {}: {wrong:#?} on {}", wrong.len(), marks.len(), runtime.version);
        let known = marks.len() - work.misplaced(&marks, |mark, found| mark.route == found).len();
        assert!(4 * known > 3 * marks.len() && marks.len() > 1_000, "{known} of {}", marks.len());
    });
}

/// Methods that were compiled before the attach.
#[test]
fn commands_of_a_running_program_are_those_that_it_counts() {
    testkit::each_runtime(|runtime| {
        let (place, mut program) = (TestFolder::new(), Waiting::start(runtime, "Commands", &["5", "wait", "listens"]));
        let mut recorder =
            attach(&place, program.child.id(), "-q -i requests -o rec.clrs").spawn().expect("the tool starts");
        testkit::wait_until("it records", || is_following(&place, "rec.clrs"));
        testkit::pause(Duration::from_secs(1));
        let output = program.go_on("");
        assert!(recorder.wait().expect("it ends").success(), "{output:?} on {}", runtime.version);
        let (all, rows) = (printed(&output), rows(&place, "rec.clrs", "requests"));
        assert_eq!(all.len(), 10, "{output:?}");
        for ((_, name), [counted, failed, _]) in &all {
            let row =
                rows.iter().find(|row| row["route"] == **name).unwrap_or_else(|| panic!("no {name} in {rows:#?}"));
            let found = ["count", "failed"].map(|column| row[column].as_u64().expect("a number"));
            assert_eq!(found, [*counted, *failed], "{name} on {}: {output:?}", runtime.version);
        }
        assert!(program.child.wait().expect("it ends").success(), "on {}", runtime.version);
    });
}
