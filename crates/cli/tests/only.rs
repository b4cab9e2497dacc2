//! Choosing programs: with the variables set for all, only the chosen ones notice.

mod common;

use std::fs;
use std::process::Command;

use clrscope_testkit as testkit;
use common::TestFolder;
use serde_json::Value;
use testkit::{Finished, Runtime};

/// Sets the variables that `env` prints for whatever `command` starts.
fn set_variables(place: &TestFolder, command: &mut Command, options: &[&str]) {
    let printed = place.clrscope([&["env", "--json"], options].concat()).output().expect("the tool starts");
    assert!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
    let variables: Value = serde_json::from_slice(&printed.stdout).expect("JSON");
    for (name, value) in variables.as_object().expect("an object") {
        command.env(name, value.as_str().expect("a text"));
    }
}

/// A program that says how many methods were compiled for it: lines without that number, and the
/// number.
fn compiled(finished: &Finished) -> (String, u64) {
    let text = finished.stdout_text();
    let (rest, number) = text.split_once("compiled ").expect("the program says it");
    (rest.to_owned(), number.trim().parse().expect("a number"))
}

fn entries(place: &TestFolder) -> Vec<String> {
    let names = fs::read_dir(place.path()).expect("the folder").flatten();
    let mut names: Vec<String> = names.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn functions(place: &TestFolder, recording: &str) -> String {
    let output = place.run(&format!("report {recording} --view functions --format json --limit 100000"));
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn programs_that_were_not_chosen_keep_their_precompiled_code_and_leave_no_trace() {
    testkit::each_runtime(|runtime| {
        let place = TestFolder::new();
        let run = |options: &[&str]| {
            let mut command = runtime.command(&testkit::fixture("Compiled"));
            command.current_dir(place.path());
            if !options.is_empty() {
                set_variables(&place, &mut command, options);
            }
            testkit::run(command).expect_success()
        };
        let options = ["-i", "calls", "--only-from", "programs", "-o", "run.clrs.d"];
        let bare = compiled(&run(&[]));
        fs::write(place.file("programs"), "# not this one yet\nRecursion*\n").expect("a file");
        let passed_over = run(&options);
        let (text, number) = compiled(&passed_over);
        assert_eq!((text, passed_over.stderr_text()), (bare.0.clone(), String::new()));
        assert!(number <= bare.1 * 6 / 5 + 20, "{number} methods were compiled, {} without us", bare.1);
        assert_eq!(entries(&place), ["programs"]);

        // With equal variables, another line in the file.
        fs::write(place.file("programs"), "Recursion*\nComp?led # now\n").expect("a file");
        let (text, number) = compiled(&run(&options));
        assert_eq!(text, bare.0);
        assert!(number > bare.1 * 3, "{number} methods were compiled, {} without us", bare.1);
        assert_eq!(entries(&place), ["programs", "run.clrs.d"]);
        assert!(functions(&place, "run.clrs.d").contains("Program::<Main>$"), "on .NET {}", runtime.version);
    });
}

fn newest() -> &'static Runtime {
    testkit::runtimes().last().expect("a runtime")
}

/// A shell script that runs the fixtures one after another.
fn script(runtime: &Runtime, fixtures: &[&str]) -> String {
    let line = |name: &&str| {
        let words = runtime.words(&testkit::fixture(name));
        words.iter().map(|word| format!("'{}'", word.to_string_lossy())).collect::<Vec<_>>().join(" ")
    };
    fixtures.iter().map(line).collect::<Vec<_>>().join("; ")
}

#[test]
fn a_script_that_starts_several_programs_is_recorded_for_one_of_them() {
    let (place, runtime) = (TestFolder::new(), newest());
    let script = script(runtime, &["Hello", "Compiled", "Hello"]);
    let run = |name: &str, options: &[&str]| {
        let words = [&["run", "-o", name], options, &["--", "sh", "-c", &script]].concat();
        let mut command = place.clrscope(words);
        runtime.prepare(&mut command);
        testkit::run(command).expect_success()
    };
    let path = format!("*/{}", testkit::fixture("Compiled").file_name().expect("a name").to_string_lossy());
    let said = run("one.clrs", &["--only", &path]);
    assert!(said.stdout_text().starts_with("Hello, World!\ncounted "), "{}", said.stdout_text());
    let report: Value = serde_json::from_str(&functions(&place, "one.clrs")).expect("JSON");
    assert_eq!(report["recording"]["processes"].as_array().map(Vec::len), Some(1));
    let none = run("none.clrs", &["--only", "Compiled.exe"]).stderr_text();
    assert!(none.starts_with("clrscope: nothing was recorded: no .NET program that was started matches"), "{none}");
}

#[test]
fn the_doctor_says_why_no_program_is_profiled() {
    let (place, runtime) = (TestFolder::new(), newest());
    let row = |request: &str| {
        let mut command = place.clrscope(["doctor", "--json"]);
        runtime.prepare(&mut command);
        let output = command.env("CLRSCOPE_AGENT", request).output().expect("the tool starts");
        let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let mut rows = document["rows"].as_array().expect("rows").iter();
        rows.find(|row| row["name"] == "CLRSCOPE_AGENT").cloned().expect("a row")
    };
    assert_eq!(row("calls;only=Shop*")["found"], "asks for programs that match Shop*");
    let missing = row("calls;only-from=/no/such/file");
    assert_eq!(missing["status"], "failed");
    let found = missing["found"].as_str().expect("a text");
    assert!(found.starts_with("no program is profiled: only-from=/no/such/file: No such file"), "{found}");
}
