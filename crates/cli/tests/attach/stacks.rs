//! `clrscope stacks PID`: threads and operations of a program that hangs, which goes on as it was.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use clrscope_testkit as testkit;
use serde_json::Value;

use crate::common::TestFolder;
use crate::common::pending::{Operations, said as said_by_program, shown};
use crate::server::{kill, said, some_runtime};

/// The fixture with operations that wait for good, and what it says of them.
pub(crate) struct Hung {
    program: Child,
    said: Operations,
}

impl Hung {
    pub(crate) fn start(runtime: &testkit::Runtime, many: u32) -> Self {
        let mut command = runtime.command(&testkit::fixture("Pending"));
        command.arg(many.to_string()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut program = command.spawn().expect("the program starts");
        let mut text = String::new();
        let mut out = BufReader::new(program.stdout.as_mut().expect("a pipe"));
        while !text.ends_with("READY\n") {
            assert_ne!(out.read_line(&mut text).expect("it writes"), 0, "{text}");
        }
        Self { said: said_by_program(&text), program }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.program.id()
    }

    /// Lets the program end, as it does by itself.
    pub(crate) fn end(mut self) {
        self.program.stdin.take().expect("a pipe").write_all(b"\n").expect("it reads");
        assert!(self.program.wait().expect("it ends").success());
    }
}

fn stacks(place: &TestFolder, arguments: &str) -> Value {
    let output = place.run(&format!("stacks {arguments} --format json"));
    assert!(output.status.success(), "{}", said(&output));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn a_program_that_hangs_shows_its_threads_and_operations_and_goes_on() {
    testkit::each_runtime(|runtime| {
        let place = TestFolder::new();
        let hung = Hung::start(runtime, 7);
        for _ in 0..2 {
            let found = stacks(&place, &hung.pid().to_string());
            let threads = found["threads"].as_array().expect("threads");
            let blocked = threads.iter().find(|thread| thread["name"] == "blocked").expect("the thread");
            let known = (&blocked["state"], &blocked["waits_for"], &blocked["role"]);
            assert_eq!(known, (&"waiting".into(), &"a task".into(), &"user".into()), "{blocked:#}");
            let frames = blocked["frames"].as_array().expect("frames");
            let own = frames.iter().find(|frame| frame["module"] == "Pending").expect("an own frame");
            assert_eq!(own["name"], "Pending.Program::Main", "{own:#}");
            assert!(own["file"].as_str().is_some_and(|file| file.ends_with("Pending.cs")), "{own:#}");
            assert!(own["line"].is_u64() && own["kind"] == "managed", "{own:#}");
            let main = threads.iter().find(|thread| thread["role"] == "main").expect("the main thread");
            assert_eq!(main["os_id"], hung.pid(), "{main:#}");
            let pending = found["pending"].as_array().expect("operations");
            assert_eq!(shown(pending), hung.said, "{}", runtime.version);
            assert_eq!(testkit::left_over(hung.pid()), Default::default());
        }
        let text = String::from_utf8(place.run(&format!("stacks {}", hung.pid())).stdout).expect("UTF-8");
        assert!(text.contains("[thread blocked]") && text.contains("Pending.Shop::Checkout"), "{text}");
        hung.end();
        let left = std::fs::read_dir(place.path()).expect("the folder").count();
        assert_eq!(left, 0, "nothing is kept");
    });
}

#[test]
fn threads_alone_take_no_snapshot() {
    let place = TestFolder::new();
    let hung = Hung::start(some_runtime(), 1);
    let found = stacks(&place, &format!("{} --no-heap", hung.pid()));
    assert!(
        found.get("pending").is_none() && found["threads"].as_array().is_some_and(|all| all.len() > 3),
        "{found:#}"
    );
    hung.end();
}

#[test]
fn of_a_program_that_is_stopped_the_systems_own_threads_are_shown() {
    let place = TestFolder::new();
    let hung = Hung::start(some_runtime(), 1);
    kill(hung.pid(), "STOP");
    let began = Instant::now();
    let output = place.run(&format!("stacks {} --format json", hung.pid()));
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    assert_eq!(output.status.code(), Some(1), "{}", said(&output));
    let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let threads = found["threads"].as_array().expect("threads");
    let blocked = threads.iter().find(|thread| thread["name"] == "blocked").expect("the thread");
    assert_eq!((&blocked["state"], &blocked["frames"]), (&"stopped".into(), &Value::Array(Vec::new())), "{found:#}");
    assert!(said(&output).contains("why: it is stopped"), "{}", said(&output));
    kill(hung.pid(), "CONT");
    hung.end();
}

#[test]
fn what_has_no_stacks_is_refused_in_three_lines() {
    let place = TestFolder::new();
    for (arguments, reason) in
        [("4194304", "there is no such process"), ("1 --no-heap --force", "--force"), ("x", "'x'")]
    {
        let output = place.run(&format!("stacks {arguments}"));
        let text = said(&output);
        assert!(matches!(output.status.code(), Some(1 | 2)) && text.contains(reason), "{arguments}: {text}");
        assert!(output.stdout.is_empty() && text.lines().count() == 3, "{arguments}: {text}");
    }
}
