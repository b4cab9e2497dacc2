//! `new` makes a crate that builds, tests and profiles, outside of this repository.

mod common;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use clrscope_testkit as testkit;
use common::TestFolder;

/// Cargo in the new crate, with a target folder that outlives the test: only the new crate itself
/// is compiled each time.
fn cargo(folder: &Path, words: &[&str]) -> String {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(words).args(["--offline", "--target-dir"]).arg(testkit::target_folder().join("new"));
    let output = command.current_dir(folder).output().expect("cargo starts");
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(output.status.success(), "cargo {words:?}:\n{text}");
    text
}

/// A crate that `new` has made.
struct NewCrate {
    folder: PathBuf,
    class_id: String,
    library: PathBuf,
}

impl NewCrate {
    fn make(place: &TestFolder, name: &str, options: &[&str], folder: &str) -> Self {
        let made =
            place.clrscope(["new", name]).args(options).arg("--framework").arg(testkit::workspace_root()).output();
        let made = made.expect("the tool starts");
        let said = String::from_utf8_lossy(&made.stderr).into_owned();
        assert!(made.status.success() && made.stdout.is_empty(), "{said}");
        let folder = place.file(folder);
        let class_id = said.split("class ").nth(1).and_then(|rest| rest.split(',').next()).expect(&said).to_owned();
        // The versions this repository was tested with: nothing is fetched.
        fs::copy(testkit::workspace_root().join("Cargo.lock"), folder.join("Cargo.lock")).expect("the lock file");
        let library = testkit::target_folder().join(format!("new/debug/lib{}.so", name.replace('-', "_")));
        Self { folder, class_id, library }
    }

    /// Is laid out as `cargo fmt` does, passes its test, and is built.
    fn passes(&self, test: &str) {
        let formatted = Command::new("cargo").args(["fmt", "--check"]).current_dir(&self.folder).status();
        assert!(formatted.expect("cargo starts").success());
        let tested = cargo(&self.folder, &["test"]);
        assert!(tested.contains(&format!("test {test} ... ok")), "{tested}");
        cargo(&self.folder, &["build"]);
    }

    /// Text that the profiler writes about a fixture to the file that `variable` names.
    fn profile(&self, place: &TestFolder, runtime: &testkit::Runtime, program: &[&str], variable: &str) -> String {
        let output = place.file("output.txt");
        let library = self.library.to_string_lossy();
        let mut command = place.clrscope(["run", "--profiler", &library, "--clsid", &self.class_id, "--"]);
        command.args(runtime.words(&testkit::fixture(program[0]))).args(&program[1..]).env(variable, &output);
        runtime.prepare(&mut command);
        let finished = testkit::run(command).expect_success();
        assert!(finished.stderr_text().ends_with("was loaded into one process\n"), "{}", finished.stderr_text());
        fs::read_to_string(&output).expect("the profiler writes at its end")
    }
}

#[test]
fn each_template_makes_a_crate_that_passes_its_test_and_profiles_a_program() {
    let place = TestFolder::new();
    let runtime = testkit::runtimes().last().expect("a runtime");
    let written = |template: &str, test: &str, program: &[&str]| {
        let made =
            NewCrate::make(&place, &format!("by-{template}"), &["--template", template], &format!("by-{template}"));
        made.passes(test);
        made.profile(&place, runtime, program, &format!("BY_{}_OUTPUT", template.to_uppercase()))
    };
    let said = written("allocations", "tests::objects_and_bytes_are_summed_by_class", &["Amounts", "allocate"]);
    assert!(said.starts_with("3200000\t100000\tAmounts.Link\n"), "{said}");
    let said = written("exceptions", "tests::an_exception_is_told_with_its_stack", &["Exceptions"]);
    assert!(said.contains("System.InvalidOperationException: \"simple 0\""), "{said}");
    let said = written("sampler", "tests::stacks_of_all_threads_are_counted", &["Amounts", "compute", "500"]);
    assert!(said.contains("Amounts.Program::Compute;Amounts.Program::Three "), "{said}");
}

#[test]
fn an_unknown_template_is_refused_with_the_names_of_all() {
    let place = TestFolder::new();
    let refused = place.clrscope(["new", "mine", "--template", "smapler"]).output().expect("the tool starts");
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && !place.file("mine").exists(), "{said}");
    for name in ["counter", "allocations", "exceptions", "sampler"] {
        assert!(said.contains(name), "{said}");
    }
}

