//! `run --profiler` with libraries that are not the agent, and `--debugger`.

mod common;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use clrscope_testkit as testkit;
use common::TestFolder;
use testkit::{Expectations, Finished, Runtime};

const TEMPLATE: &str = "6f0e8e6b-2c8e-4b6b-9a55-5d1e3b1f7c01";

fn template() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| testkit::example("template"))
}

fn newest() -> &'static Runtime {
    testkit::runtimes().last().expect("a runtime")
}

/// `run` with these options over a fixture, the command to be completed.
fn over(place: &TestFolder, runtime: &Runtime, options: &[&str], fixture: &str, arguments: &[&str]) -> Command {
    let mut command = place.clrscope([&["run"], options, &["--"]].concat());
    command.args(runtime.words(&testkit::fixture(fixture))).args(arguments);
    runtime.prepare(&mut command);
    command
}

fn with(place: &TestFolder, library: &Path, clsid: &str, fixture: &str) -> Finished {
    let library = library.to_string_lossy();
    testkit::run(over(place, newest(), &["--profiler", &library, "--clsid", clsid], fixture, &[]))
}

#[test]
fn any_profiler_is_loaded_and_nothing_is_recorded() {
    let library = template().to_string_lossy();
    testkit::each_runtime(|runtime| {
        let place = TestFolder::new();
        let options = ["--profiler", &library, "--clsid", TEMPLATE];
        let mut command = over(&place, runtime, &options, "Recursion", &[]);
        let finished = testkit::run({
            command.env("TEMPLATE_PROFILER_OUTPUT", place.file("calls.txt"));
            command
        })
        .expect_success();
        let bare = testkit::run(runtime.command(&testkit::fixture("Recursion"))).expect_success();
        assert_eq!(finished.stdout_text(), bare.stdout_text());
        assert_eq!(finished.stderr_text(), format!("clrscope: '{library}' was loaded into one process\n"));
        let counts = fs::read_to_string(place.file("calls.txt")).expect("the profiler writes at its end");
        let truth = Expectations::parse(&bare.stdout_text()).calls("Recursion.Program::Fib").expect("a count");
        assert!(counts.contains(&format!("{truth}\tRecursion.Program.Fib(")), "{counts}");
        assert_eq!(fs::read_dir(place.path()).expect("the folder").count(), 1, "no recording");

        let quiet = ["-q", "--profiler", &library, "--clsid", TEMPLATE];
        let finished = testkit::run(over(&place, runtime, &quiet, "Ends", &["return", "7"]));
        assert_eq!((finished.code(), finished.stderr_text()), (7, String::new()));
    });
}

#[test]
fn a_wrong_class_id_is_told_with_the_right_one() {
    let finished = with(&TestFolder::new(), template(), "6F0E8E6B-2C8E-4B6B-9A55-5D1E3B1F7C02", "Hello");
    assert_eq!((finished.code(), finished.stdout_text().as_str()), (0, "Hello, World!\n"));
    let said = finished.stderr_text();
    assert!(said.ends_with("hint: --clsid '{6F0E8E6B-2C8E-4B6B-9A55-5D1E3B1F7C01}'\n"), "{said}");
    assert_eq!(said.lines().count(), 3, "{said}");
}

#[test]
fn a_profiler_that_steps_aside_says_why() {
    let (place, library) = (TestFolder::new(), testkit::example("exceptions"));
    let library = library.to_string_lossy();
    let clsid = "0C8B5F0A-5B8B-4C57-9E0B-5C6E4C0B8A21";
    let mut command = over(&place, newest(), &["--profiler", &library, "--clsid", clsid], "Hello", &[]);
    let finished = testkit::run({
        // A file where a folder would have to be: its log can't be made.
        command.env("EXCEPTIONS_PROFILER_OUTPUT", "/dev/null/exceptions.txt");
        command
    })
    .expect_success();
    assert_eq!(finished.stdout_text(), "Hello, World!\n");
    let said = finished.stderr_text();
    assert!(said.starts_with("error: ") && said.contains(" refused to profile process "), "{said}");
    assert!(said.contains("\nwhy: initialize: Not a directory"), "{said}");
}

/// A profiler made without the framework, which can't say anything: it asks for nothing and answers
/// every callback. Its class is not looked at; `Initialize` is what `FOREIGN_INITIALIZE` says, and
/// `FOREIGN_CLASS` refuses the class.
const FOREIGN: &str = r#"
#include <stdlib.h>
static int query(void *self, void *id, void **out) { *out = self; return 0; }
static int none(void *self) { return 0; }
static int answer(const char *name) { const char *text = getenv(name); return text ? (int)strtoul(text, 0, 16) : 0; }
static int initialize(void *self, void *info) { return answer("FOREIGN_INITIALIZE"); }
static void *table[98];
static struct { void **table; } profiler = { table };
static int create(void *self, void *outer, void *id, void **out) { *out = &profiler; return 0; }
static void *makers[5] = { query, none, none, create, none };
static struct { void **table; } maker = { makers };
int DllGetClassObject(void *class, void *id, void **out) {
    for (int slot = 0; slot < 98; slot++) table[slot] = none;
    table[0] = query, table[3] = initialize;
    int refused = answer("FOREIGN_CLASS");
    *out = refused ? 0 : &maker;
    return refused;
}
"#;

fn foreign_library(place: &TestFolder) -> PathBuf {
    let (source, library) = (place.file("foreign.c"), place.file("libforeign.so"));
    fs::write(&source, FOREIGN).expect("a file");
    let status = Command::new("cc").args(["-shared", "-fPIC", "-o"]).args([&library, &source]).status();
    assert!(status.expect("a C compiler").success());
    library
}

