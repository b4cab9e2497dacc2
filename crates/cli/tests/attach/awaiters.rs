//! Who awaits a method that throws, in a program that runs already: nothing told of its methods
//! when they were compiled.

use std::collections::BTreeMap;
use std::fs::DirEntry;
use std::process::Stdio;
use std::time::Duration;

use clrscope_testkit::{each_runtime, fixture, left_over, wait_for_work};
use serde_json::Value;

use crate::common::TestFolder;
use crate::server::said;
use crate::stacks::Hung;

/// The greatest amount of a column among the rows of a function.
fn total_of(rows: &[Value], name: &str, column: &str) -> u64 {
    let named = rows.iter().filter(|row| row["name"] == name);
    named.filter_map(|row| row[column].as_u64()).max().unwrap_or(0)
}

#[test]
fn throws_have_who_awaits_them_in_a_program_that_runs_already() {
    each_runtime(|runtime| {
        let place = TestFolder::new();
        let mut command = runtime.command(&fixture("Awaited"));
        let mut program = command.arg("100000").stdout(Stdio::null()).spawn().expect("the program starts");
        wait_for_work(program.id(), Duration::from_millis(500));
        let attached = place.run(&format!("attach {} -q --duration 3s -i exceptions -o a.clrs", program.id()));
        let goes_on = program.try_wait().expect("a state").is_none();
        program.kill().expect("it can be ended");
        program.wait().expect("it ends");
        assert!(attached.status.success() && goes_on, "{}", said(&attached));

        let shown = place.run("report a.clrs --view functions --metric exceptions --json");
        assert!(shown.status.success(), "{}", said(&shown));
        let document: Value = serde_json::from_slice(&shown.stdout).expect("JSON");
        let rows = document["rows"].as_array().expect("rows");
        let total = |name| total_of(rows, name, "total_exceptions");
        let (thrown, main) = (total("Awaited.Shop::Refuse"), total("Awaited.Program::Main"));
        // Before the agent's thread has looked the methods up their awaiters are unknown, and
        // called so.
        assert_eq!(main + total("[unknown awaiter]"), thrown, "{}: {rows:#?}", runtime.version);
        assert!(main * 2 > thrown && thrown > 10, "{}: {main} of {thrown}", runtime.version);
    });
}

/// Timers copy at once who awaits a method, again in each recording.
#[test]
fn samples_have_who_awaits_them_each_time_that_a_program_is_attached_to() {
    each_runtime(|runtime| {
        let place = TestFolder::new();
        let mut command = runtime.command(&fixture("Burning"));
        let mut program =
            command.args(["100000", "20", "rapid"]).stdout(Stdio::null()).spawn().expect("the program starts");
        wait_for_work(program.id(), Duration::from_millis(500));
        let attached = ["a", "b"]
            .map(|name| place.run(&format!("attach {} -q --force --duration 2s -i cpu -o {name}.clrs", program.id())));
        let goes_on = program.try_wait().expect("a state").is_none();
        program.kill().expect("it can be ended");
        program.wait().expect("it ends");
        for (attached, name) in attached.iter().zip(["a", "b"]) {
            assert!(attached.status.success() && goes_on, "{}", said(attached));
            let shown = place.run(&format!("report {name}.clrs --view functions --metric cpu --json"));
            let document: Value = serde_json::from_slice(&shown.stdout).expect("JSON");
            let rows = document["rows"].as_array().expect("rows");
            let total = |name| total_of(rows, name, "total_cpu_ns");
            let (main, unknown) = (total("Burning.Program::Main"), total("[unknown awaiter]"));
            assert!(main > 3 * unknown && main > 0, "{} {name}: {main}, {unknown}: {rows:#?}", runtime.version);
        }
    });
}

/// What the system says of a program's signals: those that it handles and ignores, those that each
/// thread blocks, and its timers.
#[derive(Debug, PartialEq, Eq)]
struct Signals {
    actions: Vec<String>,
    blocked: BTreeMap<u32, String>,
    timers: Option<String>,
}

impl Signals {
    fn of_program(pid: u32) -> Self {
        let line =
            |text: &str, key: &str| text.lines().find(|line| line.starts_with(key)).unwrap_or_default().to_owned();
        let status = std::fs::read_to_string(format!("/proc/{pid}/status")).expect("a program");
        let blocked_by = |entry: std::io::Result<DirEntry>| {
            let entry = entry.ok()?;
            let text = std::fs::read_to_string(entry.path().join("status")).ok()?;
            Some((entry.file_name().to_str()?.parse().ok()?, line(&text, "SigBlk")))
        };
        let threads = std::fs::read_dir(format!("/proc/{pid}/task")).expect("threads");
        Self {
            actions: ["SigCgt", "SigIgn"].map(|key| line(&status, key)).into(),
            blocked: threads.filter_map(blocked_by).collect(),
            // Not every kernel says it.
            timers: std::fs::read_to_string(format!("/proc/{pid}/timers")).ok(),
        }
    }
}

/// With thousands of operations pending the program is as it was after each recording: signals that
/// it handles, ignores and blocks, and timers.
#[test]
fn nothing_stays_in_a_program_with_thousands_of_operations_pending() {
    each_runtime(|runtime| {
        let place = TestFolder::new();
        let hung = Hung::start(runtime, 5_000);
        let mut before = Signals::of_program(hung.pid());
        for (number, instrument) in ["cpu:engine=timer", "exceptions", "alloc", "wall"].iter().enumerate() {
            let line = format!("attach {} -q --force --duration 1s -i {instrument} -o {number}.clrs", hung.pid());
            let attached = place.run(&line);
            assert!(attached.status.success(), "{}", said(&attached));
            assert_eq!(left_over(hung.pid()), Default::default(), "{} {instrument}", runtime.version);
        }
        let mut after = Signals::of_program(hung.pid());
        // Threads come and go.
        before.blocked.retain(|thread, _| after.blocked.contains_key(thread));
        after.blocked.retain(|thread, _| before.blocked.contains_key(thread));
        assert_eq!(after, before, "{}", runtime.version);
        assert!(before.blocked.len() > 2, "{before:?}");
        hung.end();
    });
}
