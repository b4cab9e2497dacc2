//! Every fixture knows how often its methods are called and by whom; the tree must say the same, on
//! every runtime at hand and with both clocks.

use crate::support::{Sums, compare, known, record, record_with};
use clrscope_testkit::{Expectations, each_runtime};

/// Clocks, each with the whole set of fixtures.
const REQUESTS: [&str; 2] = ["calls", "calls:clock=tsc"];

fn check(name: &str) {
    known::check(name, &REQUESTS);
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
fn virtual_and_interface_calls() {
    check("Dispatch");
}

#[test]
fn delegates_lambdas_and_local_functions() {
    check("Delegates");
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

/// On .NET 9 the runtime's exception handling is managed code, which returns after the blocks that
/// it has called.
#[test]
fn helpers_that_handle_exceptions_leave_without_a_loss() {
    known::check("Exceptions", &["calls:helpers=on"]);
}

/// The runtime's handlers of the outer exception leave after those of the inner one, which its
/// method itself catches.
#[test]
fn helpers_leave_without_a_loss_after_a_finally_block_that_throws_and_catches() {
    known::check("Within", &["calls", "calls:helpers=on"]);
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
fn dynamic_methods() {
    check("Dynamic");
}

#[test]
fn eight_threads_and_the_pool() {
    check("Threads");
}

/// Hooks find the callees beyond the first forty in another way than by walking their blocks.
#[test]
fn callers_with_twenty_thousand_callees_on_many_threads_count_exactly() {
    each_runtime(|runtime| {
        for (request, callees, threads) in
            [("calls", "20000", "2"), ("calls:clock=tsc", "1000", "8"), ("calls;flow", "200", "4")]
        {
            let run = record_with(runtime, "Callees", request, &[callees, threads]);
            let place = format!("{callees} callees with {request} on {}", runtime.version);
            let process = &run.recording.processes[0];
            let wrong =
                compare(&Expectations::parse(&run.finished.stdout_text()), &Sums::of_process(process, "Callees"));
            let lost: Vec<_> = process.losses.iter().filter(|loss| !loss.reason.is_benign()).collect();
            assert!(
                wrong.is_empty() && lost.is_empty(),
                "{place}: {lost:?}, {} wrong, {:?}",
                wrong.len(),
                wrong.first()
            );
        }
    });
}

#[test]
fn inlined_methods_without_inlining() {
    known::check("Inlining", &["calls:noinline", "calls:noinline,clock=tsc"]);
}

/// Names of unmanaged functions are ours to give, so the fixture's own lines stand next to what the
/// constants in its source say about `qsort`, `abs` and `getpid`.
#[test]
fn unmanaged_calls_stand_in_the_tree_with_their_callbacks() {
    each_runtime(|runtime| {
        let run = record(runtime, "Native", "calls:native=on");
        let process = &run.recording.processes[0];
        let sums = Sums::of_process(process, "Native");
        let expected = Expectations::parse(&run.finished.stdout_text());
        let place = format!("Native on {}", runtime.version);
        for (name, truth) in &expected.calls {
            assert_eq!(sums.calls.get(name), Some(truth), "{place}: {name}");
        }
        let edge = |parent: &str, child: &str| sums.edges.get(&(parent.to_owned(), child.to_owned())).copied();
        let rounds = expected.calls("Native.Program::CallAbsolute");
        assert_eq!(edge("Native.Program::CallAbsolute", "[libc]abs"), rounds, "{place}");
        assert_eq!(edge("Native.Program::CallProcessId", "[libc]getpid"), rounds, "{place}");
        for (caller, callback) in [("SortWithDelegate", "Compare"), ("SortWithPointer", "ComparePointers")] {
            let (caller, callback) = (format!("Native.Program::{caller}"), format!("Native.Program::{callback}"));
            assert_eq!(edge(&caller, "[libc]qsort"), expected.calls("Native.Program::SortWithDelegate"), "{place}");
            assert!(edge("[libc]qsort", &callback) >= expected.calls(&callback), "{place}: {callback}");
            assert_eq!(edge(&caller, &callback), None, "{place}: {callback} is called by qsort");
        }
    });
}

/// The fixtures are compiled without a version of their own; the framework's is the runtime's.
#[test]
fn modules_have_the_version_of_their_assembly() {
    each_runtime(|runtime| {
        let run = record(runtime, "Recursion", "calls");
        let modules = &run.recording.processes[0].modules;
        let version =
            |name: &str| modules.iter().find(|module| module.name == name).map(|module| module.version.clone());
        assert_eq!(version("Recursion"), Some("0.0.0.0".to_owned()), "on {}", runtime.version);
        let core = format!("{}.0.0.0", runtime.major());
        assert_eq!(version("System.Private.CoreLib"), Some(core), "on {}", runtime.version);
    });
}

/// A tight loop of calls is there for the helper thread to measure what hooks cost in it. Where
/// others keep the processor busy it may find no time to, so a few runs may pass.
#[test]
fn the_cost_of_hooks_is_measured_in_the_program_itself() {
    each_runtime(|runtime| {
        for request in REQUESTS {
            let measured = (0..12).any(|_| {
                let run = record(runtime, "Shares", request);
                let process = &run.recording.processes[0];
                let sums = Sums::of_process(process, "Shares");
                // 200 rounds of 100,000 and of 300 calls, whatever was tried on their hooks
                // meanwhile.
                assert_eq!(
                    sums.calls.get("Shares.Program::Many"),
                    Some(&20_000_000),
                    "{request} on {}",
                    runtime.version
                );
                assert_eq!(sums.calls.get("Shares.Program::Some"), Some(&60_000), "{request} on {}", runtime.version);
                let costs = &process.calls.as_ref().expect("calls").pair_costs;
                let name = |index: u32| process.functions[index as usize].name.as_str();
                costs.iter().any(|pair| {
                    let cost = pair.cost.enter_ns + pair.cost.leave_ns;
                    assert!(pair.cost.pair_low_ns <= cost && cost <= pair.cost.pair_high_ns, "{pair:?}");
                    name(pair.caller) == "Shares.Program::RunMany" && name(pair.callee) == "Shares.Program::Many"
                })
            });
            assert!(measured, "{request} on {}", runtime.version);
        }
    });
}
