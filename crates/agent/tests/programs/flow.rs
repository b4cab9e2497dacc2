//! `flow` against what each fixture knows of itself, alone and together with `calls`, on every
//! runtime at hand: counts, callers, threads, recursion; every begin has its end.

use std::collections::BTreeMap;

use crate::support::flow::FlowSums;
use crate::support::{compare, known, record, record_with};
use clrscope_analysis::{FlowKind, FlowLog, Query, ThreadSelector};
use clrscope_recording::model::{LossReason, Recording};
use clrscope_testkit::{Expectations, each_runtime};

/// Alone, and with either clock of `calls`.
const REQUESTS: [&str; 3] = ["flow", "calls;flow:all", "flow:all;calls:clock=tsc"];

fn check(name: &str) {
    known::check_more(name, &REQUESTS, |flow, place| {
        balanced(flow, name, place);
        // Where nothing is thrown every call says itself that it ends.
        let own: Vec<_> = flow.unwound.iter().filter(|(function, _)| function.starts_with(name)).collect();
        assert!(["Exceptions", "Async"].contains(&name) || own.is_empty(), "{place}: {own:?} ended without a word");
    });
}

/// Every begin has its end on its thread ([`FlowSums`] sees that each end is that of the innermost
/// call), and of the program's own calls none is open.
fn balanced(flow: &FlowSums, name: &str, place: &str) {
    assert_eq!(flow.enters, flow.ends + flow.open.len() as u64, "{place}: begins and ends");
    let own: Vec<_> = flow.open.iter().filter(|open| open.function.starts_with(name)).collect();
    assert!(own.is_empty(), "{place}: {own:?} did not end");
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

/// Calls by name, without looking at the rows.
fn counts(recording: &Recording) -> BTreeMap<String, u64> {
    let log = FlowLog::open(recording, &Query::default(), None).expect("flow was recorded");
    let Ok((functions, _)) = log.walk(|_| Ok::<(), std::convert::Infallible>(()));
    functions.iter().map(|function| (function.function.name().to_owned(), function.calls)).collect()
}

/// Functions that the main thread was in when its events ended, outermost first.
fn last_stack(recording: &Recording) -> Vec<String> {
    let query = Query { threads: vec![ThreadSelector::parse("main")], ..Query::default() };
    let log = FlowLog::open(recording, &query, None).expect("flow was recorded");
    let mut stack = Vec::new();
    let Ok(_) = log.walk(|row| -> Result<(), std::convert::Infallible> {
        match row.kind {
            FlowKind::Enter => stack.push(row.function.name().to_owned()),
            FlowKind::Leave | FlowKind::TailCall => _ = stack.pop(),
        }
        Ok(())
    });
    stack
}

#[test]
fn every_way_to_end_leaves_the_events_until_then() {
    let ways: [&[&str]; 6] =
        [&["exit", "4"], &["_exit", "3"], &["signal", "9"], &["failfast"], &["unhandled"], &["stackoverflow"]];
    each_runtime(|runtime| {
        for arguments in ways {
            let run = record_with(runtime, "Ends", "flow", arguments);
            let place = format!("{arguments:?} on {}", runtime.version);
            let truth = Expectations::parse(&run.finished.stdout_text()).calls("Ends.Program::Work");
            assert_eq!(counts(&run.recording).get("Ends.Program::Work").copied(), truth, "{place}");
            let stack = last_stack(&run.recording);
            // A stack overflow leaves as many more as there was room for.
            let most = if arguments[0] == "stackoverflow" { 2 } else { usize::MAX };
            let own: Vec<_> = stack.iter().filter(|name| name.starts_with("Ends.")).take(most).collect();
            // A call that throws an uncaught exception never ends.
            let thrower = (arguments[0] == "unhandled").then_some("Ends.Program::Throw");
            let truth: Vec<_> = ["Ends.Program::Main", "Ends.Program::End"].into_iter().chain(thrower).collect();
            assert_eq!(own, truth, "{place}");
        }
    });
}

/// Little stacks, a thousand threads, exceptions through ten thousand calls: those are ended by
/// what the agent notes of exceptions, and only those.
#[test]
fn calls_that_exceptions_end_are_ended_once_on_every_thread() {
    each_runtime(|runtime| {
        let run = record_with(runtime, "Stacks", "flow:all;include=[Stacks]*", &[]);
        let place = format!("Stacks on {}", runtime.version);
        assert_eq!(run.finished.code(), 0, "{place}");
        let expected = Expectations::parse(&run.finished.stdout_text());
        let flow = FlowSums::replay(&run.recording, "Stacks");
        let wrong = compare(&expected, &flow.sums);
        assert!(wrong.is_empty(), "{place}:\n{}", wrong.join("\n"));
        balanced(&flow, "Stacks.", &place);
        let thrown_through = ["Stacks.Program::Descend", "Stacks.Program::Dive"];
        let truth: BTreeMap<String, u64> =
            thrown_through.iter().map(|name| ((*name).to_owned(), expected.calls(name).expect("is said"))).collect();
        assert_eq!(flow.unwound, truth, "{place}: calls that exceptions ended");
        assert!(run.recording.processes[0].threads.len() > 1_000, "{place}");
    });
}

/// Methods of one line, optimised: any call of them is seen once they are named.
#[test]
fn named_methods_are_never_inlined() {
    each_runtime(|runtime| {
        for request in ["flow:all;include=[Inlining]*", "flow:all,args=types;include=[Inlining]*"] {
            let run = record_with(runtime, "Inlining", request, &[]);
            let flow = FlowSums::replay(&run.recording, "Inlining");
            let wrong = compare(&Expectations::parse(&run.finished.stdout_text()), &flow.sums);
            assert!(wrong.is_empty(), "{request} on {}:\n{}", runtime.version, wrong.join("\n"));
        }
    });
}

#[test]
fn a_forked_child_never_writes_its_parents_events() {
    each_runtime(|runtime| {
        let run = record_with(runtime, "Processes", "flow", &["fork"]);
        let expected = Expectations::parse(&run.finished.stdout_text());
        let counts = counts(&run.recording);
        for (name, truth) in &expected.calls {
            assert_eq!(counts.get(name), Some(truth), "{name} on {}", runtime.version);
        }
    });
}

/// Rows of the main thread, in order; how many, and the last.
fn rows(recording: &Recording) -> (u64, Option<(FlowKind, String, u32)>) {
    let log = FlowLog::open(recording, &Query::default(), None).expect("flow was recorded");
    let (mut rows, mut last, mut last_ns) = (0, None, 0);
    let Ok(_) = log.walk(|row| -> Result<(), std::convert::Infallible> {
        assert!(row.time_ns >= last_ns, "time runs backwards at {row:?}");
        last_ns = row.time_ns;
        rows += 1;
        last = Some((row.kind, row.function.name().to_owned(), row.depth));
        Ok(())
    });
    (rows, last)
}

/// Every event is either there or counted as lost, whatever stands between the events: nothing,
/// registers, values.
#[test]
fn a_ring_keeps_the_end_and_counts_the_events_it_lost() {
    each_runtime(|runtime| {
        let (all, _) = rows(&record(runtime, "Recursion", "flow:all;include=[Recursion]*").recording);
        for (options, least) in [("", 30_000), (",args", 5_000)] {
            let run = record(runtime, "Recursion", &format!("flow:last=1MiB{options};include=[Recursion]*"));
            let place = format!("flow:last=1MiB{options} on {}", runtime.version);
            assert_eq!(run.finished.code(), 0, "{place}");
            let losses = &run.recording.processes[0].losses;
            let [loss] = losses.as_slice() else { panic!("{losses:?} with {place}") };
            assert_eq!(loss.reason, LossReason::RingOverwritten, "{place}");
            let (kept, last) = rows(&run.recording);
            assert_eq!(last, Some((FlowKind::Leave, "Recursion.Program::Main".to_owned(), 0)), "{place}");
            assert!(kept > least, "{kept} with {place}");
            assert_eq!(kept + loss.count, all, "{kept} kept and {} lost with {place}", loss.count);
        }
    });
}

/// Four threads fill the ring faster than it is backed, and a thread that sleeps in a hook until
/// there is more can't be stopped: a collection took 30 ms. Events are there or counted all the
/// same.
#[test]
fn no_collection_waits_for_a_hook_that_waits_for_memory() {
    each_runtime(|runtime| {
        let run = record_with(runtime, "Collecting", "flow:last=64MiB;include=[Collecting]*", &["4", "300"]);
        let place = format!("Collecting on {}", runtime.version);
        assert_eq!(run.finished.code(), 0, "{place}");
        let process = &run.recording.processes[0];
        let naps = process.remarks.iter().find(|remark| remark.text.contains("kept the runtime from stopping"));
        assert!(naps.is_none(), "{place}: {naps:?}");
        let lost: u64 = process.losses.iter().map(|loss| loss.count).sum();
        assert!(process.losses.iter().all(|loss| loss.reason == LossReason::RingOverwritten), "{place}: {process:?}");
        let log = FlowLog::open(&run.recording, &Query::default(), None).expect("flow was recorded");
        let mut kept = 0;
        let Ok(_) = log.walk(|row| -> Result<(), std::convert::Infallible> {
            kept += u64::from(!row.unwound);
            Ok(())
        });
        let calls =
            Expectations::parse(&run.finished.stdout_text()).calls("Collecting.Program::Leaf").expect("is said");
        assert!(
            (2 * calls..2 * calls + 100).contains(&(kept + lost)),
            "{place}: {calls} calls, {kept} kept, {lost} lost"
        );
    });
}
