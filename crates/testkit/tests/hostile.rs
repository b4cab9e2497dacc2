//! The hostile programs do bare what their tests under the profiler rely on, on every runtime.

use std::fs;
use std::process::Command;
use std::time::Duration;

use clrscope_testkit::{
    Expectations, Finished, Runtime, Service, each_runtime, each_web_runtime, fixture, get, load, run, scratch,
    wait_for_work,
};

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
    let programs: [(&str, &[&str]); 9] = [
        ("Hello", &[]),
        ("Stacks", &[]),
        ("Loading", &[]),
        ("Processes", &["start"]),
        ("Processes", &["fork"]),
        ("Shares", &[]),
        ("Counter", &["30000"]),
        ("Processes", &["fork-exec", "50"]),
        ("Processes", &["close"]),
    ];
    let outputs: Vec<Vec<String>> = each_runtime(|runtime| {
        programs
            .iter()
            .map(|(name, arguments)| run_bare(runtime, name, arguments).expect_success())
            .map(|output| Expectations::other_lines(&output.stdout_text()))
            .collect()
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
    assert!(outputs[0][7].contains("child made 50 calls\nchild 2 left with 5\n"), "{}", outputs[0][7]);
    assert_eq!(outputs[0][8], "closed all, 0 files were written to\n");
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
fn a_program_becomes_another() {
    each_runtime(|runtime| {
        let output = run_bare(runtime, "Processes", &["exec", "60"]);
        assert_eq!((output.code(), output.stdout_text().as_str()), (5, "becoming another\nchild made 60 calls\n"));
    });
}

#[test]
fn the_server_ends_in_order_at_sigterm() {
    each_runtime(|runtime| {
        let server = Service::start(command(runtime, "Server", &[]));
        wait_for_work(server.id(), Duration::from_millis(100));
        let finished = server.stop("TERM").expect_success();
        let text = finished.stdout_text();
        assert_eq!(Expectations::other_lines(&text), "ready\nstopped\n");
        let served = Expectations::parse(&text).calls("Server.Program::Request");
        assert!(served.is_some_and(|requests| requests > 0), "{text}");
    });
}

#[test]
fn the_web_service_knows_what_it_did() {
    each_web_runtime(|runtime| {
        let service = Service::start(command(runtime, "Web", &[]));
        let address = service.address().to_owned();
        assert_eq!(load(&address, "/ok", 2, 10), 20);
        assert_eq!((get(&address, "/async"), get(&address, "/throw"), get(&address, "/none")), (200, 500, 404));
        let finished = service.stop("TERM").expect_success();
        let expected = Expectations::parse(&finished.stdout_text());
        let calls = ["Ok", "Throw", "Work"].map(|name| expected.calls(&format!("Web.Program::{name}")));
        assert_eq!(calls, [Some(20), Some(1), Some(210)]);
    });
}

#[test]
fn a_child_outlives_its_parent() {
    each_runtime(|runtime| {
        let temp = scratch();
        let file = temp.path().join("pid");
        run_bare(runtime, "Processes", &["outlive", "30", file.to_str().expect("UTF-8")]).expect_success();
        let pid = fs::read_to_string(&file).expect("written").trim().to_owned();
        let words = fs::read(format!("/proc/{pid}/cmdline")).expect("the child runs");
        assert!(words.windows(6).any(|part| part == b"linger"));
        let ended = Command::new("kill").arg(&pid).status().expect("kill starts");
        assert!(ended.success());
    });
}
