//! Parts of a recording that the program's own code begins and ends, against what the program
//! counted in each.

mod common;

use std::collections::BTreeMap;
use std::ffi::OsString;

use clrscope_testkit as testkit;
use common::TestFolder;
use serde_json::Value;
use testkit::{Finished, Runtime, each_runtime, fixture, runtimes};

const PROGRAM: &str = "Marked";
const STEP: &str = "Marked.Program::Step";

/// Runs the program under the tool, which records into `c.clrs`.
fn record(place: &TestFolder, runtime: &Runtime, options: &str, arguments: &str) -> Finished {
    let mut words: Vec<OsString> = vec!["run".into(), "-o".into(), "c.clrs".into()];
    words.extend(options.split_whitespace().map(OsString::from));
    words.push("--".into());
    words.extend(runtime.words(&fixture(PROGRAM)));
    words.extend(arguments.split_whitespace().map(OsString::from));
    let mut command = place.clrscope(words);
    runtime.prepare(&mut command);
    testkit::run(command).expect_success()
}

/// What the program says of each part: its calls, and its exceptions.
fn said(output: &str) -> BTreeMap<String, (u64, u64)> {
    let parse = |line: &str| {
        let (rest, exceptions) = line.strip_prefix("PART ")?.rsplit_once(' ')?;
        let (name, calls) = rest.rsplit_once(' ')?;
        Some((name.to_owned(), (calls.parse().ok()?, exceptions.parse().ok()?)))
    };
    output.lines().filter_map(parse).collect()
}

