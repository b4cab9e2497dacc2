//! What stands out in real programs with one trouble each.

mod common;

use std::thread::available_parallelism;

use clrscope_testkit as testkit;
use common::TestFolder;
use serde_json::Value;
use testkit::{Runtime, each_runtime, fixture, workspace_root};

/// Time that each thread of `Blocking` waits, milliseconds.
const WAIT_MS: u32 = 2_000;

/// So many threads that some wait for each processor, however long the program takes to start.
fn many_threads() -> usize {
    6 * available_parallelism().map_or(1, usize::from)
}

/// Sentences about the program `Blocking`, and the seconds that it says it waited in all.
fn findings_of(runtime: &Runtime, threads: usize, what: &str) -> (Vec<Value>, f64) {
    let place = TestFolder::new();
    let mut command = place.clrscope(["run", "-q", "-i", "wall", "-o", "a.clrs", "--"]);
    command.args(runtime.words(&fixture("Blocking"))).args([&threads.to_string(), &WAIT_MS.to_string(), what]);
    runtime.prepare(&mut command);
    let said = testkit::run(command).expect_success().stdout_text();
    let waited = said.lines().find_map(|line| line.strip_prefix("WAITED ")?.parse::<f64>().ok()).expect("nanoseconds");
    let output = place.run("report a.clrs --json");
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    (document["findings"].as_array().expect("findings").clone(), waited / 1e9)
}

/// The line of a fixture's source that has a text.
fn line_with(text: &str) -> u64 {
    let source = workspace_root().join("dotnet/fixtures/Blocking/Blocking.cs");
    let source = std::fs::read_to_string(source).expect("the source");
    1 + source.lines().position(|line| line.contains(text)).expect("the line") as u64
}

/// Seconds that a sentence says threads were blocked in all.
fn blocked_s(text: &str) -> Option<f64> {
    text.split_once(" in all")?.0.rsplit_once([' ', '('])?.0.rsplit_once([' ', '('])?.1.parse().ok()
}

#[test]
fn a_starved_pool_comes_first_with_the_line_that_blocks_its_threads() {
    let task = ("task", "OnTask", "waits for a task (sync over async)", "// the line that blocks", "pool-starved");
    // More threads would stand in line, too.
    let lock = ("lock", "OnLock", "in all for a lock in calls from", "lock (Gate)", "lock-convoy");
    each_runtime(|runtime| {
        for (what, method, words, line, kind) in [task, lock] {
            let function = format!("Blocking.Program::{method}");
            // On a busy machine threads that have waited enough wait for a processor.
            let outcome = testkit::attempted(|| {
                let (findings, waited_s) = findings_of(runtime, many_threads(), what);
                let first = &findings[0];
                let place = format!("{} {what}: {findings:#?}", runtime.version);
                assert_eq!((&first["kind"], &first["function"]), (&kind.into(), &function.clone().into()), "{place}");
                assert_eq!(first["line"], line_with(line), "{place}");
                let text = first["text"].as_str().expect("a text");
                assert!(text.contains(words) && text.contains("Blocking.cs:"), "{place}");
                let said_s = blocked_s(text).expect("seconds");
                let is_near = (said_s / waited_s - 1.0).abs() < 0.05;
                if is_near { Ok(()) } else { Err(format!("{said_s} s of {waited_s}, {place}")) }
            });
            assert_eq!(outcome, Ok(()));
        }
    });
}

#[test]
fn threads_that_take_from_a_queue_are_no_trouble() {
    each_runtime(|runtime| {
        let (findings, _) = findings_of(runtime, many_threads(), "queue");
        let is_about_pool = |finding: &Value| finding["kind"] == "pool-starved" || finding["kind"] == "wait";
        assert!(!findings.iter().any(is_about_pool), "{}: {findings:#?}", runtime.version);
    });
}
