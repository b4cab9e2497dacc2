//! Programs with one trouble each: the first thing that stands out names its kind, its method and
//! its line. Some look alike from outside: nothing but time goes by.

mod common;

use std::io::{BufReader, Read};
use std::process::Stdio;

use clrscope_testkit as testkit;
use common::TestFolder;
use serde_json::Value;
use testkit::{Runtime, each_runtime, fixture, workspace_root};

/// All that can find something.
const ALL: &str = "-i cpu -i wall -i exceptions -i alloc -i gc";
/// And what changes the code of async methods.
const ALL_AND_AWAITS: &str = "-i cpu -i wall -i exceptions -i alloc -i gc -i awaits";

/// A trouble of the program `Troubles`.
struct Trouble {
    /// The program's word for it.
    name: &'static str,
    instruments: &'static str,
    kind: &'static str,
    /// Method that is named, of the program's class; empty where none is.
    method: &'static str,
    /// Comment at the end of the line that is named.
    line: &'static str,
}

const fn trouble(name: &'static str, kind: &'static str, method: &'static str, line: &'static str) -> Trouble {
    Trouble { name, instruments: ALL, kind, method, line }
}

/// Troubles that are named in the same way whether a program is started or runs already.
const TROUBLES: &[Trouble] = &[
    trouble("convoy", "lock-convoy", "Book", "convoy"),
    trouble("convoy-of-pool", "lock-convoy", "Book", "convoy"),
    trouble("readers", "lock-convoy", "Look", "readers"),
    trouble("starved", "pool-starved", "Fetch", "starved"),
    trouble("sync-over-async", "wait", "Fetch", "starved"),
    Trouble { instruments: ALL_AND_AWAITS, ..trouble("starved", "pool-starved", "Fetch", "starved") },
    Trouble { instruments: ALL_AND_AWAITS, ..trouble("sync-over-async", "wait", "Fetch", "starved") },
    Trouble { instruments: ALL_AND_AWAITS, ..trouble("slow-await", "await", "Quote", "slow-await") },
    Trouble { instruments: ALL_AND_AWAITS, ..trouble("cpu", "cpu", "Price", "cpu") },
    Trouble { instruments: "-i cpu -i awaits", ..trouble("slow-await", "await", "Quote", "slow-await") },
    trouble("slow-io", "wait", "Listen", "slow-io"),
    trouble("sleeping", "wait", "Retry", "sleeping"),
    trouble("cpu", "cpu", "Price", "cpu"),
    trouble("gc", "gc", "Make", "gc"),
    trouble("exceptions", "exceptions", "Parse", "exceptions"),
    Trouble { instruments: "-i alloc", ..trouble("allocations", "allocation", "", "") },
    Trouble { instruments: "-i cpu -i gc", ..trouble("growing", "growing-heap", "", "") },
];

/// A method that blocks, and is inlined into another.
const INLINED: Trouble = trouble("inlined", "pool-starved", "FetchInlined", "inlined");
/// The same, where nothing told of the code that was compiled before.
const CALLER_OF_INLINED: Trouble = Trouble { method: "Ask", line: "caller of inlined", ..INLINED };

/// What stands out first in a recording.
fn first_finding(place: &TestFolder, recording: &str) -> Value {
    let output = place.run(&format!("report {recording} --view summary --json"));
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    document["findings"][0].clone()
}

/// Why a finding does not name a trouble.
fn fault(found: &Value, trouble: &Trouble, runtime: &Runtime) -> Result<(), String> {
    let source = workspace_root().join("dotnet/fixtures/Troubles/Troubles.cs");
    let source = std::fs::read_to_string(source).expect("the source");
    let ending = format!("// {}", trouble.line);
    let mut expected = (Value::from(trouble.kind), Value::Null, Value::Null);
    if !trouble.method.is_empty() {
        let line = 1 + source.lines().position(|line| line.ends_with(&ending)).expect("the line");
        expected.1 = format!("Troubles.Program::{}", trouble.method).into();
        expected.2 = line.into();
    }
    let said = (found["kind"].clone(), found["function"].clone(), found["line"].clone());
    if said == expected { Ok(()) } else { Err(format!("{} {}: {found:#}", runtime.version, trouble.name)) }
}

fn started(runtime: &Runtime, trouble: &Trouble) -> Result<(), String> {
    let place = TestFolder::new();
    let mut command = place.clrscope(["run", "-q", "-o", "a.clrs"]);
    command.args(trouble.instruments.split(' ')).arg("--");
    command.args(runtime.words(&fixture("Troubles"))).args([trouble.name, "1000"]);
    runtime.prepare(&mut command);
    testkit::run(command).expect_success();
    fault(&first_finding(&place, "a.clrs"), trouble, runtime)
}

fn attached(runtime: &Runtime, trouble: &Trouble) -> Result<(), String> {
    let place = TestFolder::new();
    let mut command = runtime.command(&fixture("Troubles"));
    let mut program =
        command.args([trouble.name, "100000"]).stdout(Stdio::piped()).spawn().expect("the program starts");
    let mut said = String::new();
    let output = BufReader::new(program.stdout.take().expect("its output"));
    output.take(6).read_to_string(&mut said).expect("text");
    let line = format!("attach {} -q --duration 1s {} -o a.clrs", program.id(), trouble.instruments);
    let output = place.run(&line);
    program.kill().expect("it can be ended");
    program.wait().expect("it ends");
    assert!(output.status.success() && said == "READY\n", "{output:?} {said}");
    fault(&first_finding(&place, "a.clrs"), trouble, runtime)
}

#[test]
fn each_trouble_of_a_started_program_is_named_first_with_its_line() {
    each_runtime(|runtime| {
        for trouble in TROUBLES.iter().chain([&INLINED]) {
            assert_eq!(testkit::attempted(|| started(runtime, trouble)), Ok(()));
        }
    });
}

#[test]
fn each_trouble_of_a_running_program_is_named_first_with_its_line() {
    each_runtime(|runtime| {
        for trouble in TROUBLES.iter().chain([&CALLER_OF_INLINED]) {
            assert_eq!(testkit::attempted(|| attached(runtime, trouble)), Ok(()));
        }
    });
}
