//! Patterns that match nothing are named at the end of the run and in every report, whatever the
//! instrument.

mod common;

use clrscope_testkit as testkit;
use common::TestFolder;
use serde_json::Value;

/// Runs the fixture that throws (and so gives every instrument something to look at); what was said
/// on stderr.
fn run(place: &TestFolder, instruments: &str, options: &[&str]) -> String {
    let runtime = testkit::runtimes().last().expect("a runtime");
    let mut words: Vec<std::ffi::OsString> = ["run", "-i", instruments, "--force", "-o", "p.clrs"]
        .into_iter()
        .chain(options.iter().copied())
        .map(Into::into)
        .collect();
    words.push("--".into());
    words.extend(runtime.words(&testkit::fixture("Arguments")));
    let mut command = place.clrscope(words);
    runtime.prepare(&mut command);
    testkit::run(command).expect_success().stderr_text()
}

/// The lines about patterns that matched nothing.
fn complaints(text: &str) -> Vec<&str> {
    text.lines()
        .filter(|line| line.contains(" matched no "))
        .map(|line| line.trim_start_matches("clrscope: "))
        .collect()
}

#[test]
fn what_matched_nothing_is_said_at_the_end_and_in_reports() {
    const OPTIONS: [&str; 10] = [
        "--include",
        "[Arguments]*",
        "--include",
        "[Argumnts]*",
        "--exclude",
        "*::Fields",
        "--exclude",
        "*::Typo",
        "--redact",
        "passwrd",
    ];
    const TRUTH: [&str; 2] =
        ["--include '[Argumnts]*' matched no function that ran", "--exclude '*::Typo' matched no function that ran"];
    const REDACTED: &str = "--redact 'passwrd' matched no recorded argument or field";
    for instruments in ["calls", "flow", "flow:args", "events:jit", "calls;exceptions;events"] {
        let place = TestFolder::new();
        let said = run(&place, instruments, &OPTIONS);
        assert_eq!(complaints(&said), [TRUTH[0], TRUTH[1], REDACTED], "{instruments}:\n{said}");
        let view = if instruments.contains("flow") { "flow" } else { "losses" };
        let report = place.run(&format!("report p.clrs --view {view}"));
        let text = String::from_utf8_lossy(if view == "flow" { &report.stderr } else { &report.stdout }).into_owned();
        // The head is wrapped at 100 columns.
        let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(TRUTH.iter().chain([&REDACTED]).all(|line| flat.contains(line)), "{instruments}:\n{text}");
        let json: Value =
            serde_json::from_slice(&place.run("report p.clrs --view losses --format json").stdout).expect("JSON");
        let rows = json["recording"]["unmatched_patterns"].as_array().expect("patterns");
        assert_eq!(rows.len(), 3, "{instruments}: {rows:?}");
        assert_eq!((&rows[0]["option"], &rows[0]["pattern"]), (&"--include".into(), &"[Argumnts]*".into()));
    }
}

#[test]
fn nothing_is_said_where_every_pattern_matched() {
    let place = TestFolder::new();
    let options = ["--include", "[Arguments]*", "--exclude", "*::Hot", "--redact", "pass*"];
    let said = run(&place, "flow:args", &options);
    assert!(complaints(&said).is_empty(), "{said}");
    let report = place.run("report p.clrs --view losses --format json");
    let json: Value = serde_json::from_slice(&report.stdout).expect("JSON");
    assert!(json["recording"].get("unmatched_patterns").is_none());
}
