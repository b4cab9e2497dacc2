//! `new` makes a crate that builds, tests and profiles, outside of this repository.

mod common;

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use clrscope_testkit as testkit;
use common::Place;

/// Cargo in the new crate, with a target folder that outlives the test: only the new crate itself is compiled each time.
fn cargo(folder: &Path, words: &[&str]) -> String {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(words).args(["--offline", "--target-dir"]).arg(testkit::target_folder().join("new"));
    let output = command.current_dir(folder).output().expect("cargo starts");
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(output.status.success(), "cargo {words:?}:\n{text}");
    text
}

#[test]
fn a_new_crate_passes_its_test_and_counts_the_calls_of_a_program() {
    let place = Place::new();
    let made = place
        .clrscope(["new", "shop-watch", "--path", "tools/watch", "--framework"])
        .arg(testkit::workspace_root())
        .output()
        .expect("the tool starts");
    let said = String::from_utf8_lossy(&made.stderr).into_owned();
    assert!(made.status.success() && made.stdout.is_empty(), "{said}");
    let folder = place.file("tools/watch");
    let class_id = said.split("class ").nth(1).and_then(|rest| rest.split(',').next()).expect(&said).to_owned();
    // The versions this repository was tested with: nothing is fetched.
    fs::copy(testkit::workspace_root().join("Cargo.lock"), folder.join("Cargo.lock")).expect("the lock file");

    let formatted = Command::new("cargo").args(["fmt", "--check"]).current_dir(&folder).status();
    assert!(formatted.expect("cargo starts").success());
    let tested = cargo(&folder, &["test"]);
    assert!(tested.contains("test tests::calls_of_all_threads_are_counted_by_name ... ok"), "{tested}");
    cargo(&folder, &["build"]);
    let library = testkit::target_folder().join("new/debug/libshop_watch.so");
    testkit::each_runtime(|runtime| {
        let output = place.file("calls.txt");
        let library = library.to_string_lossy();
        let mut command = place.clrscope(["run", "--profiler", &library, "--clsid", &class_id, "--"]);
        command.args(runtime.words(&testkit::fixture("Recursion"))).env("SHOP_WATCH_OUTPUT", &output);
        runtime.prepare(&mut command);
        let finished = testkit::run(command).expect_success();
        assert!(finished.stderr_text().ends_with("was loaded into one process\n"), "{}", finished.stderr_text());
        let truth = testkit::Expectations::parse(&finished.stdout_text()).calls("Recursion.Program::Fib");
        let counts = fs::read_to_string(&output).expect("the profiler writes at its end");
        let fib = counts.lines().find(|line| line.contains("\tRecursion.Program.Fib(")).expect("it is called");
        assert_eq!(fib.split('\t').next().and_then(|count| count.parse().ok()), truth, "on .NET {}", runtime.version);
    });
}

#[test]
fn the_framework_is_looked_for_around_the_current_folder_and_a_crate_stays_out_of_a_workspace() {
    let place = Place::new();
    fs::create_dir_all(place.file("clone/crates/clr-profiler")).expect("folders");
    fs::write(place.file("clone/Cargo.toml"), "[workspace]\nmembers = [\"crates/*\"]\n").expect("a file");
    fs::write(place.file("clone/crates/clr-profiler/Cargo.toml"), "[package]\nname = \"clr-profiler\"\n")
        .expect("a file");
    let mut command = place.clrscope(["new", "mine"]);
    assert!(command.current_dir(place.file("clone/crates")).output().expect("the tool starts").status.success());
    let manifest = fs::read_to_string(place.file("clone/crates/mine/Cargo.toml")).expect("the manifest");
    let framework = fs::canonicalize(place.file("clone/crates/clr-profiler")).expect("the folder");
    assert!(manifest.contains(&format!("clr-profiler = {{ path = \"{}\" }}\n", framework.display())), "{manifest}");
    assert!(manifest.ends_with("\n[workspace]\n"), "{manifest}");
}
