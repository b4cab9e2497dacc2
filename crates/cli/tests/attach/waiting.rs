//! Programs that wait for lines of their input, and what was recorded of them.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdout, Stdio};

use clrscope_testkit as testkit;
use serde_json::Value;

use crate::common::TestFolder;
use crate::server::said;

/// A program that waits for lines of its input.
pub(crate) struct Waiting {
    pub(crate) child: Child,
    output: BufReader<ChildStdout>,
}

impl Waiting {
    /// Starts a program, which says that it is ready.
    pub(crate) fn start(runtime: &testkit::Runtime, program: &str, arguments: &[&str]) -> Self {
        let mut command = runtime.command(&testkit::fixture(program));
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let output = BufReader::new(child.stdout.take().expect("a pipe"));
        let mut this = Self { child, output };
        this.read_to("READY");
        this
    }

    /// Lets it go on, and reads what it prints up to a line of it, or to its end.
    pub(crate) fn go_on(&mut self, last: &str) -> Vec<String> {
        self.begin();
        self.read_to(last)
    }

    /// Lets it go on.
    pub(crate) fn begin(&mut self) {
        self.child.stdin.as_mut().expect("a pipe").write_all(b"\n").expect("it reads");
    }

    /// Reads what it prints up to a line of it, or to its end.
    pub(crate) fn read_to(&mut self, last: &str) -> Vec<String> {
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

/// The rows of a view.
pub(crate) fn rows(place: &TestFolder, name: &str, view: &str) -> Vec<Value> {
    let report = place.run(&format!("report {name} --view {view} --format json"));
    assert!(report.status.success(), "{}", said(&report));
    let report: Value = serde_json::from_slice(&report.stdout).expect("JSON");
    report["rows"].as_array().expect("rows").clone()
}

/// Whether the agent follows the program's code: its methods were asked for.
pub(crate) fn is_following(place: &TestFolder, name: &str) -> bool {
    let folder = place.file(&format!("{name}.d"));
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    files.into_iter().any(|file| file.path().join("process.log").is_file())
}
