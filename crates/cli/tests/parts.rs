//! The recording of a program that runs is stopped, started and marked, and reports select its
//! parts.

mod common;

use std::ffi::OsString;
use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};

use clrscope_testkit as testkit;
use common::TestFolder;
use serde_json::Value;
use testkit::{Runtime, each_runtime, fixture, runtimes};

/// Calls that the program makes for each line that it reads.
const BATCH: u64 = 1_000;
const STEP: &str = "Counter.Program::Step";

/// A program under the tool that does what it is told to.
struct Told<'p> {
    place: &'p TestFolder,
    tool: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    pid: u64,
}

impl<'p> Told<'p> {
    fn start(place: &'p TestFolder, runtime: &Runtime, options: &[&str], (name, arguments): (&str, &[String])) -> Self {
        let mut words: Vec<OsString> = ["run", "-o", "c.clrs"].iter().chain(options).map(OsString::from).collect();
        words.push("--".into());
        words.extend(runtime.words(&fixture(name)));
        words.extend(arguments.iter().map(OsString::from));
        let mut command: Command = place.clrscope(words);
        runtime.prepare(&mut command);
        let mut tool =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
        let (input, output) = (tool.stdin.take(), BufReader::new(tool.stdout.take().expect("its output")));
        Self { place, tool, input, output, pid: 0 }
    }

    /// A program that makes a batch of calls when it is told to, and none otherwise.
    fn counter(place: &'p TestFolder, runtime: &Runtime, options: &[&str]) -> Self {
        let mut counter = Self::start(place, runtime, options, ("Counter", &["-".to_owned(), BATCH.to_string()]));
        counter.count(1);
        counter.find_pid();
        counter
    }

    /// Finds the process, once the program runs.
    fn find_pid(&mut self) {
        let report = self.place.json("report c.clrs.d");
        self.pid = report["recording"]["processes"][0]["pid"].as_u64().expect("a process");
    }

    /// Waits for the program's next line, which must be this one.
    fn says(&mut self, expected: &str) {
        let mut line = String::new();
        self.output.read_line(&mut line).expect("it answers");
        assert_eq!(line.trim_end(), expected);
    }

    /// Lets the program make so many batches; returns when it waits for more.
    fn count(&mut self, batches: usize) {
        for _ in 0..batches {
            let input = self.input.as_mut().expect("its input is open");
            input.write_all(b"go\n").and_then(|()| input.flush()).expect("it reads");
            let mut line = String::new();
            self.output.read_line(&mut line).expect("it answers");
            assert!(line.starts_with("count "), "{line}");
        }
    }

    fn record(&self, command: &str) -> Output {
        self.place.run(&format!("record {} {command}", self.pid))
    }

    fn switch(&self, command: &str) {
        let output = self.record(command);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// Reason that the tool gives for refusing a command that makes no sense.
    fn refusal(&self, command: &str) -> String {
        let output = self.record(command);
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        reason(&output)
    }

    fn end(mut self) {
        drop(self.input.take());
        assert!(self.tool.wait().expect("it ends").success());
    }
}

/// The second of the three lines of an error.
fn reason(output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 3, "{text}");
    lines[1].trim_start_matches("why: ").trim().to_owned()
}

/// Batches of calls that a report shows.
fn batches(place: &TestFolder, recording: &str, options: &str) -> f64 {
    let document = place.json(&format!("report {recording} --view functions {options}"));
    let rows = document["rows"].as_array().expect("rows").iter().filter(|row| row["name"] == STEP);
    rows.filter_map(|row| row["calls"].as_u64()).sum::<u64>() as f64 / BATCH as f64
}

fn part_names(document: &Value) -> Vec<String> {
    let parts = document["recording"]["parts"].as_array().map_or(&[][..], Vec::as_slice);
    parts.iter().map(|part| part["name"].as_str().expect("a name").to_owned()).collect()
}