/// A view of the recording, of these parts alone.
fn report(place: &TestFolder, view: &str, parts: &[&str]) -> Value {
    let words = ["report", "c.clrs", "--format", "json", "--view", view].into_iter();
    let parts = parts.iter().flat_map(|part| ["--part", part]);
    let output = place.clrscope(words.chain(parts)).output().expect("the tool starts");
    assert!(output.status.success(), "{parts:?}: {}", String::from_utf8_lossy(&output.stderr), parts = view);
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn calls(place: &TestFolder, parts: &[&str]) -> u64 {
    let report = report(place, "functions", parts);
    let rows = report["rows"].as_array().expect("rows").iter().filter(|row| row["name"] == STEP);
    rows.filter_map(|row| row["calls"].as_u64()).sum()
}

fn exceptions(place: &TestFolder, parts: &[&str]) -> u64 {
    let report = report(place, "exceptions", parts);
    report["rows"].as_array().expect("rows").iter().filter_map(|row| row["count"].as_u64()).sum()
}

/// Names of the parts in their order, without those that have none.
fn names(report: &Value) -> Vec<&str> {
    let parts = report["recording"]["parts"].as_array().map_or(&[][..], Vec::as_slice);
    let names = parts.iter().map(|part| part["name"].as_str().expect("a name"));
    names.filter(|name| !name.chars().all(|c| c.is_ascii_digit())).collect()
}

/// How often marks had no effect, and why.
fn ignored(report: &Value) -> (u64, Vec<&str>) {
    let losses = report["recording"]["losses"].as_array().expect("losses");
    let Some(loss) = losses.iter().find(|loss| loss["reason"] == "mark_ignored") else { return (0, Vec::new()) };
    let details = loss["details"].as_array().map_or(&[][..], Vec::as_slice);
    (loss["count"].as_u64().expect("a count"), details.iter().filter_map(Value::as_str).collect())
}

/// Those of `Marked parts`, in the order in which they begin.
const PARTS: [&str; 12] =
    ["a", "b", "c", "again", "again", "again", "twice", "more", "thread 0", "thread 1", "thread 2", "to the end"];

#[test]
fn parts_have_the_calls_and_exceptions_that_the_program_counted_in_them() {
    each_runtime(|runtime| {
        let place = TestFolder::new();
        let run = record(&place, runtime, "-i calls -i exceptions", "parts");
        let on = format!("on {}", runtime.version);
        let expected = said(&run.stdout_text());
        assert_eq!(expected.len(), 10, "{expected:?} {on}");
        for (name, counted) in &expected {
            assert_eq!((calls(&place, &[name]), exceptions(&place, &[name])), *counted, "part {name} {on}");
        }
        let whole = report(&place, "functions", &[]);
        assert_eq!((names(&whole), ignored(&whole)), (PARTS.to_vec(), (0, Vec::new())), "{on}");
        // What lies in both counts once: `b` within `a`, and the end of `a` in `c`.
        assert_eq!(calls(&place, &["a", "b"]), expected["a"].0, "{on}");
        assert_eq!(calls(&place, &["a", "c"]), 100 + 1_000 + 20 + 3 + 40, "{on}");
        // What lies in none.
        assert_eq!(calls(&place, &["1"]), 10, "{on}");
    });
}

/// Whatever is recorded, counters of the program's event sources too, whose sessions ask for them.
#[test]
fn parts_are_there_with_any_instruments_and_each_mark_counts_once() {
    each_runtime(|runtime| {
        for options in ["-i cpu -i exceptions -i gc -i counters", "-i exceptions -i alloc:exact -i wall"] {
            let place = TestFolder::new();
            let run = record(&place, runtime, options, "parts");
            let on = format!("with {options} on {}", runtime.version);
            for (name, (_, counted)) in said(&run.stdout_text()) {
                assert_eq!(exceptions(&place, &[&name]), counted, "part {name} {on}");
            }
            let whole = report(&place, "exceptions", &[]);
            assert_eq!((names(&whole), ignored(&whole)), (PARTS.to_vec(), (0, Vec::new())), "{on}");
        }
    });
}

/// A session that asked for meters while a thread rented its first array waited for a class
/// constructor, which waited for the session: one of sixty runs hung.
#[test]
fn a_program_that_rents_its_first_array_as_counters_begin_does_not_hang() {
    let runtime = runtimes().last().expect("a runtime");
    for _ in 0..20 {
        record(&TestFolder::new(), runtime, "-i counters -i gc", "parts");
    }
}

#[test]
fn events_that_describe_themselves_are_marks_as_well() {
    each_runtime(|runtime| {
        let place = TestFolder::new();
        let run = record(&place, runtime, "-i calls", "written");
        assert_eq!(said(&run.stdout_text())["written"].0, calls(&place, &["written"]), "on {}", runtime.version);
    });
}

#[test]
fn marks_that_mean_nothing_are_counted_and_the_others_count() {
    each_runtime(|runtime| {
        let place = TestFolder::new();
        record(&place, runtime, "-i calls", "bad");
        let report = report(&place, "losses", &[]);
        let reasons = [
            "part 'never begun' ended, and has not begun",
            "the name '' of a part: it is empty",
            "the first field of an event 'Start' is not a text: a mark needs a name",
        ];
        let on = format!("on {}", runtime.version);
        assert_eq!(ignored(&report), (8, reasons.to_vec()), "{on}");
        let long = "x".repeat(256);
        assert_eq!(names(&report), [&*long, "tab\u{fffd}and", "line\u{fffd}line\u{fffd}[31m", "good"], "{on}");
        assert_eq!([calls(&place, &[&long]), calls(&place, &["good"])], [3, 9], "{on}");
    });
}

#[test]
fn too_many_parts_are_counted_and_what_was_before_is_there() {
    let runtime = runtimes().last().expect("a runtime");
    let place = TestFolder::new();
    record(&place, runtime, "-i calls", "many 20000");
    let whole = report(&place, "losses", &[]);
    let reasons =
        ["part 'name16384' began behind 32768 beginnings and ends", "part 'name16384' ended, and has not begun"];
    assert_eq!(ignored(&whole), (2 * (20_000 - 16_384), reasons.to_vec()));
    assert_eq!(names(&whole).len(), 16_384);
    assert_eq!(calls(&place, &["name7", "name16383"]), 2);
    let unknown = place.run("report c.clrs --part name16384");
    let text = String::from_utf8_lossy(&unknown.stderr).into_owned();
    assert!(!unknown.status.success() && text.lines().count() == 3 && text.contains(" more"), "{text}");

    let place = TestFolder::new();
    record(&place, runtime, "-i cpu", "nested 1100");
    let whole = report(&place, "losses", &[]);
    assert_eq!((names(&whole).len(), ignored(&whole).0), (1_024, 2 * (1_100 - 1_024)));
}

/// The program's own listener hears what it hears without us, and no other source is enabled.
#[test]
fn nobody_but_the_source_of_marks_is_listened_to() {
    each_runtime(|runtime| {
        let mut bare = runtime.command(&fixture(PROGRAM));
        bare.arg("listen");
        let bare = testkit::run(bare).expect_success().stdout_text();
        assert!(
            bare.contains("SOURCE clrscope False\n") && bare.contains("HEARD Marked.Heard Start inside\n"),
            "{bare}"
        );
        let expected = bare.replace("SOURCE clrscope False\n", "SOURCE clrscope True\n");
        for options in ["-i cpu", "-i calls"] {
            let run = record(&TestFolder::new(), runtime, options, "listen");
            assert_eq!(run.stdout_text(), expected, "with {options} on {}", runtime.version);
        }
    });
}

#[test]
fn a_program_without_marks_has_no_parts() {
    let place = TestFolder::new();
    record(&place, runtimes().last().expect("a runtime"), "-i cpu", "none");
    let whole = report(&place, "losses", &[]);
    assert!(whole["recording"]["parts"].is_null(), "{whole:#}");
}
