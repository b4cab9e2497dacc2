//! `attach PID -i awaits`: awaits of a program that runs already.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdout, Stdio};
use std::time::Duration;

use clrscope_testkit as testkit;
use serde_json::Value;

use crate::common::TestFolder;
use crate::server::{attach, kill, said};

/// The program, which waits for lines of its input.
struct Waiting {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Waiting {
    fn start(runtime: &testkit::Runtime) -> Self {
        let mut command = runtime.command(&testkit::fixture("Waits"));
        command.args(["10", "wait"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut this = Self { child, output };
        this.read_to("READY");
        this
    }

    /// Lets it go on, and reads what it prints up to a line of it, or to its end.
    fn go_on(&mut self, last: &str) -> Vec<String> {
        self.child.stdin.as_mut().expect("a pipe").write_all(b"\n").expect("it reads");
        self.read_to(last)
    }

    fn read_to(&mut self, last: &str) -> Vec<String> {
        let lines = Read::by_ref(&mut self.output).lines().map(|line| line.expect("it writes"));
        let mut read = Vec::new();
        for line in lines {
            let is_last = line == last;
            read.push(line);
            if is_last {
                break;
            }
        }
        read
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Line, count, failures and cancellations of each await that the program has printed.
fn printed(lines: &[String]) -> Vec<[u64; 4]> {
    let parse = |line: &String| {
        let (name, numbers) = line.strip_prefix("AWAIT ")?.split_once(' ')?;
        let numbers: Vec<u64> = numbers.split(' ').filter_map(|number| number.parse().ok()).collect();
        Some([name.split_once(':')?.1.parse().ok()?, numbers[0], numbers[1], numbers[2]])
    };
    lines.iter().filter_map(parse).collect()
}

fn rows(place: &TestFolder, name: &str) -> Vec<Value> {
    let report = place.run(&format!("report {name} --view awaits --format json"));
    assert!(report.status.success(), "{}", said(&report));
    let report: Value = serde_json::from_slice(&report.stdout).expect("JSON");
    report["rows"].as_array().expect("rows").clone()
}

/// Whether the agent follows the program's code: its methods were asked for.
fn is_following(place: &TestFolder, name: &str) -> bool {
    let folder = place.file(&format!("{name}.d"));
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    files.into_iter().any(|file| file.path().join("process.log").is_file())
}

/// A method that waits when a recording ends goes on in its changed code, whichever recording is
/// under way then.
#[test]
fn awaits_in_a_running_program_are_those_that_it_counts_and_it_goes_on_between_two_recordings() {
    testkit::each_runtime(|runtime| {
        let (place, mut program) = (TestFolder::new(), Waiting::start(runtime));
        let mut known: Vec<[u64; 4]> = Vec::new();
        for (name, last, forgotten) in [("first.clrs", "DONE", 3), ("second.clrs", "", 0)] {
            let options = format!("-q -i awaits -o {name}");
            let mut recorder = attach(&place, program.child.id(), &options).spawn().expect("the tool starts");
            testkit::wait_until("it records", || is_following(&place, name));
            testkit::pause(Duration::from_secs(1));
            let output = program.go_on(last);
            // Of the first, while the program waits for its input; the second ends with the
            // program.
            if !last.is_empty() {
                kill(recorder.id(), "INT");
            }
            assert!(recorder.wait().expect("it ends").success(), "{output:?} on {}", runtime.version);
            let (all, rows) = (printed(&output), rows(&place, name));
            assert_eq!(all.len(), 14, "{output:?}");
            for line in all {
                let before = known.iter().find(|before| before[0] == line[0]).map_or([0; 4], |before| *before);
                let now: Vec<u64> = (1..4).map(|at| line[at] - before[at]).collect();
                let row = rows.iter().find(|row| row["line"].as_u64() == Some(line[0]));
                let found =
                    ["count", "failed", "cancelled"].map(|key| row.map_or(0, |row| row[key].as_u64().unwrap_or(0)));
                assert_eq!(found.as_slice(), now, "{name}, line {}: {output:?} on {}", line[0], runtime.version);
            }
            let pending = rows.iter().filter_map(|row| row["pending"].as_u64()).sum::<u64>();
            // The program's own Main waits beside them, unless it reads its input.
            assert!(pending >= forgotten && pending <= forgotten + 1, "{rows:#?}");
            known = printed(&output);
        }
        assert!(program.child.wait().expect("it ends").success(), "on {}", runtime.version);
    });
}