#[test]
fn a_new_crate_passes_its_test_and_counts_the_calls_of_a_program() {
    let place = TestFolder::new();
    let made = NewCrate::make(&place, "shop-watch", &["--path", "tools/watch"], "tools/watch");
    made.passes("tests::calls_of_all_threads_are_counted_by_name");
    let (library, class_id) = (made.library, made.class_id);
    testkit::each_runtime(|runtime| {
        let output = place.file(&format!("calls-{}.txt", runtime.version));
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

/// A block of code in the first page of the framework's documentation, without the marks of a
/// comment.
fn documented(language: &str, which: usize) -> String {
    let source =
        fs::read_to_string(testkit::workspace_root().join("crates/clr-profiler/src/lib.rs")).expect("the source");
    let page: Vec<&str> = source.lines().map_while(|line| line.strip_prefix("//!")).collect();
    let page = page.iter().map(|line| line.strip_prefix(' ').unwrap_or(line)).collect::<Vec<_>>().join("\n");
    // Every second fence closes.
    let blocks = page.split("```").skip(1).step_by(2).filter_map(|block| block.split_once('\n'));
    let block = blocks.filter(|(kind, _)| *kind == language).nth(which).expect("a block").1;
    block.lines().filter(|line| !line.starts_with("# ")).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_walk_in_the_documentation_leads_to_a_working_profiler() {
    let (place, runtime) = (TestFolder::new(), testkit::runtimes().last().expect("a runtime"));
    let folder = place.file("exception-counter");
    fs::create_dir_all(folder.join("src")).expect("folders");
    let manifest = documented("toml", 0);
    let (head, hint) = manifest.split_once("\"0.1\"  # of a checkout: ").expect("the dependency");
    let root = testkit::workspace_root().to_string_lossy().into_owned();
    fs::write(folder.join("Cargo.toml"), head.to_owned() + &hint.replace("CHECKOUT", &root)).expect("a file");
    fs::write(folder.join("src/lib.rs"), documented("", 0)).expect("a file");
    fs::copy(testkit::workspace_root().join("Cargo.lock"), folder.join("Cargo.lock")).expect("the lock file");
    cargo(&folder, &["build"]);

    let commands = documented("sh", 0);
    let run = commands.lines().find_map(|line| line.strip_prefix("clrscope ")).expect("a command");
    let words: Vec<&str> = run.split(' ').map(|word| word.trim_matches('\'')).collect();
    let library = testkit::target_folder().join("new/debug/libexception_counter.so");
    let [options @ .., "app.dll"] = &words[..] else { panic!("{run}") };
    let options = options.iter().map(|word| if word.ends_with(".so") { library.as_os_str() } else { word.as_ref() });
    let mut command = place.clrscope(options);
    command.args(runtime.words(&testkit::fixture("Exceptions")));
    runtime.prepare(&mut command);
    let finished = testkit::run(command).expect_success();
    assert!(finished.stderr_text().ends_with("was loaded into one process\n"), "{}", finished.stderr_text());
    let count: u64 =
        fs::read_to_string(place.file("exceptions.txt")).expect("the file").trim().parse().expect("a number");
    // This part of the program counts its exceptions; other parts throw more.
    let truth = testkit::Expectations::parse(&finished.stdout_text()).calls("Exceptions.Program+Simple::Throw");
    assert!(Some(count) >= truth && count > 0, "{count} exceptions, {truth:?} of them by one method");
}

#[test]
fn the_framework_is_looked_for_around_the_current_folder_and_a_crate_stays_out_of_a_workspace() {
    let place = TestFolder::new();
    fs::create_dir_all(place.file("clone/crates/clr-profiler")).expect("folders");
    fs::write(place.file("clone/Cargo.toml"), "[workspace]\nmembers = [\"crates/*\"]\n").expect("a file");
    fs::write(place.file("clone/crates/clr-profiler/Cargo.toml"), "[package]\nname = \"clr-profiler\"\n")
        .expect("a file");
    let mut command = place.clrscope(["new", "mine"]);
    assert!(command.current_dir(place.file("clone/crates")).output().expect("the tool starts").status.success());
    let manifest = fs::read_to_string(place.file("clone/crates/mine/Cargo.toml")).expect("the manifest");
    assert!(manifest.contains("clr-profiler = { path = \"../../crates/clr-profiler\" }\n"), "{manifest}");
    let fake = "clr-profiler-fake = { path = \"../../crates/clr-profiler-fake\" }\n";
    assert!(manifest.contains(fake), "{manifest}");
    assert!(manifest.ends_with("\n[workspace]\n"), "{manifest}");
}
