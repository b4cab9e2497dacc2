//! `flow` against what each fixture knows of itself, alone and together with `calls`, on every runtime
//! at hand: counts, callers, threads, recursion; every begin has its end.

mod support;

use clrscope_testkit::{Expectations, each_runtime, run};
use support::flow::FlowSums;
use support::{Sums, compare, record};

/// Alone, and with either clock of `calls`.
const REQUESTS: [&str; 3] = ["flow", "calls;flow:all", "flow:all;calls:clock=tsc"];

fn check(name: &str) {
    each_runtime(|runtime| {
        let bare = run(runtime.command(&clrscope_testkit::fixture(name))).expect_success();
        for request in REQUESTS {
            let run = record(runtime, name, request);
            let place = format!("{name} on {} with {request}", runtime.version);
            assert_eq!(run.finished.stdout_text(), bare.stdout_text(), "{place}: stdout");
            assert_eq!(run.finished.code(), bare.code(), "{place}: exit code");
            assert_eq!(run.recording.problems, [], "{place}");
            let process = &run.recording.processes[0];
            assert!(process.complete, "{place}: the end was not seen");
            assert_eq!(process.losses, [], "{place}");
            let expected = Expectations::parse(&run.finished.stdout_text());
            let flow = FlowSums::of(&run.recording, name);
            let wrong = compare(&expected, &flow.sums);
            assert!(wrong.is_empty(), "{place}, flow:\n{}", wrong.join("\n"));
            assert_eq!(flow.enters, flow.ends + flow.open, "{place}: begins and ends");
            if request.contains("calls") {
                let wrong = compare(&expected, &Sums::of(process, name));
                assert!(wrong.is_empty(), "{place}, calls:\n{}", wrong.join("\n"));
            }
        }
    });
}

#[test]
fn recursion() {
    check("Recursion");
}

#[test]
fn generics() {
    check("Generics");
}

#[test]
fn iterators() {
    check("Iterators");
}

#[test]
fn async_methods() {
    check("Async");
}

#[test]
fn exceptions_through_finally_catch_and_filters() {
    check("Exceptions");
}

#[test]
fn tail_calls() {
    check("TailCalls");
}

#[test]
fn native_calls_with_callbacks() {
    check("Native");
}

#[test]
fn eight_threads_and_the_pool() {
    check("Threads");
}
