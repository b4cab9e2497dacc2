//! `run`, `env` and `doctor` where the environment names another profiler for the main slot.

mod common;

use std::ffi::OsString;
use std::fs;
use std::process::Command;

use clrscope_testkit as testkit;
use common::TestFolder;
use testkit::{Finished, Runtime};

const TRACE: &str = "{E8B0E2D3-5E0C-4C57-8B7D-1D5D4F4C9B32}";

/// The tool over a fixture, with the example `trace` in the main slot.
fn traced(place: &TestFolder, runtime: &Runtime, options: &[&str], folder: &str) -> Finished {
    let mut words: Vec<OsString> = ["run"].iter().chain(options).map(OsString::from).collect();
    words.push("--".into());
    words.extend(runtime.words(&testkit::fixture("Exceptions")));
    let mut command = place.clrscope(words);
    runtime.prepare(&mut command);
    with_trace(&mut command, place, folder);
    testkit::run(command)
}

fn with_trace(command: &mut Command, place: &TestFolder, folder: &str) {
    testkit::load_profiler(command, &testkit::example("trace"), TRACE);
    command.env("TRACE_PROFILER_OUTPUT", place.file(folder));
}

/// Lines that the other profiler wrote about the program's own methods.
fn lines(place: &TestFolder, folder: &str) -> usize {
    let files = fs::read_dir(place.file(folder)).expect("it wrote").flatten();
    let texts = files.map(|file| fs::read_to_string(file.path()).expect("a text"));
    texts.map(|text| text.lines().filter(|line| line.contains("Exceptions.Program")).count()).sum()
}

#[test]
fn run_keeps_the_other_profiler_and_says_so() {
    for runtime in testkit::runtimes() {
        let place = TestFolder::new();
        let mut bare = runtime.command(&testkit::fixture("Exceptions"));
        with_trace(&mut bare, &place, "alone");
        let bare = testkit::run(bare).expect_success();
        let with = traced(&place, runtime, &["-i", "exceptions", "-o", "e.clrs"], "with").expect_success();
        assert_eq!(with.stdout_text(), bare.stdout_text(), "{}", runtime.version);
        assert!(lines(&place, "alone") > 10_000 && lines(&place, "alone") == lines(&place, "with"));
        let said = with.stderr_text();
        let words = "libtrace.so' keeps the runtime's main slot; the agent runs as a notification-only profiler";
        assert!(said.contains(words), "{said}");
        let report = place.json("report e.clrs --view exceptions");
        let count =
            report["rows"].as_array().expect("rows").iter().filter_map(|row| row["count"].as_u64()).sum::<u64>();
        assert_eq!(count, 40 * 100, "{}", runtime.version);
        let head = String::from_utf8_lossy(&place.run("report e.clrs --view exceptions --verbose").stdout).into_owned();
        assert!(head.contains("notification-only: the agent left the runtime's main slot to"), "{head}");
    }
}

#[test]
fn what_needs_the_main_slot_is_refused_before_the_program_starts() {
    let place = TestFolder::new();
    let runtime = testkit::runtimes().last().expect("a runtime");
    let refused = traced(&place, runtime, &["-i", "calls", "-o", "c.clrs"], "with");
    let said = refused.stderr_text();
    assert_eq!((refused.code(), refused.stdout_text().as_str()), (125, ""), "{said}");
    let lines: Vec<&str> = said.lines().collect();
    let [error, why, hint] = lines[..] else { panic!("{said}") };
    assert!(
        error.contains("cannot record while the runtime's main slot is that of '") && error.contains("libtrace.so")
    );
    assert!(why.starts_with("why: calls needs enter and leave hooks"), "{said}");
    assert!(hint.starts_with("hint: unset CORECLR_ENABLE_PROFILING, or record with some of these: "), "{said}");
    assert!(!place.file("with").exists() && !place.file("c.clrs").exists());
}

#[test]
fn env_adds_the_agent_to_the_notification_only_profilers() {
    let place = TestFolder::new();
    let env = |words: &[&str], variables: &[(&str, &str)]| {
        let mut command = place.clrscope(words);
        command.envs(variables.iter().copied());
        let output = command.output().expect("the tool starts");
        (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let other = [("CORECLR_ENABLE_PROFILING", "1"), ("CORECLR_PROFILER", "{1}"), ("CORECLR_PROFILER_PATH", "/apm.so")];
    let ours = "libclrscope_agent.so={C7E1A7D4-3B7B-4C2E-9B7F-0C15C09E5A12};";
    for (words, variables) in [(&["env"][..], &other[..]), (&["env", "--notification-only", "--systemd"], &[])] {
        let (code, text) = env(words, variables);
        assert_eq!(code, Some(0), "{text}");
        assert!(text.contains("CORECLR_ENABLE_NOTIFICATION_PROFILERS=1") && text.contains(ours), "{text}");
        assert!(!text.contains("CORECLR_PROFILER"), "{text}");
    }
    let listed = [("CORECLR_ENABLE_NOTIFICATION_PROFILERS", "1"), ("CORECLR_NOTIFICATION_PROFILERS", "/ear.so={2};")];
    let (_, text) = env(&["env"], &[&other[..], &listed].concat());
    assert!(text.contains(&format!("{ours}/ear.so={{2}};")), "{text}");
    assert_eq!(env(&["env", "-i", "calls"], &other).0, Some(1));
    assert_eq!(env(&["env", "-i", "calls", "--notification-only", "--json"], &[]).0, Some(1));
}
