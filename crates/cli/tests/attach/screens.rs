//! `counters PID` and `top PID`: what is shown of a program that runs, and what is left of it.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use clrscope_testkit::{self as testkit, Runtime, each_runtime};
use rustix::termios::{Winsize, tcgetattr, tcsetwinsize};
use serde_json::Value;

use crate::common::TestFolder;
use crate::common::terminal::open_terminal;
use crate::server::{kill, said};
use crate::waiting::Waiting;

/// The row whose column has such a value.
fn row<'a>(rows: &'a Value, column: &str, wanted: &str) -> &'a Value {
    let found = rows.as_array().and_then(|rows| rows.iter().find(|row| row[column] == wanted));
    found.unwrap_or_else(|| panic!("no {wanted} in {rows:#}"))
}

/// Nothing of us is open or mapped in the program.
fn assert_left(pid: u32, place: &str) {
    let left = || testkit::left_over(pid);
    testkit::wait_until(&format!("the agent leaves, {place}"), || left().is_empty());
}

#[test]
fn counters_of_a_running_program_are_shown_once_and_the_agent_leaves() {
    each_runtime(|runtime| {
        let (place, mut program) = (TestFolder::new(), Waiting::start(runtime, "Counts", &["80", "wait"]));
        program.begin();
        // Its meter is made behind the line.
        testkit::pause(Duration::from_secs(1));
        let pid = program.child.id();
        let report = place.json(&format!("counters {pid} --once"));
        let rows = &report["rows"];
        let of = |provider: &str, name: &str| {
            let all = rows.as_array().into_iter().flatten();
            all.filter(|row| row["provider"] == provider && row["name"] == name).collect::<Vec<_>>()
        };
        assert_eq!(of("Counts.Shop", "level")[0]["value"], 7.25, "{rows:#} on {}", runtime.version);
        assert_eq!(of("Counts.Source", "level")[0]["value"], 42.5, "{rows:#} on {}", runtime.version);
        let tags: Vec<&Value> = of("Counts.Shop", "orders").iter().map(|row| &row["tags"]).collect();
        assert_eq!(tags, ["kind=new", "kind=old"], "{rows:#} on {}", runtime.version);
        let memory = of("System.Runtime", "working-set")[0]["value"].as_f64();
        assert!(memory.is_some_and(|megabytes| (10.0..1_000.0).contains(&megabytes)), "{memory:?}");
        let chosen = place.json(&format!("counters {pid} --name level --once"));
        assert_eq!(chosen["rows"].as_array().map(Vec::len), Some(2), "{chosen:#}");
        assert_left(pid, &runtime.version.to_string());
    });
}

#[test]
fn top_shows_what_a_busy_program_says_that_it_does() {
    each_runtime(|runtime| {
        let (place, mut program) = (TestFolder::new(), Waiting::start(runtime, "Busy", &[]));
        let pid = program.child.id();
        let report = place.json(&format!("top {pid} --once"));
        assert_left(pid, &runtime.version.to_string());
        let output = program.go_on("");
        let per_second = |word: &str| {
            let line = output.iter().find_map(|line| line.strip_prefix(word)).expect("a line");
            let numbers: Vec<f64> = line.split_whitespace().map(|number| number.parse().expect("a number")).collect();
            numbers[0] / numbers[1] * 1e9
        };
        let place = format!("{report:#} {output:?} on {}", runtime.version);
        assert_eq!((&report["schema"], &report["seconds"]), (&"clrscope.top/1".into(), &5.into()), "{place}");
        let hot = &report["methods"][0];
        assert_eq!(hot["name"], "Busy.Program::Crunch", "{place}");
        // One sample for each 100 kB: some 60 in three seconds.
        let parcels = row(&report["allocations"], "type", "Busy.Parcel")["bytes_per_s"].as_f64().expect("a rate");
        let allocated = per_second("ALLOCATED ");
        assert!((0.5..2.0).contains(&(parcels / allocated)), "{parcels} of {allocated}, {place}");
        let thrown = row(&report["exceptions"], "type", "Busy.Late")["count"].as_f64().expect("a count");
        let expected = per_second("THROWN ") * 5.0;
        assert!(thrown > expected / 2.0 && thrown < expected * 1.5, "{thrown} of {expected}, {place}");
        // One of the two threads has the lock, and the other one waits for it, all the time.
        let locks = report["pool"].as_array().expect("rows").iter().filter(|row| row["type"] == "object");
        let waited = locks.filter_map(|row| row["total_ns"].as_u64()).max().expect("a lock");
        assert!((2_500_000_000..6_000_000_000).contains(&waited), "{waited}, {place}");
        assert!(row(&report["counters"], "name", "exception-count")["value"].as_f64() > Some(10.0), "{place}");
    });
}

/// The tool at a terminal of 80 columns and 24 lines.
struct Terminal {
    tool: Child,
    master: File,
    slave: File,
    shown: String,
}

