//! Ends of attached recordings: of the recording, of the tool, and of the program.

use std::collections::BTreeSet;
use std::fs;
use std::process::Stdio;
use std::time::Duration;

use clrscope_testkit as testkit;
use serde_json::Value;

use crate::common::TestFolder;
use crate::server::{Server, attach, kill, recorded, rows, said, some_runtime, thrown};

#[test]
fn ctrl_c_ends_the_recording_and_not_the_program() {
    let place = TestFolder::new();
    let server = Server::start(some_runtime());
    let launcher =
        attach(&place, server.pid, "-i exceptions -o a.clrs").stderr(Stdio::piped()).spawn().expect("the tool starts");
    testkit::wait_until("the agent", || !server.left_over().is_empty());
    testkit::wait_for_work(server.pid, Duration::from_millis(50));
    kill(launcher.id(), "INT");
    let output = launcher.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}", said(&output));
    // Not on a terminal: nothing but the end.
    assert!(!said(&output).contains("Ctrl-C") && !said(&output).contains('\r'), "{}", said(&output));
    assert!(thrown(&rows(&place, "a.clrs")) > 0);
    assert_eq!(server.left_over(), BTreeSet::new());
    server.end();
}

#[test]
fn killing_the_launcher_ends_the_recording_and_the_next_attach_works() {
    testkit::each_runtime(|runtime| {
        let place = TestFolder::new();
        let server = Server::start(runtime);
        let instruments = "-i exceptions -i cpu:rate=20000 -i wall:rate=1000";
        let line = format!("{instruments} -o a.clrs");
        let mut launcher = attach(&place, server.pid, &line).spawn().expect("the tool starts");
        testkit::wait_until("the agent", || !server.left_over().is_empty());
        testkit::wait_for_work(server.pid, Duration::from_millis(50));
        launcher.kill().expect("it lives");
        launcher.wait().expect("it ends");
        testkit::wait_until("the agent's leave", || server.left_over().is_empty());
        assert!(thrown(&rows(&place, "a.clrs.d")) > 0, "what was recorded is there");
        let line = format!("{instruments} --duration 200ms");
        assert!(thrown(&recorded(&place, server.pid, &line, "b.clrs")) > 0);
        server.end();
    });
}

#[test]
fn the_end_of_the_program_ends_the_recording() {
    for signal in ["TERM", "KILL"] {
        let place = TestFolder::new();
        let server = Server::start(some_runtime());
        let launcher = attach(&place, server.pid, "-i exceptions -o a.clrs")
            .stderr(Stdio::piped())
            .spawn()
            .expect("the tool starts");
        testkit::wait_until("the agent", || !server.left_over().is_empty());
        testkit::wait_for_work(server.pid, Duration::from_millis(50));
        server.signal(signal);
        let output = launcher.wait_with_output().expect("it ends");
        assert!(output.status.success(), "{}", said(&output));
        assert!(thrown(&rows(&place, "a.clrs")) > 0, "{signal}");
        let conditions = place.run("report a.clrs --view conditions");
        let conditions = String::from_utf8_lossy(&conditions.stdout).into_owned();
        let end = if signal == "TERM" { "exit code 0" } else { "ended by signal 9" };
        assert!(conditions.contains(end), "{conditions}");
    }
}

/// Wherever the end falls: the process is gone before it is asked, while the agent is loaded, or
/// while it records.
#[test]
fn a_program_that_ends_while_it_is_attached_to_has_one_clear_outcome() {
    for step in 0..8 {
        let place = TestFolder::new();
        let server = Server::start(some_runtime());
        let mut command = attach(&place, server.pid, "-i exceptions --duration 30s -o a.clrs");
        let launcher = command.stderr(Stdio::piped()).spawn().expect("the tool starts");
        testkit::pause(step * Duration::from_millis(15));
        server.signal("KILL");
        let output = launcher.wait_with_output().expect("it ends");
        let said = said(&output);
        if output.status.success() {
            rows(&place, "a.clrs");
        } else {
            let words: Vec<&str> = said.lines().map(|line| line.split(' ').next().unwrap_or_default()).collect();
            assert_eq!(words, ["error:", "why:", "hint:"], "{said}");
            // The program may be gone before the tool looks for it.
            let is_clear = ["why: it ended", "why: there is no such process"].iter().any(|why| said.contains(why));
            assert!(is_clear, "{said}");
            assert_eq!(fs::read_dir(place.path()).expect("a folder").count(), 0, "nothing is left: {said}");
        }
    }
}

/// The environment of the process asks for no log, and can't be changed any more.
#[test]
fn the_log_that_the_tool_is_asked_for_is_kept_beside_each_recording() {
    let place = TestFolder::new();
    let server = Server::start(some_runtime());
    for name in ["a.clrs", "b.clrs"] {
        let mut command = attach(&place, server.pid, &format!("-i exceptions --duration 200ms -o {name}"));
        let output = command.env("CLRSCOPE_LOG", "info").output().expect("the tool starts");
        assert!(output.status.success(), "{}", said(&output));
        let log = fs::read_to_string(place.file(&format!("{name}.agent-{}.log", server.pid))).expect("a log");
        assert!(log.contains("recording into ") && log.contains("nothing records any more"), "{log}");
    }
    recorded(&place, server.pid, "-i exceptions --duration 200ms", "c.clrs");
    assert_eq!(fs::read_dir(place.path()).expect("a folder").count(), 5, "no log where none is asked for");
    server.end();
}

#[test]
fn a_program_with_a_thousand_threads_is_attached_to_three_times() {
    let place = TestFolder::new();
    let mut command = some_runtime().command(&testkit::fixture("Sampled"));
    command.args(["idle", "1000"]);
    let server = Server::spawn(command);
    for name in ["a.clrs", "b.clrs", "c.clrs"] {
        let mut command = attach(&place, server.pid, &format!("-i wall -i cpu:engine=timer --duration 1s -o {name}"));
        let output = command.output().expect("the tool starts");
        assert!(output.status.success(), "{}", said(&output));
        assert_eq!(server.left_over(), BTreeSet::new());
        let threads = place.run(&format!("report {name} --view threads --limit 5000 --format json"));
        assert!(threads.status.success(), "{}", said(&threads));
        let threads: Value = serde_json::from_slice(&threads.stdout).expect("JSON");
        let sampled = threads["rows"].as_array().expect("rows").len();
        assert!(sampled > 900, "{sampled} threads");
    }
    server.end();
}

/// Timers stand in front of the runtime's handler of the signal by which it stops threads. The
/// handler of a signal that was unused before stayed.
#[test]
fn the_actions_of_signals_are_what_they_were_before() {
    testkit::each_runtime(|runtime| {
        let place = TestFolder::new();
        let library = testkit::native_library("Signals/signals.c");
        let out = place.file("actions");
        let mut command = runtime.command(&testkit::fixture("Signals"));
        command.arg("actions").args([&library, &out]);
        let server = Server::spawn(command);
        let seen = || fs::read_to_string(&out).unwrap_or_default();
        testkit::wait_until("a first look", || !seen().is_empty());
        for name in ["a.clrs", "b.clrs"] {
            let line = format!("-i cpu:engine=timer --duration 500ms -o {name}");
            let output = attach(&place, server.pid, &line).output().expect("the tool starts");
            assert!(output.status.success(), "{}", said(&output));
        }
        testkit::wait_until("a last look", || seen().lines().count() == 5);
        let seen = seen();
        let lines: Vec<&str> = seen.lines().collect();
        let (before, during) = (lines[0], lines[1]);
        assert_eq!(lines, [before, during, before, during, before], "{}", runtime.version);
        server.end();
    });
}
