//! The program that is attached to, and the tool that attaches.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Output, Stdio};

use clrscope_testkit::{self as testkit, Runtime};
use serde_json::Value;

use crate::common::TestFolder;

/// A program that serves, and throws, until it is told to end.
pub(crate) struct Server {
    child: Child,
    pub(crate) pid: u32,
}

impl Server {
    pub(crate) fn start(runtime: &Runtime) -> Self {
        Self::spawn(runtime.command(&testkit::fixture("Server")))
    }

    pub(crate) fn spawn(mut command: Command) -> Self {
        testkit::let_children_hear();
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("the program starts");
        let pid = child.id();
        let mut server = Self { child, pid };
        assert_eq!(server.line(), "ready\n");
        server
    }

    pub(crate) fn signal(&self, signal: &str) {
        kill(self.pid, signal);
    }

    pub(crate) fn tasks(&self) -> usize {
        fs::read_dir(format!("/proc/{}/task", self.pid)).expect("it lives").count()
    }

    pub(crate) fn mapped(&self) -> String {
        fs::read_to_string(format!("/proc/{}/maps", self.pid)).expect("it lives")
    }

    /// Leftovers in the program: what it has open or mapped of recordings, and threads of the
    /// agent.
    pub(crate) fn left_over(&self) -> BTreeSet<String> {
        testkit::left_over(self.pid)
    }

    /// Reads a line that it writes.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        BufReader::with_capacity(1, self.child.stdout.as_mut().expect("a pipe"))
            .read_line(&mut line)
            .expect("it writes");
        line
    }

    /// Ends in order, having done what it does without us.
    pub(crate) fn end(mut self) {
        self.signal("TERM");
        let mut said = String::new();
        self.child.stdout.take().expect("a pipe").read_to_string(&mut said).expect("text");
        assert!(self.child.wait().expect("it ends").success(), "{said}");
        assert!(said.starts_with("stopped\n") && !said.contains("WRONG"), "{said}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn kill(pid: u32, signal: &str) {
    assert!(Command::new("kill").args([format!("-{signal}"), pid.to_string()]).status().expect("kill").success());
}

pub(crate) fn attach(place: &TestFolder, pid: u32, more: &str) -> Command {
    let words = ["attach".to_owned(), pid.to_string()];
    place.clrscope(words.into_iter().chain(more.split_whitespace().map(str::to_owned)))
}

pub(crate) fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Attaches for a while, which must work.
pub(crate) fn recorded(place: &TestFolder, pid: u32, more: &str, name: &str) -> Value {
    let output = attach(place, pid, &format!("{more} -o {name}")).output().expect("the tool starts");
    assert!(output.status.success() && output.stdout.is_empty(), "{}", said(&output));
    rows(place, name)
}

pub(crate) fn rows(place: &TestFolder, name: &str) -> Value {
    let output = place.run(&format!("report {name} --view exceptions --format json"));
    assert!(output.status.success(), "{}", said(&output));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

pub(crate) fn thrown(report: &Value) -> u64 {
    report["rows"].as_array().expect("rows").iter().filter_map(|row| row["count"].as_u64()).sum()
}

/// The three lines of a refusal; nothing is recorded then.
pub(crate) fn refused(place: &TestFolder, pid: u32, more: &str) -> String {
    // Where it is not refused after all, that must end.
    let more = if more.contains("--duration") { more.to_owned() } else { format!("{more} --duration 1s") };
    let before = fs::read_dir(place.path()).expect("a folder").count();
    let output = attach(place, pid, &more).output().expect("the tool starts");
    let said = said(&output);
    assert!(!output.status.success(), "{said}");
    let lines: Vec<&str> = said.lines().map(|line| line.split(' ').next().unwrap_or_default()).collect();
    assert_eq!(lines, ["error:", "why:", "hint:"], "{said}");
    assert_eq!(fs::read_dir(place.path()).expect("a folder").count(), before, "nothing is left");
    said
}

pub(crate) fn some_runtime() -> &'static Runtime {
    testkit::runtimes().first().expect("a runtime")
}

pub(crate) fn listed(place: &TestFolder, pid: u32) -> Value {
    let output = place.run("ps --format json");
    let list: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(list["schema"], "clrscope.ps/1");
    let rows = list["rows"].as_array().expect("rows");
    rows.iter().find(|row| row["pid"] == pid).unwrap_or_else(|| panic!("{pid} is in {list:#}")).clone()
}
