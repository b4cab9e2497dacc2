//! `report --follow` next to a program that goes on for as long as the test likes.

mod common;

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use clrscope_testkit as testkit;
use common::TestFolder;
use testkit::Runtime;

/// Long enough for a start of the tool or of .NET on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// A process and its lines as they come.
struct Spoken {
    child: Child,
    lines: Receiver<String>,
}

impl Spoken {
    fn start(mut command: std::process::Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn().expect("the tool starts");
        let output = BufReader::new(child.stdout.take().expect("its output"));
        let (send, lines) = channel();
        std::thread::spawn(move || output.lines().map_while(Result::ok).try_for_each(|line| send.send(line)));
        Self { child, lines }
    }

    /// Takes lines until `found` has had enough; all of them.
    fn until(&self, what: &str, mut found: impl FnMut(&str) -> bool) -> Vec<String> {
        let deadline = Instant::now() + PATIENCE;
        let mut taken = Vec::new();
        loop {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => {
                    taken.push(line);
                    if taken.last().is_some_and(|line| found(line)) {
                        return taken;
                    }
                }
                Err(error) => panic!("{what} did not come ({error}); what came:\n{}", taken.join("\n")),
            }
        }
    }

    /// Lines that were not read yet, once the process has ended by itself, and with success.
    fn rest(mut self) -> Vec<String> {
        let deadline = Instant::now() + PATIENCE;
        let mut rest = Vec::new();
        loop {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) => rest.push(line),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => panic!("it does not end:\n{}", rest.join("\n")),
            }
        }
        assert!(self.child.wait().expect("its end").success());
        rest
    }
}

impl Drop for Spoken {
    fn drop(&mut self) {
        // Only where the test has failed does it still run.
        let _ = self.child.kill();
    }
}

/// The program that counts a batch of two steps for each line it is given, under the tool.
fn counter(place: &TestFolder, runtime: &Runtime, instruments: &str) -> (Spoken, ChildStdin) {
    let mut words: Vec<std::ffi::OsString> =
        ["run", "-q", "-o", "x.clrs", "-i", instruments, "--include", "[Counter]*", "--"].map(Into::into).into();
    words.extend(runtime.words(&testkit::fixture("Counter")));
    words.extend(["-", "2"].map(Into::into));
    let mut command = place.clrscope(words);
    runtime.prepare(&mut command);
    command.stdin(Stdio::piped());
    let mut program = Spoken::start(command);
    let input = program.child.stdin.take().expect("its input");
    (program, input)
}

fn follower(place: &TestFolder, view: &str) -> Spoken {
    Spoken::start(place.clrscope(["report", "x.clrs.d", "--view", view, "--follow"]))
}

fn say(input: &mut ChildStdin, program: &Spoken, line: &str, answer: &str) {
    writeln!(input, "{line}").expect("the program reads");
    program.until(answer, |said| said == answer);
}

fn count(lines: &[String], what: &str) -> usize {
    lines.iter().filter(|line| line.contains(what)).count()
}

#[test]
fn rows_come_while_the_program_runs_and_following_ends_with_it() {
    for runtime in testkit::runtimes() {
        let place = TestFolder::new();
        let (mut program, mut input) = counter(&place, runtime, "flow;events:runtime,jit,gc");
        say(&mut input, &program, "go", "count 2");
        let (flow, events) = (follower(&place, "flow"), follower(&place, "events"));
        let mut steps = 0;
        let mut calls = flow.until("the second step", |line| {
            steps += usize::from(line.contains("<- Counter.Program::Step"));
            steps == 2
        });
        let mut log = events.until("compilation", |line| {
            line.contains("JITCompilationFinished") && line.contains("Counter.Program.Step")
        });
        assert_eq!(count(&log, "GarbageCollectionStarted"), 0, "nothing was collected yet");
        assert!(program.child.try_wait().expect("a child").is_none(), "it waits for its input");

        say(&mut input, &program, "gc", "count 4");
        calls.extend(flow.until("the fourth step", |line| line.contains("Step") && line.contains("call 4")));
        log.extend(events.until("the collection", |line| line.contains("GarbageCollectionFinished")));
        assert!(program.child.try_wait().expect("a child").is_none(), "it waits for its input");

        drop(input);
        program.rest();
        calls.extend(flow.rest());
        log.extend(events.rest());
        let place_of = format!("on {}", runtime.version);
        assert_eq!(count(&calls, "-> Counter.Program::Step"), 4, "{place_of}:\n{}", calls.join("\n"));
        assert_eq!(count(&calls, "<- Counter.Program::Step"), 4, "{place_of}:\n{}", calls.join("\n"));
        assert!(calls.last().is_some_and(|line| line.contains("<- Counter.Program::Main")), "{place_of}");
        assert_eq!(count(&log, "GarbageCollectionStarted"), 1, "{place_of}:\n{}", log.join("\n"));
        assert_eq!(count(&log, " Shutdown"), 1, "{place_of}:\n{}", log.join("\n"));
        all_rows(&place, &log);
    }
}

/// Checks that a report shows afterwards what was followed, each row once.
fn all_rows(place: &TestFolder, followed: &[String]) {
    let output = place.run("report x.clrs --view events --interleave");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut afterwards: Vec<_> = text.lines().collect();
    let mut followed: Vec<_> = followed.iter().map(String::as_str).collect();
    // Followed rows are by time within a look; a name may have come after its first event.
    afterwards.sort_unstable();
    followed.sort_unstable();
    assert_eq!(followed.len(), afterwards.len());
    let differ = followed.iter().zip(&afterwards).filter(|(a, b)| a != b).count();
    assert!(differ <= afterwards.len() / 10, "{differ} of {} lines differ", afterwards.len());
}

#[test]
fn following_begins_before_the_program_and_refuses_what_never_comes() {
    let runtime = testkit::runtimes().last().expect("a runtime");
    let place = TestFolder::new();
    let (program, mut input) = counter(&place, runtime, "flow");
    testkit::wait_until("the beginning of a recording", || place.file("x.clrs.d").is_dir());
    let flow = follower(&place, "flow");
    let refused = place.run("report x.clrs.d --view events --follow");
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("needs the instrument 'events'"));
    say(&mut input, &program, "go", "count 2");
    drop(input);
    program.rest();
    assert_eq!(count(&flow.rest(), "-> Counter.Program::Step"), 2);
}

#[test]
fn who_reads_no_more_ends_the_following() {
    let runtime = testkit::runtimes().last().expect("a runtime");
    let place = TestFolder::new();
    let (program, mut input) = counter(&place, runtime, "flow;events:runtime,loads");
    say(&mut input, &program, "go", "count 2");
    for view in ["flow", "events"] {
        let mut command = place.clrscope(["report", "x.clrs.d", "--view", view, "--follow"]);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the tool starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("its output")).read_line(&mut line).expect("a line");
        // The reader is gone now: whatever the program does next, nothing reads the output.
        testkit::wait_until(&format!("{view}: the end without a reader"), || {
            writeln!(input, "gc").expect("the program reads");
            child.try_wait().expect("a child").is_some()
        });
    }
    drop(input);
    program.rest();
}