/// Overlays, which containers are made of, close a file although it is mapped.
fn closes_at_once(place: &TestFolder) -> bool {
    const OVERLAY: u64 = 0x794c_7630;
    rustix::fs::statfs(place.path()).is_ok_and(|found| found.f_type as u64 == OVERLAY)
}

#[test]
fn a_library_of_others_is_said_to_be_kept_or_let_go_also_in_the_shortest_program() {
    testkit::each_runtime(|runtime| {
        let place = TestFolder::new();
        let library = foreign_library(&place).to_string_lossy().into_owned();
        let options = ["--profiler", &library, "--clsid", TEMPLATE];
        let stderr_of = |answers: &[(&str, &str)], fixture: &str, arguments: &[&str]| {
            let mut command = over(&place, runtime, &options, fixture, arguments);
            command.envs(answers.iter().copied());
            testkit::run(command).expect_success().stderr_text()
        };
        let said = stderr_of(&[], "Hello", &[]);
        if closes_at_once(&place) {
            // Then only a longer program shows it.
            assert!(said.ends_with("can't be seen on this file system\n"), "on .NET {}: {said}", runtime.version);
        } else {
            let kept = format!("clrscope: '{library}' was loaded until the end\n");
            assert_eq!(said, kept, "on .NET {}", runtime.version);
        }
        for answer in [("FOREIGN_CLASS", "80040111"), ("FOREIGN_INITIALIZE", "80004005")] {
            // The short one is seen at the moment of closing, the long one could also be looked at
            // later.
            let programs = [("Processes", &["linger", "1"][..]), ("Hello", &[])];
            for (fixture, arguments) in programs.into_iter().take(if closes_at_once(&place) { 1 } else { 2 }) {
                let said = stderr_of(&[answer], fixture, arguments);
                let is_reported =
                    said.starts_with("error: the runtime in process ") && said.contains("released it\nwhy: its class");
                assert!(is_reported, "{fixture} with {answer:?} on .NET {}: {said}", runtime.version);
                assert_eq!(said.lines().count(), 3, "{said}");
            }
        }
    });
}

#[test]
fn a_program_without_a_runtime_is_told() {
    let (place, library) = (TestFolder::new(), template().to_string_lossy());
    let run = |variable: &str| {
        let mut command = place.clrscope(["run", "--profiler", &library, "--clsid", TEMPLATE, "--", "true"]);
        let output = command.env(variable, "0").output().expect("the tool starts");
        assert_eq!(output.status.code(), Some(0));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let said = run("UNRELATED");
    assert!(said.starts_with("error: no runtime loaded ") && said.contains("why: the program started no"), "{said}");
    assert!(run("DOTNET_EnableDiagnostics").ends_with("hint: unset DOTNET_EnableDiagnostics\n"));
}

#[test]
fn a_program_waits_for_its_debugger() {
    let (place, runtime) = (TestFolder::new(), newest());
    let mut command = over(&place, runtime, &["-q", "--debugger", "wait", "-o", "w.clrs"], "Ends", &["return", "9"]);
    let mut tool = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the tool starts");
    let mut line = String::new();
    BufReader::new(tool.stderr.take().expect("a pipe")).read_line(&mut line).expect("a line");
    let pid = line.strip_prefix("clrscope: process ").and_then(|rest| rest.split(' ').next()).expect(&line).to_owned();
    assert_eq!(
        line,
        format!("clrscope: process {pid} waits for a debugger: gdb -p {pid} (or lldb -p {pid}), then 'continue'\n")
    );
    let status = || fs::read_to_string(format!("/proc/{pid}/status")).expect("it lives");
    testkit::wait_until("the stop", || status().contains("State:\tT (stopped)"));
    // A debugger continues the process once it has attached.
    assert!(Command::new("kill").args(["-CONT", &pid]).status().expect("kill").success());
    assert_eq!(tool.wait().expect("it ends").code(), Some(9));
    assert!(place.file("w.clrs").is_file(), "and was recorded");
}

#[test]
fn gdb_has_the_program_and_not_the_variables() {
    let (place, runtime) = (TestFolder::new(), newest());
    let there = Command::new("gdb").arg("--version").stdout(Stdio::null()).status();
    if !there.is_ok_and(|status| status.success()) {
        // Without it the refusal is what there is to see.
        let said = testkit::run(over(&place, runtime, &["--debugger", "gdb"], "Hello", &[])).stderr_text();
        assert!(said.starts_with("error: cannot start gdb\n") && said.contains("--debugger wait"), "{said}");
        return;
    }
    let library = template().to_string_lossy();
    let options = ["--debugger", "gdb", "--profiler", &library, "--clsid", TEMPLATE];
    let mut command = over(&place, runtime, &options, "Hello", &[]);
    let mut tool = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("the tool starts");
    let mut commands = tool.stdin.take().expect("a pipe");
    let script = "shell echo \"own=[$CORECLR_PROFILER]\"\nrun\nshow environment CORECLR_PROFILER\ncontinue\nquit\n";
    commands.write_all(script.as_bytes()).expect("gdb reads");
    drop(commands);
    let output = tool.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("own=[]"), "{said}");
    if said.contains("Operation not permitted") {
        // Some containers allow no debugger at all.
        return;
    }
    let stop = said.find("in DllGetClassObject").unwrap_or_else(|| panic!("{said}"));
    assert!(said[stop..].contains(&format!("CORECLR_PROFILER = {{{}}}", TEMPLATE.to_uppercase())), "{said}");
    assert!(said[stop..].contains("Hello, World!"), "{said}");
}
