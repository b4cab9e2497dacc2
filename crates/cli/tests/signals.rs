//! Signals and the terminal: the launcher hands each signal to the program, once.

mod common;

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use clrscope_testkit::{Runtime, Service, each_runtime, fixture};
use common::TestFolder;
use common::terminal::open_terminal;
use rustix::process::{Pid, Signal, kill_process};

/// A program that counts the signals it gets and says how many after the first.
const COUNTER: &str = "n=0; trap 'n=$((n+1))' TERM INT HUP USR1; echo ready; \
                       while [ $n -eq 0 ]; do sleep 0.05; done; sleep 0.3; echo count $n; exit 7";

fn started(place: &TestFolder, script: &str) -> (Child, BufReader<impl Read + use<>>) {
    let mut command = place.clrscope(["run", "-q", "-o", "x.clrs", "--", "bash", "-c", script]);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("the tool starts");
    let mut output = BufReader::new(child.stdout.take().expect("its output"));
    let mut line = String::new();
    output.read_line(&mut line).expect("a line");
    assert_eq!(line, "ready\n");
    (child, output)
}

/// Whether the launcher lived to its own end: these programs are not .NET, so it takes their empty
/// recording away.
fn went_on(place: &TestFolder) -> bool {
    !place.file("x.clrs.d").exists() && !place.file("x.clrs").exists()
}

fn signal(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(child.id() as i32).expect("a process id");
    kill_process(pid, signal).expect("the launcher lives");
}

#[test]
fn signals_to_the_launcher_reach_the_program_once() {
    for sent in [Signal::TERM, Signal::INT, Signal::HUP, Signal::USR1] {
        let place = TestFolder::new();
        let (mut child, mut output) = started(&place, COUNTER);
        signal(&child, sent);
        let mut rest = String::new();
        output.read_to_string(&mut rest).expect("the rest");
        assert_eq!(rest, "count 1\n", "{sent:?}");
        assert_eq!(child.wait().expect("its end").code(), Some(7), "{sent:?}");
        assert!(went_on(&place), "{sent:?}");
    }
}

#[test]
fn a_program_ended_by_a_signal_gives_128_and_its_number() {
    let place = TestFolder::new();
    let (mut child, _output) = started(&place, "echo ready; while :; do sleep 0.05; done");
    signal(&child, Signal::TERM);
    assert_eq!(child.wait().expect("its end").code(), Some(143));
    assert!(went_on(&place));
}

#[test]
fn ignored_signals_stay_ignored() {
    let place = TestFolder::new();
    let tool = env!("CARGO_BIN_EXE_clrscope");
    let script = format!("trap '' HUP; {tool} run -q -o x.clrs -- bash -c 'kill -HUP $PPID $$; echo alive'");
    let output = Command::new("bash").args(["-c", &script]).current_dir(place.path()).output().expect("a shell");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "alive\n");
}

/// A program under the launcher at a terminal of its own, ended by Ctrl-C once it has said `ready`:
/// how it ended, and what the terminal showed until the text `last`.
fn interrupted_at_a_terminal(
    place: &TestFolder,
    runtime: Option<&Runtime>,
    words: &[OsString],
    last: &str,
) -> (Option<i32>, String) {
    let tool = ["run", "-o", "x.clrs", "--"].into_iter().map(OsString::from);
    tool_at_a_terminal(place, runtime, tool.chain(words.iter().cloned()), ("ready", last))
}

/// The tool at a terminal of its own, interrupted by Ctrl-C once that shows the text `first`: how
/// it ended, and what the terminal showed until the text `last`.
fn tool_at_a_terminal(
    place: &TestFolder,
    runtime: Option<&Runtime>,
    words: impl IntoIterator<Item = OsString>,
    (first, last): (&str, &str),
) -> (Option<i32>, String) {
    let (mut master, slave) = open_terminal();
    let mut command = Command::new("setsid");
    command.args(["--ctty", "--wait", env!("CARGO_BIN_EXE_clrscope")]).args(words);
    if let Some(runtime) = runtime {
        runtime.prepare(&mut command);
    }
    command.current_dir(place.path()).stdin(slave.try_clone().expect("a copy"));
    command.stdout(slave.try_clone().expect("a copy")).stderr(slave);
    let mut child = command.spawn().expect("setsid starts");
    drop(command);
    let mut seen = wait_for(&mut master, first);
    master.write_all(b"\x03").expect("a key press");
    let status = child.wait().expect("its end");
    seen.push_str(&wait_for(&mut master, last));
    (status.code(), seen)
}

#[test]
fn ctrl_c_at_a_terminal_reaches_the_program_once_and_the_launcher_goes_on() {
    let place = TestFolder::new();
    let words = ["bash", "-c", COUNTER].map(OsString::from);
    let (code, seen) = interrupted_at_a_terminal(&place, None, &words, "count ");
    assert_eq!(code, Some(7), "{seen}");
    assert!(seen.contains("count 1"), "{seen}");
    assert!(went_on(&place), "{seen}");
}

#[test]
fn the_line_at_the_start_of_run_stands_at_a_terminal_only() {
    let place = TestFolder::new();
    let words = ["bash", "-c", COUNTER].map(OsString::from);
    let (_, seen) = interrupted_at_a_terminal(&place, None, &words, "count ");
    let line = "clrscope: recording to 'x.clrs' until the program ends; Ctrl-C goes to the program";
    assert_eq!(seen.lines().next().map(str::trim_end), Some(line), "{seen}");
    let piped = place.run("run -o y.clrs -- true");
    assert!(!String::from_utf8_lossy(&piped.stderr).contains("recording to"), "{piped:?}");
}

