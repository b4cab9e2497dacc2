//! Logical paths of a real program: whose work is what comes after an await.

mod common;

use std::path::Path;

use clrscope_testkit as testkit;
use common::TestFolder;
use serde_json::Value;
use testkit::{Runtime, Sdk, each_runtime, fixture};

/// So many that the compilation of a method is far below a hundredth of the CPU time.
const ROUNDS: u64 = 600;

/// Records the program `Awaited`; what it says itself under a name comes back.
fn recorded(place: &TestFolder, runtime: &Runtime) -> impl Fn(&str) -> u64 + use<> {
    let mut command =
        place.clrscope(["run", "-q", "-i", "cpu", "-i", "alloc:exact", "-i", "exceptions", "-o", "a.clrs", "--"]);
    command.args(runtime.words(&fixture("Awaited"))).arg(ROUNDS.to_string());
    runtime.prepare(&mut command);
    let ended = testkit::run(command).expect_success();
    let text = ended.stdout_text();
    move |name| {
        let said = text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        said.unwrap_or_else(|| panic!("{name}: {text}"))
    }
}

/// Rows of functions of a metric.
fn rows(place: &TestFolder, options: &str) -> Vec<Value> {
    let output = place.run(&format!("report a.clrs --view functions --json {options}"));
    assert!(output.status.success(), "{options}: {}", String::from_utf8_lossy(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    document["rows"].as_array().expect("rows").clone()
}

/// The largest amount in a column among the functions of this name: the method, and its code after
/// the first await.
fn amount(rows: &[Value], name: &str, column: &str) -> u64 {
    let all = rows.iter().filter(|row| row["name"] == name).filter_map(|row| row[column].as_u64());
    all.max().unwrap_or(0)
}

/// `ReadConfig`, which does nothing but wait, had 11 % (.NET 8) to 83 % (10) of the CPU time: that
/// of `Price`, which its awaiter calls. The program clocks `Price` itself, and counts its arrays
/// and exceptions.
#[test]
fn a_method_that_only_waits_has_nothing_of_the_work_of_its_awaiter() {
    each_runtime(|runtime| {
        let outcome = testkit::attempted(|| {
            let place = TestFolder::new();
            let said = recorded(&place, runtime);
            counts_are_of_the_awaiter(&place, &said);
            cpu_time_is_of_the_awaiter(&place, &said)
        });
        assert_eq!(outcome, Ok(()), "{}", runtime.version);
    });
}

/// Whether the awaiter has the CPU time, and the method that waits has none of it. What
/// `ReadConfig` has is its own: it is compiled, and sets timers.
fn cpu_time_is_of_the_awaiter(place: &TestFolder, said: impl Fn(&str) -> u64) -> Result<(), String> {
    let exported = place.run("export a.clrs --to collapsed --metric cpu -o a.txt --force");
    assert!(exported.status.success(), "{}", String::from_utf8_lossy(&exported.stderr));
    let stacks = std::fs::read_to_string(place.file("a.txt")).expect("stacks");
    let (of_read, of_price): (Vec<&str>, Vec<&str>) = stacks
        .lines()
        .filter(|stack| stack.contains("::ReadConfig") || stack.contains("::Price"))
        .partition(|stack| stack.contains("::ReadConfig"));
    assert!(!of_price.is_empty() && of_read.iter().all(|stack| !stack.contains("::Price")), "{of_read:#?}");
    let cpu = rows(place, "--metric cpu");
    let of = |name| amount(&cpu, name, "total_cpu_ns");
    let (checkout, price) = (of("Awaited.Shop::Checkout"), of("Awaited.Shop::Price"));
    let is_whole = checkout as f64 >= 0.95 * said("CLOCKED") as f64 && price > 0 && checkout >= price;
    if is_whole { Ok(()) } else { Err(format!("{checkout} of {}, {price}", said("CLOCKED"))) }
}

/// Bytes and exceptions are counted, whatever the machine is about.
fn counts_are_of_the_awaiter(place: &TestFolder, said: impl Fn(&str) -> u64) {
    assert_eq!((said("ARRAYS"), said("THROWN")), (ROUNDS, ROUNDS));
    let bytes = rows(place, "--metric bytes");
    let arrays = said("ARRAYS") * 10_024;
    assert!(amount(&bytes, "Awaited.Shop::Checkout", "total_bytes") >= arrays, "{bytes:#?}");
    assert!(amount(&bytes, "Awaited.Shop::ReadConfig", "total_bytes") < arrays / 10, "{bytes:#?}");

    let thrown = rows(place, "--metric exceptions");
    let of = |name| amount(&thrown, name, "total_exceptions");
    assert_eq!((of("Awaited.Shop::Checkout"), of("Awaited.Shop::ReadConfig")), (said("THROWN"), 0));
    // All awaiters are known, up to the outermost one.
    assert_eq!((of("Awaited.Program::Main"), of("[unknown awaiter]")), (said("THROWN"), 0), "{thrown:#?}");
}

/// Schedulers and builders are in the picture where it is asked for, with the same sum.
#[test]
fn physical_paths_have_schedulers_and_the_same_sum() {
    each_runtime(|runtime| {
        let place = TestFolder::new();
        let _ = recorded(&place, runtime);
        let is_box =
            |row: &Value| row["name"].as_str().is_some_and(|name| name.ends_with("AsyncStateMachineBox::MoveNext"));
        let sum = |rows: &[Value]| rows.iter().filter_map(|row| row["self_cpu_ns"].as_u64()).sum::<u64>();
        let [logical, named, physical] =
            ["", "--paths logical", "--paths physical"].map(|paths| rows(&place, &format!("--metric cpu {paths}")));
        assert_eq!(logical, named, "the default");
        assert!(!logical.iter().any(is_box) && physical.iter().any(is_box), "{}", runtime.version);
        assert_eq!(sum(&logical), sum(&physical));
    });
}

#[test]
fn kinds_of_paths_are_refused_where_there_are_none() {
    let place = TestFolder::new();
    for (line, reason) in [
        ("report a.clrs --paths odd", "logical, physical"),
        ("report a.clrs --view losses --paths physical", "its rows do not come from call stacks"),
        ("export a.clrs --to lcov --paths physical", "it shows no call stacks"),
    ] {
        let refused = place.run(line);
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(refused.status.code() == Some(2) && said.contains(reason), "{line}: {said}");
    }
}

/// Each await has the line that the runtime's own stack trace has of it, once the exception has
/// come through: not that of the call whose task is awaited, and not that of another await of the
/// method.
#[test]
fn awaiters_stand_at_the_lines_of_the_runtimes_own_stack_traces() {
    let built = TestFolder::new();
    let debug = Sdk::find().map(|sdk| sdk.compile_without_optimisation("AwaitLines", built.path()));
    if debug.is_none() {
        testkit::not_run("lines of awaits in code that was compiled without optimisation: no .NET SDK is at hand");
    }
    each_runtime(|runtime| {
        for program in debug.iter().cloned().chain([fixture("AwaitLines")]) {
            check_lines_of_awaits(runtime, &program);
        }
    });
}

fn check_lines_of_awaits(runtime: &Runtime, program: &Path) {
    let place = TestFolder::new();
    let mut command = place.clrscope(["run", "-q", "-i", "exceptions", "-o", "a.clrs", "--"]);
    command.args(runtime.words(program));
    runtime.prepare(&mut command);
    let printed = testkit::run(command).expect_success().stdout_text();
    let said = printed.lines().filter_map(|line| line.strip_prefix("LINES "));
    let said: Vec<Vec<&str>> = said.map(|line| line.split(' ').collect()).collect();
    let output = place.run("report a.clrs --view exceptions --each --json");
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let rows = document["rows"].as_array().expect("rows").iter();
    let thrown = rows.filter(|row| row["type"] == "AwaitLines.Failure" && row["rethrow_of"].is_null());
    let thrown: Vec<&Value> = thrown.collect();
    assert_eq!((thrown.len(), said.len()), (42, 42), "{}", runtime.version);
    for (row, said) in thrown.into_iter().zip(said) {
        let (name, lines) = said.split_first().expect("a name");
        assert_eq!(row["message"], *name, "{}", runtime.version);
        let frames = row["stack"].as_array().expect("a stack").iter();
        let found: Vec<String> =
            frames.filter(|frame| frame["module"] == "AwaitLines").map(|frame| frame["line"].to_string()).collect();
        // The trace ends where the exception is caught; who awaits that method is further out.
        let traced = &found[..lines.len().min(found.len())];
        assert_eq!(traced, lines, "{} {name}: {row:#}", runtime.version);
    }
}