#[test]
fn reports_show_the_parts_of_a_recording_that_was_switched_while_the_program_ran() {
    each_runtime(|runtime| {
        let place = TestFolder::new();
        let mut program = Told::counter(&place, runtime, &["-i", "calls", "-i", "flow:all"]);
        program.count(1);
        program.switch("mark warm");
        program.count(3);
        program.switch("stop");
        program.count(4);
        assert_eq!(program.refusal("stop"), "nothing is recorded right now");
        program.switch("start load");
        program.count(5);
        assert_eq!(program.refusal("start"), "it is being recorded already");
        // While it runs, too.
        assert_eq!(batches(&place, "c.clrs.d", "--part warm"), 3.0, "on {}", runtime.version);
        program.switch("stop");
        program.switch("start");
        program.count(2);
        program.end();

        let on = format!("on {}", runtime.version);
        for (options, expected) in
            [("", 12.0), ("--part 1", 2.0), ("--part warm", 3.0), ("--part load", 5.0), ("--part 4", 2.0)]
        {
            assert_eq!(batches(&place, "c.clrs", options), expected, "{options} {on}");
        }
        assert_eq!(batches(&place, "c.clrs", "--part warm --part load"), 8.0, "{on}");
        let warm = place.json("report c.clrs --view flow --function *::Step --part warm");
        let enters = warm["rows"].as_array().expect("rows").iter().filter(|row| row["event"] == "enter").count();
        assert_eq!(enters as u64, 3 * BATCH, "{on}");
        let document = place.json("report c.clrs");
        assert_eq!(part_names(&document), ["1", "warm", "load", "4"], "{on}");
        let parts = document["recording"]["parts"].as_array().expect("parts");
        let times = |part: &Value| ["since_ns", "until_ns"].map(|key| part[key].as_u64().expect("a time"));
        assert!(parts.iter().flat_map(times).is_sorted(), "{parts:?}");
        let text = place.run("report c.clrs --view functions --part warm");
        let text = String::from_utf8_lossy(&text.stdout).into_owned();
        assert!(text.lines().any(|line| line.starts_with("only part  warm (")), "{text}");
        let collapsed = place.run("export c.clrs --to collapsed --metric calls --part load");
        let collapsed = String::from_utf8_lossy(&collapsed.stdout).into_owned();
        assert!(collapsed.lines().any(|line| line.ends_with(&format!("::Step {}", 5 * BATCH))), "{collapsed}");
    });
}

/// Objects of a type that a report of allocations shows as alive.
fn alive(place: &TestFolder, recording: &str, options: &str, type_name: &str) -> u64 {
    let document = place.json(&format!("report {recording} --view allocations {options}"));
    let rows = document["rows"].as_array().expect("rows").iter().filter(|row| row["type"] == type_name);
    rows.filter_map(|row| row["live_objects"].as_u64()).sum()
}

#[test]
fn what_was_alive_at_a_mark_is_shown_though_it_has_gone_since() {
    const KEPT: &str = "Allocated.Point[]";
    each_runtime(|runtime| {
        let place = TestFolder::new();
        let files = ["first", "second"].map(|name| place.file(name).display().to_string());
        let arguments = ["release".to_owned(), files[0].clone(), files[1].clone()];
        let mut program = Told::start(&place, runtime, &["-i", "alloc:exact,live"], ("Allocated", &arguments));
        program.says("kept 4000");
        program.find_pid();
        program.switch("mark released");
        fs::write(&files[0], "").expect("a file");
        program.says("kept 0");
        testkit::wait_until("all that was kept is gone", || alive(&place, "c.clrs.d", "", KEPT) == 0);
        program.switch("mark after");
        fs::write(&files[1], "").expect("a file");
        program.end();
        let on = format!("on {}", runtime.version);
        assert_eq!(alive(&place, "c.clrs", "--part 1", KEPT), 4_000, "{on}");
        assert_eq!(alive(&place, "c.clrs", "--part 1 --part released", KEPT), 0, "{on}");
        assert_eq!(alive(&place, "c.clrs", "", KEPT), 0, "{on}");
    });
}