#[test]
fn ctrl_c_at_a_terminal_ends_a_dotnet_server_and_its_recording_in_order() {
    each_runtime(|runtime| {
        let place = TestFolder::new();
        let words = runtime.words(&fixture("Server"));
        let (code, seen) = interrupted_at_a_terminal(&place, Some(runtime), &words, "clrscope: recorded");
        assert_eq!(code, Some(0), "{seen}");
        assert!(seen.contains("stopped"), "{seen}");
        let recording = clrscope_recording::open(&place.file("x.clrs")).expect("a recording");
        assert!(recording.processes[0].complete && recording.problems.is_empty(), "on {}", runtime.version);
    });
}

#[test]
fn attaching_at_a_terminal_shows_a_line_that_each_second_replaces_until_ctrl_c() {
    let (place, runtime) = (TestFolder::new(), clrscope_testkit::runtimes().last().expect("a runtime"));
    let server = Service::start(runtime.command(&fixture("Server")));
    let words = ["attach", &server.id().to_string(), "-i", "exceptions", "-o", "x.clrs"].map(OsString::from);
    // Two lines: the second takes the place of the first.
    let (code, seen) = tool_at_a_terminal(&place, None, words, ("clrscope: 2 s, ", "clrscope: recorded"));
    assert_eq!(code, Some(0), "{seen}");
    let lines: Vec<&str> = seen.split('\r').filter(|line| line.starts_with("clrscope: 1 s, ")).collect();
    assert!(lines.len() == 1 && lines[0].ends_with(" lost; Ctrl-C ends the recording\u{1b}[K"), "{seen:?}");
    assert!(lines[0].contains(" MB of events, "), "{seen:?}");
    // It is gone before anything else is said.
    let after = seen.rsplit("Ctrl-C ends the recording\u{1b}[K").next().expect("what came last");
    assert!(after.trim_start_matches("^C").starts_with("\r\u{1b}[K"), "{seen:?}");
    server.stop("TERM").expect_success();
}

#[test]
fn attaching_with_probes_at_a_terminal_shows_rows_of_them_that_each_second_replaces() {
    let (place, runtime) = (TestFolder::new(), clrscope_testkit::runtimes().last().expect("a runtime"));
    let server = Service::start(runtime.command(&fixture("Server")));
    let words = ["attach", &server.id().to_string(), "--probe", "Server.Program::*", "-o", "x.clrs"];
    let words = words.map(OsString::from);
    let (code, seen) = tool_at_a_terminal(&place, None, words, ("clrscope: 3 s, ", "clrscope: recorded"));
    assert_eq!(code, Some(0), "{seen}");
    let rows = |end: &str| seen.lines().map(|line| line.trim()).filter(|line| line.ends_with(end)).collect::<Vec<_>>();
    let parsed = rows("  Server.Program.Parse(string)\u{1b}[K");
    let calls: Vec<u64> = parsed
        .iter()
        .map(|row| row.split_whitespace().next().expect("calls").replace(',', "").parse().expect("a number"))
        .collect();
    assert!(calls.len() >= 2 && calls.windows(2).all(|pair| pair[0] < pair[1]), "{seen:?}");
    assert!(parsed.iter().all(|row| row.contains(" ns  ") || row.contains(" µs  ")), "percentiles: {seen:?}");
    assert!(!rows("99 %  method\u{1b}[K").is_empty(), "{seen:?}");
    // All of it is gone before anything else is said: the cursor goes up to the first line.
    let after = seen.rsplit("\u{1b}[K").next().expect("what came last");
    assert!(after.contains("A\r\u{1b}[J"), "{seen:?}");
    server.stop("TERM").expect_success();
}

#[test]
fn a_line_while_the_program_runs_is_shown_where_it_is_asked_for() {
    let (place, runtime) = (TestFolder::new(), clrscope_testkit::runtimes().last().expect("a runtime"));
    let options = ["run", "--live", "-i", "exceptions", "-o", "x.clrs", "--"].map(OsString::from);
    let words = options.into_iter().chain(runtime.words(&fixture("Server")));
    let (code, seen) = tool_at_a_terminal(&place, Some(runtime), words, ("clrscope: 2 s, ", "clrscope: recorded"));
    assert_eq!(code, Some(0), "{seen}");
    let ending = " lost; the program's end ends the recording\u{1b}[K";
    assert!(seen.split('\r').any(|line| line.starts_with("clrscope: ") && line.ends_with(ending)), "{seen:?}");
    // It is taken away when the program has ended, and nothing of it goes into pipes.
    assert!(seen.rsplit(ending).next().is_some_and(|after| after.contains("\r\u{1b}[K")), "{seen:?}");
    let piped = place.run("run --live -o y.clrs -- true");
    assert!(piped.status.success() && !String::from_utf8_lossy(&piped.stderr).contains(" lost; "), "{piped:?}");
}

/// Text of the terminal up to and a little after `text`.
fn wait_for(master: &mut File, text: &str) -> String {
    let (mut seen, mut buffer, began) = (String::new(), [0_u8; 1024], Instant::now());
    while began.elapsed() < Duration::from_secs(20) {
        // At the end of the other side reading fails; then all has been seen.
        let Ok(count) = master.read(&mut buffer) else { break };
        seen.push_str(&String::from_utf8_lossy(&buffer[..count]));
        // A line ends with a line feed, or, where the next one takes its place, with what clears
        // the rest of it.
        if seen.contains(text) && seen.ends_with(['\n', 'K']) {
            break;
        }
    }
    assert!(seen.contains(text), "{seen}");
    seen
}
