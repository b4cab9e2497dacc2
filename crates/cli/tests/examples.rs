//! The examples' READMEs: their commands work as they stand there.

mod common;

use std::env;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use clrscope_testkit as testkit;
use common::TestFolder;

/// The first commands in a README. Building is done by the testkit, in a folder of its own.
fn commands(readme: &str) -> String {
    let block = readme.split("```sh\n").nth(1).and_then(|rest| rest.split("```").next()).expect("commands");
    let (build, others): (Vec<&str>, Vec<&str>) = block.lines().partition(|line| line.starts_with("cargo build"));
    assert_eq!(build.len(), 1, "{block}");
    others.join("\n")
}

/// A folder like the repository's root after building, with the tool on `PATH`.
fn run_readme(place: &TestFolder, example: &str) -> String {
    let root = testkit::workspace_root();
    let library = testkit::example(example);
    fs::create_dir(place.file("target")).expect("a folder");
    symlink(library.parent().expect("its folder"), place.file("target/release")).expect("a link");
    symlink(root.join("dotnet"), place.file("dotnet")).expect("a link");
    let readme = fs::read_to_string(root.join("examples").join(example).join("README.md")).expect("the README");
    let tool = Path::new(env!("CARGO_BIN_EXE_clrscope")).parent().expect("its folder").to_owned();
    let path = env::join_paths([tool].into_iter().chain(env::split_paths(&env::var_os("PATH").unwrap_or_default())));
    let mut shell = Command::new("sh");
    shell.args(["-e", "-c", &commands(&readme)]).current_dir(place.path());
    testkit::runtimes().last().expect("a runtime").prepare(&mut shell);
    shell.env("PATH", path.expect("a path"));
    let finished = testkit::run(shell).expect_success();
    let library = library.file_name().expect("a file").display();
    let loaded = format!("/target/release/{library}' was loaded into one process\n");
    assert!(finished.stderr_text().ends_with(&loaded), "{}", finished.stderr_text());
    finished.stdout_text()
}

#[test]
fn the_template_counts_calls() {
    let said = run_readme(&TestFolder::new(), "template");
    assert!(said.contains("\tRecursion.Program.Fib("), "{said}");
}

#[test]
fn the_bell_writes_sound() {
    let place = TestFolder::new();
    let said = run_readme(&place, "bell");
    assert!(said.starts_with("Hello, World!\n") && said.ends_with(" bell.wav\n"), "{said}");
    assert!(fs::metadata(place.file("bell.wav")).expect("the sound").len() > 100_000);
}

#[test]
fn the_log_begins_with_what_is_loaded_first() {
    let said = run_readme(&TestFolder::new(), "logging");
    assert!(said.contains("\n1\tinitialize\n") && said.contains("assembly=System.Private.CoreLib status=ok"), "{said}");
}

/// Part of a README that shows the result.
fn shown(readme: &str) -> &str {
    readme.split("```text\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a part of the result")
}

#[test]
fn exceptions_are_told_as_shown() {
    let said = run_readme(&TestFolder::new(), "exceptions");
    assert!(said.contains(shown(include_str!("../../../examples/exceptions/README.md"))), "{said}");
}

#[test]
fn calls_are_traced_as_shown() {
    let said = run_readme(&TestFolder::new(), "trace");
    assert!(said.ends_with(shown(include_str!("../../../examples/trace/README.md"))), "{said}");
}

#[test]
fn allocations_are_summed_as_shown() {
    let said = run_readme(&TestFolder::new(), "allocations");
    assert!(said.contains(shown(include_str!("../../../examples/allocations/README.md"))), "{said}");
}

#[test]
fn stacks_are_sampled() {
    let said = run_readme(&TestFolder::new(), "sampler");
    assert!(said.contains("Amounts.Program::Compute;Amounts.Program::Three "), "{said}");
}

#[test]
fn the_heap_is_shown_with_the_way_to_the_largest_object() {
    let said = run_readme(&TestFolder::new(), "heap");
    assert!(said.contains(shown(include_str!("../../../examples/heap/README.md"))), "{said}");
}

#[test]
fn waits_for_locks_are_counted_as_shown() {
    let said = run_readme(&TestFolder::new(), "locks");
    assert!(said.contains(shown(include_str!("../../../examples/locks/README.md"))), "{said}");
}

#[test]
fn calls_are_counted_by_their_own_code_as_shown() {
    let said = run_readme(&TestFolder::new(), "il-counter");
    assert!(said.contains(shown(include_str!("../../../examples/il-counter/README.md"))), "{said}");
}

#[test]
fn lives_of_threads_are_shown() {
    let said = run_readme(&TestFolder::new(), "threads");
    assert!(said.contains(shown(include_str!("../../../examples/threads/README.md"))), "{said}");
}
