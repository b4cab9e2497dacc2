//! Threads that block on async methods: `clrscope stacks` ties each to the method that it waits
//! for.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};

use clrscope_testkit as testkit;
use serde_json::Value;
use testkit::{Runtime, Sdk, fixture};

use crate::common::TestFolder;
use crate::common::blocked::{Blocks, said, shown};
use crate::server::said as said_by_tool;

/// The program, which is killed when this goes.
struct Blocked {
    program: Child,
    said: BTreeMap<String, Blocks>,
}

impl Blocked {
    fn start(runtime: &Runtime, program: &Path) -> Self {
        let mut command = runtime.command(program);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let program = command.spawn().expect("the program starts");
        let mut blocked = Self { program, said: BTreeMap::new() };
        let mut text = String::new();
        let mut out = BufReader::new(blocked.program.stdout.as_mut().expect("a pipe"));
        while !text.ends_with("READY\n") {
            assert_ne!(out.read_line(&mut text).expect("it writes"), 0, "{text}");
        }
        blocked.said = said(&text);
        blocked
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.program.kill();
        let _ = self.program.wait();
    }
}

#[test]
fn threads_that_block_on_async_methods_are_tied_to_them() {
    let built = TestFolder::new();
    let debug = Sdk::find().map(|sdk| sdk.compile_without_optimisation("SyncOverAsync", built.path()));
    if debug.is_none() {
        testkit::not_run("threads that block on methods compiled without optimisation: no .NET SDK is at hand");
    }
    testkit::each_runtime(|runtime| {
        for program in debug.iter().cloned().chain([fixture("SyncOverAsync")]) {
            check(runtime, &program);
        }
    });
}

fn check(runtime: &Runtime, program: &Path) {
    let place = TestFolder::new();
    let blocked = Blocked::start(runtime, program);
    let (pid, known) = (blocked.program.id(), blocked.said.clone());
    let json = place.run(&format!("stacks {pid} --format json"));
    let text = place.run(&format!("stacks {pid}"));
    drop(blocked);
    assert!(json.status.success() && text.status.success(), "{}{}", said_by_tool(&json), said_by_tool(&text));
    let found: Value = serde_json::from_slice(&json.stdout).expect("JSON");
    let threads = found["threads"].as_array().expect("threads");
    let pending = found["pending"].as_array().expect("operations");
    assert_eq!(known.len(), 9, "{known:#?}");
    for (name, (frames, waits_for)) in &known {
        let thread = threads.iter().find(|thread| thread["name"] == **name).expect("the thread");
        let what = format!("{} {}: {thread:#}", runtime.version, program.display());
        assert_eq!(thread["waits_for"], "a task", "{what}");
        let blocks_on = &thread["blocks_on"];
        match frames.is_empty() {
            true => assert!(blocks_on.is_null(), "{what}"),
            false => assert_eq!(&shown(blocks_on), frames, "{what}"),
        }
        // The thread stands at the end of what it waits for, and of nothing else.
        let is_of =
            |row: &&Value| row["blocked_threads"].as_array().expect("threads").iter().any(|id| *id == thread["os_id"]);
        let rows: Vec<&Value> = pending.iter().filter(is_of).collect();
        let branches = match name.as_str() {
            "all" => 0,
            "both" => 2,
            _ => 1,
        };
        assert_eq!(rows.len(), branches, "{what}: {pending:#?}");
        for row in rows {
            let stack = shown(&row["frames"]);
            assert!(waits_for.is_empty() || row["waits_for"] == **waits_for, "{what}: {row:#}");
            assert_eq!(stack.last(), Some(&format!("[thread {name}]")), "{what}: {row:#}");
            assert!(stack[..stack.len() - 1].ends_with(frames), "{what}: {row:#}");
            assert_eq!(row["blocked_threads"].as_array().map(Vec::len), Some(1), "{what}: {row:#}");
        }
    }
    // Threads that move have one of their two methods, if any.
    for thread in threads.iter().filter(|thread| thread["name"] == "turns" && !thread["blocks_on"].is_null()) {
        let methods = shown(&thread["blocks_on"]);
        let method = methods.last().and_then(|last| last.split(':').next()).expect("a method");
        assert!(["Left", "Right"].contains(&method), "{}: {thread:#}", runtime.version);
    }
    check_text(&String::from_utf8(text.stdout).expect("UTF-8"), &known);
}

/// Below a thread stand the method that it blocks on and what that awaits in turn.
fn check_text(text: &str, known: &BTreeMap<String, Blocks>) {
    let (frames, _) = &known["gets"];
    let place = |at: usize| frames[at].split_once(':').expect("a line").1;
    let expected = [
        format!("blocks on SyncOverAsync.Mail::Send (SyncOverAsync.cs:{})", place(1)),
        format!("which awaits SyncOverAsync.Mail::Connect (SyncOverAsync.cs:{})", place(0)),
        "which waits for SemaphoreSlim.WaitAsync".to_owned(),
    ];
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let at = lines.iter().position(|line| line.split_whitespace().nth(1) == Some("gets")).expect("the thread");
    assert_eq!(lines[at + 1..at + 4], expected, "{text}");
}
