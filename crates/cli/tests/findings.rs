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

/// What the program `Troubles` printed about its pool: how many milliseconds it had run, how many
/// work items waited, and how many threads the pool had.
fn counted_by_program(said: &str) -> Vec<(f64, u64, u64)> {
    let numbers = |line: &str| line.strip_prefix("POOL ")?.split(' ').map(|number| number.parse().ok()).collect();
    let lines: Vec<Vec<u64>> = said.lines().filter_map(numbers).collect();
    lines.iter().map(|line| (line[0] as f64, line[1], line[2])).collect()
}

/// Milliseconds by which the clocks of a program and of its recording may differ: each begins when
/// the process begins, as far as it can tell.
const CLOCKS_MS: f64 = 500.0;

/// Why the state of a pool in a recording is not what the program has counted.
fn pool_fault(finding: &Value, counted: &[(f64, u64, u64)]) -> Result<(), String> {
    let pool = finding["pool"].as_array().ok_or("no pool")?;
    let mut measured = 0;
    for step in pool {
        let at_ms = step["time_ns"].as_f64().ok_or("no time")? / 1e6;
        let near = |within_ms: f64| counted.iter().filter(move |(ms, ..)| (ms - at_ms).abs() <= within_ms);
        // The value was read during the step, which takes a second.
        let queues: Vec<u64> =
            near(CLOCKS_MS + 1000.0).filter(|(ms, ..)| *ms <= at_ms + CLOCKS_MS).map(|(_, queue, _)| *queue).collect();
        let threads: Vec<u64> = near(CLOCKS_MS).map(|(.., threads)| *threads).collect();
        let is_within = |value: u64, all: &[u64], more: u64| {
            let (least, most) = (all.iter().min().copied().unwrap_or(0), all.iter().max().copied().unwrap_or(u64::MAX));
            (least.saturating_sub(more)..=most.saturating_add(more)).contains(&value)
        };
        // The program's work has begun, and has not ended yet.
        if near(CLOCKS_MS).count() < 2 || counted.iter().all(|(ms, ..)| *ms < at_ms + CLOCKS_MS) {
            continue;
        }
        let threads_said = step["threads"].as_u64().ok_or("no threads")?;
        if !is_within(threads_said, &threads, 1) {
            return Err(format!("{threads_said} of {threads:?} threads"));
        }
        if let Some(queue) = step["queue"].as_u64() {
            measured += 1;
            if !is_within(queue, &queues, 0) {
                return Err(format!("{queue} of {queues:?} work items"));
            }
        }
    }
    if measured < 2 { Err(format!("measured {measured} times")) } else { Ok(()) }
}

/// The sentence about the queue: the greatest length, and those at first and at the end.
fn queue_in(text: &str) -> Option<[u64; 3]> {
    let (most, rest) = text.split_once("up to ")?.1.split_once(" work items waited in its queue, ")?;
    let (first, rest) = rest.split_once(" at first and ")?;
    let last = rest.split_once(" at the end")?.0;
    let number = |text: &str| text.replace(',', "").parse::<u64>().ok();
    Some([number(most)?, number(first)?, number(last)?])
}

#[test]
fn a_starved_pools_size_and_queue_over_time_are_those_that_the_program_counts() {
    each_runtime(|runtime| {
        let outcome = testkit::attempted(|| {
            let place = TestFolder::new();
            let mut command = place.clrscope(["run", "-q", "-i", "wall", "-i", "counters", "-o", "a.clrs", "--"]);
            command.args(runtime.words(&fixture("Troubles"))).args(["queued", "5000"]);
            runtime.prepare(&mut command);
            let said = testkit::run(command).expect_success().stdout_text();
            let counted = counted_by_program(&said);
            let document: Value =
                serde_json::from_slice(&place.run("report a.clrs --json").stdout).expect("a JSON document");
            let first = &document["findings"][0];
            let place = format!("{}: {first:#} {counted:?}", runtime.version);
            assert_eq!((&first["kind"], &first["function"]), (&"pool-starved".into(), &FETCH.into()), "{place}");
            pool_fault(first, &counted).map_err(|fault| format!("{fault}, {place}"))?;
            // The queue grows all the time.
            let [most, at_first, last] = queue_in(first["text"].as_str().expect("a text")).expect("a queue");
            let most_counted = counted.iter().map(|(_, queue, _)| *queue).max().unwrap_or(0);
            // The runtime's last value may come after the program's, by less than a step of it.
            let steps = counted.windows(2).map(|pair| pair[1].1.saturating_sub(pair[0].1));
            let most_counted = most_counted + steps.max().unwrap_or(0);
            let is_it = at_first < last && last <= most && most <= most_counted && most * 10 > most_counted * 6;
            if is_it { Ok(()) } else { Err(format!("{most} {at_first} {last} of {most_counted}, {place}")) }
        });
        assert_eq!(outcome, Ok(()));
    });
}

/// Method of `Troubles` that blocks.
const FETCH: &str = "Troubles.Program::Fetch";

#[test]
fn where_the_queue_was_not_recorded_the_sentence_says_what_records_it() {
    each_runtime(|runtime| {
        let place = TestFolder::new();
        let mut command = place.clrscope(["run", "-q", "-i", "wall", "-o", "a.clrs", "--"]);
        command.args(runtime.words(&fixture("Troubles"))).args(["queued", "1500"]);
        runtime.prepare(&mut command);
        testkit::run(command).expect_success();
        let document: Value = serde_json::from_slice(&place.run("report a.clrs --json").stdout).expect("JSON");
        let first = &document["findings"][0];
        let text = first["text"].as_str().expect("a text");
        assert!(text.contains("; -i counters shows the length of its queue)"), "{}: {first:#}", runtime.version);
        let pool = first["pool"].as_array().expect("the pool's size");
        assert!(!pool.is_empty() && pool.iter().all(|step| step["queue"].is_null()), "{first:#}");
        assert!(pool.iter().any(|step| step["threads"].as_u64() > Some(1)), "{first:#}");
    });
}