impl Terminal {
    fn start(place: &TestFolder, words: &str) -> Self {
        let (master, slave) = open_terminal();
        let size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&slave, size).expect("a size");
        let copy = || slave.try_clone().expect("a copy");
        let mut command = Command::new(env!("CARGO_BIN_EXE_clrscope"));
        command.args(words.split_whitespace()).current_dir(place.path());
        command.env("TERM", "xterm-256color").stdin(copy()).stdout(copy()).stderr(copy());
        let tool = command.spawn().expect("the tool starts");
        Self { tool, master, slave, shown: String::new() }
    }

    /// Reads until the terminal has been sent a text.
    fn wait_for(&mut self, text: &str) {
        let began = Instant::now();
        let mut bytes = [0; 4096];
        while !self.shown.contains(text) {
            assert!(began.elapsed() < Duration::from_secs(60), "no {text:?} in {:?}", self.shown);
            let read = self.master.read(&mut bytes).expect("the terminal is there");
            self.shown.push_str(&String::from_utf8_lossy(&bytes[..read]));
        }
    }

    fn press(&mut self, keys: &str) {
        self.shown.clear();
        self.master.write_all(keys.as_bytes()).expect("a key press");
    }

    /// How the tool ends, which leaves the terminal as it was.
    fn end(mut self, as_before: &str) -> Option<i32> {
        self.wait_for("\u{1b}[?1049l");
        let status = self.tool.wait().expect("it ends");
        assert_eq!(modes(&self.slave), as_before);
        status.code()
    }
}

fn modes(terminal: &File) -> String {
    let modes = tcgetattr(terminal).expect("its modes");
    format!("{:?} {:?} {:?} {:?}", modes.input_modes, modes.output_modes, modes.local_modes, modes.control_modes)
}

fn newest() -> &'static Runtime {
    testkit::runtimes().last().expect("a runtime")
}

#[test]
fn a_screen_shows_its_pages_and_gives_the_terminal_back_on_every_end() {
    for (command, how) in [("counters", "q"), ("top", "\u{3}"), ("top", "TERM"), ("top", "HUP"), ("counters", "gone")] {
        let (place, mut program) = (TestFolder::new(), Waiting::start(newest(), "Busy", &[]));
        let pid = program.child.id();
        let mut terminal = Terminal::start(&place, &format!("{command} {pid}"));
        // As a terminal is before anything changes it.
        let before = modes(&open_terminal().1);
        terminal.wait_for("exceptions");
        assert_ne!(modes(&terminal.slave), before, "keys come one by one");
        if command == "top" {
            terminal.wait_for("Crunch");
            for (key, text) in
                [("2", "Parcel"), ("4", "Busy.Late"), ("5", "threadpool"), ("/late\r", "late"), ("1", "methods")]
            {
                terminal.press(key);
                terminal.wait_for(text);
            }
        }
        // A paused screen waits for keys, and does nothing meanwhile.
        terminal.press("p");
        terminal.wait_for("paused");
        let used = |tool: u32| clr_diagnostics::Process::open(tool).expect("it lives").cpu_time();
        let before_pause = used(terminal.tool.id());
        testkit::pause(Duration::from_secs(1));
        let paused = used(terminal.tool.id()) - before_pause;
        assert!(paused < Duration::from_millis(200), "{paused:?} of a second for {command}");
        match how {
            "TERM" | "HUP" => kill(terminal.tool.id(), how),
            "gone" => drop(program.go_on("")),
            key => terminal.press(key),
        }
        assert_eq!(terminal.end(&before), Some(0), "{command} ended by {how:?}");
        if how != "gone" {
            assert_left(pid, how);
        }
    }
}

#[test]
fn without_a_terminal_lines_are_printed_until_nobody_reads_them() {
    let (place, program) = (TestFolder::new(), Waiting::start(newest(), "Busy", &[]));
    let pid = program.child.id();
    let mut command = place.clrscope(["top".to_owned(), pid.to_string()]);
    let mut tool = command.stdout(Stdio::piped()).spawn().expect("the tool starts");
    let mut lines = BufReader::new(tool.stdout.take().expect("a pipe")).lines().map(|line| line.expect("text"));
    assert!(lines.any(|line| line == format!("clrscope top {pid}")));
    assert!(lines.any(|line| line.contains("Crunch")));
    drop(lines);
    assert!(tool.wait().expect("it ends").success());
    assert_left(pid, "whose lines nobody reads");
}

#[test]
fn what_can_t_be_shown_is_refused_by_name() {
    let place = TestFolder::new();
    let refused = |words: &str| {
        let output = place.run(words);
        assert!(!output.status.success(), "{words}");
        (output.status.code(), said(&output))
    };
    for command in ["counters", "top"] {
        let (code, text) = refused(&format!("{command} 1 --format json"));
        assert_eq!(code, Some(2), "{text}");
        assert!(text.contains("hint: add --once"), "{text}");
        let (code, text) = refused(&format!("{command} 4194304 --once"));
        assert_eq!(code, Some(1), "{text}");
        assert!(text.contains("there is no such process"), "{text}");
        let (code, text) = refused(&format!("{command} nobody-has-this --once"));
        assert!(code == Some(1) && text.contains("no process runs a program called 'nobody-has-this'"), "{text}");
    }
}
