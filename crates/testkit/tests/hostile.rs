//! The hostile programs do bare what their tests under the profiler rely on, on every runtime.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use clrscope_testkit::{Expectations, Finished, Runtime, each_runtime, fixture, run, scratch};

fn command(runtime: &Runtime, name: &str, arguments: &[&str]) -> Command {
    let mut command = runtime.command(&fixture(name));
    command.args(arguments);
    command
}

fn run_bare(runtime: &Runtime, name: &str, arguments: &[&str]) -> Finished {
    run(command(runtime, name, arguments))
}

#[test]
fn programs_end_as_their_first_argument_says() {
    let ways: [(&[&str], i32); 13] = [
        (&["return", "255"], 255),
        (&["exit", "42"], 42),
        (&["_exit", "43"], 43),
        (&["signal", "15"], 143),
        (&["signal", "9"], 137),
        (&["signal", "2"], 130),
        (&["signal", "10"], 138),
        (&["failfast"], 134),
        (&["abort"], 134),
        (&["unhandled"], 134),
        (&["unhandled-thread"], 134),
        (&["stackoverflow"], 134),
        (&["stackoverflow-thread"], 134),
    ];
    each_runtime(|runtime| {
        for (arguments, code) in ways {
            let output = run_bare(runtime, "Ends", arguments);
            assert_eq!(output.code(), code, "{arguments:?}: {}", output.stderr_text());
            let expected = Expectations::parse(&output.stdout_text());
            assert_eq!(expected.calls("Ends.Program::Work"), Some(1000), "{arguments:?}");
        }
    });
}

#[test]
fn programs_that_go_on_say_the_same_on_every_runtime() {
    let programs: [(&str, &[&str]); 7] = [
        ("Hello", &[]),
        ("Stacks", &[]),
        ("Loading", &[]),
        ("Processes", &["start"]),
        ("Processes", &["fork"]),
        ("Shares", &[]),
        ("Counter", &["30000"]),
    ];
    let mut outputs: Vec<Vec<String>> = Vec::new();
    each_runtime(|runtime| {
        outputs.push(
            programs
                .iter()
                .map(|(name, arguments)| run_bare(runtime, name, arguments).expect_success())
                .map(|output| Expectations::other_lines(&output.stdout_text()))
                .collect(),
        );
    });
    for other in &outputs {
        assert_eq!(other, &outputs[0]);
    }
    assert_eq!(outputs[0][0], "Hello, World!\n");
    assert!(
        outputs[0][3].contains("child made 300 calls\nexit code 5\nfrom a shell\nexit code 3\n"),
        "{}",
        outputs[0][3]
    );
    assert!(outputs[0][4].contains("child 2 left with 7\n"), "{}", outputs[0][4]);
    assert!(outputs[0][6].ends_with("count 30000\n"));
}

#[test]
fn arguments_come_through() {
    let arguments = ["a b", "line\nbreak", "quote\"'", "大きさ", ""];
    each_runtime(|runtime| {
        let output = run_bare(runtime, "Echo", &arguments);
        assert_eq!(output.code(), 5);
        let start = r#"{"args":["a b","line\nbreak","quote\u0022\u0027","\u5927\u304D\u3055",""],"folder":"#;
        assert!(output.stdout_text().starts_with(start), "{}", output.stdout_text());
        assert_eq!(output.stderr_text(), "Größe, 大きさ, размер: 1 < 2 & \"3\"\n");
    });
}

#[test]
fn the_server_ends_in_order_at_sigterm() {
    each_runtime(|runtime| {
        let mut server = command(runtime, "Server", &[]);
        let mut child = server.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("starts");
        let mut output = BufReader::new(child.stdout.take().expect("piped"));
        let mut text = String::new();
        // It says that it is ready once it would hear the signal.
        output.read_line(&mut text).expect("UTF-8");
        thread::sleep(Duration::from_millis(300));
        let asked = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().expect("kill starts");
        assert!(asked.success());
        output.read_to_string(&mut text).expect("UTF-8");
        assert_eq!(child.wait().expect("ends").code(), Some(0));
        assert_eq!(Expectations::other_lines(&text), "ready\nstopped\n");
        let served = Expectations::parse(&text).calls("Server.Program::Request");
        assert!(served.is_some_and(|requests| requests > 0), "{text}");
    });
}

#[test]
fn a_child_outlives_its_parent() {
    each_runtime(|runtime| {
        let temp = scratch();
        let file = temp.path().join("pid");
        let began = Instant::now();
        run_bare(runtime, "Processes", &["outlive", "30", file.to_str().expect("UTF-8")]).expect_success();
        assert!(began.elapsed() < Duration::from_secs(20), "the parent waited");
        let pid = fs::read_to_string(&file).expect("written").trim().to_owned();
        let words = fs::read(format!("/proc/{pid}/cmdline")).expect("the child runs");
        assert!(words.windows(6).any(|part| part == b"linger"));
        let ended = Command::new("kill").arg(&pid).status().expect("kill starts");
        assert!(ended.success());
    });
}
