//! `clrscope triage`: programs with one trouble each get its name, and sound ones get none.

mod common;

use std::io::{BufReader, Read};
use std::process::{Child, Command, Stdio};

use clrscope_testkit::{self as testkit, Runtime, attempted, fixture};
use common::TestFolder;
use serde_json::Value;

/// A program that runs until it is dropped.
struct Running(Child);

impl Running {
    /// Starts a program, and waits until it says something.
    fn start(runtime: &Runtime, program: &str, arguments: &[&str]) -> Self {
        let mut command: Command = runtime.command(&fixture(program));
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let mut first = [0];
        BufReader::new(child.stdout.as_mut().expect("a pipe")).read_exact(&mut first).expect("it says something");
        Self(child)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// The program's word for its trouble, what it is called, and the method that is named.
const TROUBLES: &[(&str, &str, &str)] = &[
    ("convoy", "lock-convoy", "Book"),
    ("convoy-of-pool", "lock-convoy", "Book"),
    ("readers", "lock-convoy", "Look"),
    ("starved", "pool-starved", "Fetch"),
    ("sync-over-async", "wait", "Fetch"),
    ("slow-io", "wait", "Listen"),
    ("sleeping", "wait", "Retry"),
    ("cpu", "cpu", "Price"),
    ("gc", "gc", "Make"),
    ("exceptions", "exceptions", ""),
    ("growing", "growing-heap", ""),
];

#[test]
fn programs_with_a_trouble_get_its_name_its_method_and_what_looks_closer() {
    for (at, (trouble, kind, method)) in TROUBLES.iter().enumerate() {
        // A third of them on each runtime.
        let runtimes = testkit::runtimes();
        let runtime = &runtimes[at % runtimes.len()];
        let outcome = attempted(|| {
            let place = TestFolder::new();
            let program = Running::start(runtime, "Troubles", &[trouble, "60000"]);
            testkit::pause(std::time::Duration::from_millis(500));
            let pid = program.0.id();
            let found = place.json(&format!("triage {pid} --duration 4s"));
            let first = &found["verdicts"][0];
            let named = first["function"].as_str().unwrap_or_default();
            assert_eq!(found["schema"], "clrscope.triage/1");
            assert!(first["command"].as_str().is_some_and(|line| line.contains(&pid.to_string())), "{first:#}");
            assert!(first["evidence"].as_array().is_some_and(|all| !all.is_empty()), "{first:#}");
            let is_named = method.is_empty() || named == format!("Troubles.Program::{method}");
            testkit::wait_until("the agent leaves", || testkit::left_over(pid).is_empty());
            if first["kind"] == *kind && is_named { Ok(()) } else { Err(format!("{trouble}: {found:#}")) }
        });
        assert_eq!(outcome, Ok(()), "on {}", runtime.version);
    }
}

/// A service that waits for requests, and a program that does next to nothing between its sleeps.
#[test]
fn sound_programs_have_no_trouble() {
    for (program, arguments) in [("Serves", ["1", "wait"].as_slice()), ("Counts", &["600"])] {
        let runtime = testkit::runtimes().last().expect("a runtime");
        let place = TestFolder::new();
        let running = Running::start(runtime, program, arguments);
        testkit::pause(std::time::Duration::from_secs(1));
        let found = place.json(&format!("triage {} --duration 4s", running.0.id()));
        let verdicts = found["verdicts"].as_array().expect("verdicts");
        let kinds: Vec<&Value> = verdicts.iter().map(|verdict| &verdict["kind"]).collect();
        assert!(kinds == ["idle"] || kinds == ["nothing"], "{program}: {found:#}");
    }
}

#[test]
fn recordings_get_their_verdicts_too_and_what_is_none_is_refused() {
    let runtime = testkit::runtimes().last().expect("a runtime");
    let place = TestFolder::new();
    let words = ["run", "-o", "r.clrs", "-i", "cpu", "-i", "exceptions", "--"].map(std::ffi::OsString::from);
    let program = runtime.words(&fixture("Troubles")).into_iter().chain(["exceptions".into(), "2000".into()]);
    let mut command = place.clrscope(words.into_iter().chain(program));
    runtime.prepare(&mut command);
    assert!(command.output().expect("it runs").status.success());
    let found = place.json("triage r.clrs");
    let first = &found["verdicts"][0];
    assert_eq!(
        (&first["kind"], &first["command"]),
        (&"exceptions".into(), &"clrscope report r.clrs --view exceptions".into())
    );
    let text = place.run("triage r.clrs");
    let text = String::from_utf8_lossy(&text.stdout);
    assert!(text.contains("1. an exception storm (") && text.lines().all(|line| line.chars().count() <= 100), "{text}");
    for (words, code, why) in [
        ("triage nothing.clrs", 1, "nothing.clrs"),
        ("triage 4194304", 1, "there is no such process"),
        ("triage 1 --duration soon", 2, "hint: write --duration 10s"),
    ] {
        let output = place.run(words);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(code) && said.contains(why), "{words}: {said}");
    }
}