/// Probes went on counting where no other instrument with hooks ran at the same time.
#[test]
fn probes_count_nothing_while_recording_is_stopped() {
    each_runtime(|runtime| {
        let place = TestFolder::new();
        let mut program = Told::counter(&place, runtime, &["--probe", STEP]);
        program.count(1);
        program.switch("stop");
        program.count(4);
        program.switch("start");
        program.count(2);
        program.end();
        let report = place.json("report c.clrs --view probes");
        assert_eq!(report["rows"][0]["calls"], 4 * BATCH, "{}: {report:#}", runtime.version);
    });
}

#[test]
fn with_a_delay_recording_begins_late_and_a_duration_counts_from_there() {
    let (place, runtime) = (TestFolder::new(), runtimes().last().expect("a runtime"));
    let mut program = Told::counter(&place, runtime, &["-i", "calls", "--delay", "1h", "--duration", "1s"]);
    program.count(3);
    assert_eq!(batches(&place, "c.clrs.d", ""), 0.0);
    program.switch("start now");
    program.count(2);
    testkit::wait_until("the recording is over", || {
        let losses = place.json("report c.clrs.d --view losses");
        losses["rows"].as_array().expect("rows").iter().any(|row| row["reason"] == "stopped")
    });
    assert_eq!(program.refusal("mark late"), "its recording is over");
    program.count(3);
    program.end();
    assert!(batches(&place, "c.clrs", "") <= 2.0);
    let document = place.json("report c.clrs --view threads");
    assert_eq!(part_names(&document), ["now"]);
    let main = document["rows"].as_array().expect("rows").iter().find(|row| row["role"] == "main");
    assert!(main.is_some(), "the first thread that is seen late is not taken for another: {document:#}");
    let printed = place.run("env --delay 10s");
    assert!(String::from_utf8_lossy(&printed.stdout).contains("delay=10000ms"), "{printed:?}");
}

#[test]
fn a_program_that_is_killed_keeps_its_parts() {
    let (place, runtime) = (TestFolder::new(), runtimes().last().expect("a runtime"));
    let mut program = Told::counter(&place, runtime, &["-i", "calls"]);
    program.switch("mark load");
    program.count(2);
    program.switch("mark end");
    program.count(3);
    let pid = program.pid as i32;
    Command::new("kill").args(["-9", &pid.to_string()]).status().expect("kill");
    program.tool.wait().expect("the tool ends");
    let parts =
        |recording: &str| ["1", "load", "end"].map(|part| batches(&place, recording, &format!("--part {part}")));
    assert_eq!(parts("c.clrs"), [1.0, 2.0, 3.0]);
    // The trees of parts stand at the end of the file: what is cut off is said, and the rest is
    // there.
    let bytes = fs::read(place.file("c.clrs")).expect("the recording");
    fs::write(place.file("cut.clrs"), &bytes[..bytes.len() * 3 / 4]).expect("a file");
    let document = place.json("report cut.clrs --view functions --part load");
    assert_eq!(part_names(&document), ["1", "load", "end"]);
    assert!(document["recording"]["problems"].is_array(), "{document:#}");
}

#[test]
fn what_can_t_be_switched_or_selected_is_one_clear_error() {
    let place = TestFolder::new().with_sample();
    let refusal = |line: &str| {
        let output = place.run(line);
        assert_eq!(output.status.code(), Some(1), "{line}: {output:?}");
        reason(&output)
    };
    assert_eq!(refusal("record 4194999 stop"), "there is no such process");
    assert_eq!(refusal(&format!("record {} stop", std::process::id())), "it does not run under the agent");
    assert_eq!(refusal("report sample.clrs --part warm"), "no part is named 'warm'; the recording has none");
    let usage = |line: &str| {
        let output = place.run(line);
        assert_eq!(output.status.code(), Some(2), "{line}: {output:?}");
        reason(&output)
    };
    assert_eq!(usage("record 1 mark"), "NAME is required");
    assert_eq!(usage("record 1 mark 12"), "numbers name the parts without a name");
    assert!(usage("report sample.clrs --view losses --part 1").contains("the whole run"));
    assert!(usage("report sample.clrs --view flow --follow --part 1").contains("once it has ended"));
}
