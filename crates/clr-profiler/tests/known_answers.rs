//! Programs that know their own answer, under the example profiler `call_edges`, on every runtime
//! at hand.

mod common;

use std::collections::BTreeMap;

use clrscope_testkit as testkit;
use common::{profiled, profiler};
use testkit::{Expectations, Runtime};

/// Lines of the profiler, by their kind.
#[derive(Default)]
struct LineCounts {
    lines: BTreeMap<String, u64>,
}

impl LineCounts {
    fn parse(text: &str) -> Self {
        let split = |line: &str| line.rsplit_once(' ').map(|(what, n)| (what.to_owned(), n.parse().expect("a number")));
        Self { lines: text.lines().filter_map(split).collect() }
    }

    fn get(&self, what: &str) -> u64 {
        self.lines.get(what).copied().unwrap_or(0)
    }
}

/// Runs a fixture under the profiler; gives what that saw and what the program wrote.
fn finish(runtime: &Runtime, fixture: &str) -> (LineCounts, String) {
    let folder = testkit::scratch();
    let output = folder.path().join("edges");
    let mut command = profiled(runtime, fixture, &profiler("call_edges"), "{6F0E8E6B-2C8E-4B6B-9A55-5D1E3B1F7C03}");
    command.env("CALL_EDGES_OUTPUT", &output);
    let finished = testkit::run(command).expect_success();
    assert_eq!(finished.stderr_text(), "", "{fixture} on {}", runtime.version);
    let seen = std::fs::read_to_string(&output).expect("the profiler writes at the end");
    (LineCounts::parse(&seen), finished.stdout_text())
}

fn run(runtime: &Runtime, fixture: &str) -> (Expectations, LineCounts) {
    let (seen, stdout) = finish(runtime, fixture);
    (Expectations::parse(&stdout), seen)
}

/// Runs a fixture on every runtime and compares all it states with what the profiler saw.
fn check(fixture: &str) {
    testkit::each_runtime(|runtime| {
        let (expected, seen) = run(runtime, fixture);
        let mut wrong = Vec::new();
        let mut compare = |what: String, n: u64| {
            if seen.get(&what) != n {
                wrong.push(format!("{what}: expected {n}, saw {}", seen.get(&what)));
            }
        };
        expected.calls.iter().for_each(|(name, n)| compare(format!("calls {name}"), *n));
        expected.edges.iter().for_each(|((caller, callee), n)| compare(format!("edge {caller} -> {callee}"), *n));
        expected.max_recursion.iter().for_each(|(name, n)| compare(format!("depth {name}"), *n));
        compare("panics".to_owned(), 0);
        assert!(wrong.is_empty(), "{fixture} on .NET {}:\n{}", runtime.version, wrong.join("\n"));
    });
}

#[test]
fn recursion_is_counted_call_by_call() {
    check("Recursion");
}

#[test]
fn what_finally_catch_and_filter_blocks_call_stands_under_their_method() {
    check("Exceptions");
}

#[test]
fn tail_calls_hang_under_the_callers_caller() {
    check("TailCalls");
}

#[test]
fn generics_are_one_function_per_name() {
    check("Generics");
}

#[test]
fn virtual_and_interface_calls_reach_the_right_body() {
    check("Dispatch");
}

#[test]
fn delegates_and_lambdas_belong_to_their_method() {
    check("Delegates");
}

#[test]
fn iterators_are_their_source_method() {
    check("Iterators");
}

#[test]
fn async_methods_are_their_source_method() {
    check("Async");
}

#[test]
fn each_thread_has_a_stack_of_its_own() {
    check("Threads");
}

#[test]
fn callbacks_from_native_code_are_calls() {
    check("Native");
}

#[test]
fn what_dynamic_methods_call_is_counted() {
    check("Dynamic");
}

#[test]
fn code_that_is_unloaded_and_its_reused_identifiers_confuse_nothing() {
    check("Loading");
}

#[test]
fn deep_recursion_small_stacks_and_many_threads_are_survived() {
    check("Stacks");
}

#[test]
fn the_runtime_answers_every_question_and_the_answers_agree() {
    testkit::each_runtime(|runtime| {
        let folder = testkit::scratch();
        let output = folder.path().join("checks");
        let mut command = profiled(runtime, "Names", &profiler("self_check"), "{6F0E8E6B-2C8E-4B6B-9A55-5D1E3B1F7C05}");
        command.env("SELF_CHECK_OUTPUT", &output);
        testkit::run(command).expect_success();
        let checks = std::fs::read_to_string(&output).expect("the profiler writes when the method is compiled");
        let wrong: Vec<_> = checks.lines().filter(|line| line.starts_with("WRONG")).collect();
        assert!(wrong.is_empty(), "on .NET {}:\n{}", runtime.version, wrong.join("\n"));
        assert!(checks.lines().any(|line| line.starts_with(&format!("version {}.", runtime.major()))), "{checks}");
        assert!(checks.lines().any(|line| line == "ok nothing changed"), "the checks ended early:\n{checks}");
    });
}

#[test]
fn arguments_and_results_survive_the_hooks() {
    testkit::each_runtime(|runtime| {
        let bare = testkit::run(runtime.command(&testkit::fixture("Registers"))).expect_success();
        let (_, profiled) = finish(runtime, "Registers");
        assert_eq!(profiled, bare.stdout_text(), "on .NET {}", runtime.version);
    });
    check("Registers");
}

/// Names that the fixture `Names` is made to show; lines are as C# writes them, worked out from its
/// source.
const NAMES: &str = include_str!("names.txt");

/// Instantiations over reference types share code. .NET 10 tells that class, .NET 8 and 9 do not.
const SHARED_NAMES: &str = include_str!("names_shared.txt");

#[test]
fn functions_are_named_as_in_their_source_and_shared_ones_alike_on_every_runtime() {
    testkit::each_runtime(|runtime| {
        let (_, seen) = run(runtime, "Names");
        let missing: Vec<_> = NAMES
            .lines()
            .chain(SHARED_NAMES.lines())
            .filter(|line| seen.get(&format!("signature [Names]{line}")) != 1)
            .collect();
        assert!(missing.is_empty(), "on .NET {}:\n{}", runtime.version, missing.join("\n"));
    });
}
