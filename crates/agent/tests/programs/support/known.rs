//! Known numbers of fixtures, against what was recorded of them.

use clrscope_recording::model::Process;
use clrscope_testkit::{Expectations, Finished, Runtime, each_runtime, fixture, run};

use super::flow::FlowSums;
use super::{Run, Sums, assert_unchanged, compare, record};

/// Runs a fixture with each request on each runtime: it does what it does without us, nothing is
/// lost, and tree and events say what the fixture says.
pub(crate) fn check(name: &str, requests: &[&str]) {
    check_more(name, requests, |_, _| ());
}

/// Checks as [`check`] does, with what else `look` finds in the events of `flow`.
pub(crate) fn check_more(name: &str, requests: &[&str], look: impl Fn(&FlowSums, &str) + Sync) {
    each_runtime(|runtime| {
        let bare = run(runtime.command(&fixture(name))).expect_success();
        for request in requests {
            let place = format!("{name} on {} with {request}", runtime.version);
            check_run(name, request, &bare, runtime, &place, &look);
        }
    });
}

fn check_run(
    name: &str,
    request: &str,
    bare: &Finished,
    runtime: &Runtime,
    place: &str,
    look: &impl Fn(&FlowSums, &str),
) {
    let run = record(runtime, name, request);
    unchanged(&run, bare, place);
    let process = &run.recording.processes[0];
    let lost: Vec<_> = process.losses.iter().filter(|loss| !loss.reason.is_benign()).collect();
    let expected = Expectations::parse(&run.finished.stdout_text());
    let agree = |what: &str, sums: &Sums| {
        let wrong = compare(&expected, sums);
        assert!(wrong.is_empty(), "{place}, {what}:\n{}\nlosses: {lost:?}", wrong.join("\n"));
    };
    if request.contains("calls") {
        agree("calls", &Sums::of_process(process, name));
    }
    if request.contains("flow") {
        let flow = FlowSums::replay(&run.recording, name);
        agree("flow", &flow.sums);
        look(&flow, place);
    }
    assert!(lost.is_empty(), "{place}: {lost:?}");
}

fn unchanged(run: &Run, bare: &Finished, place: &str) {
    assert_unchanged(&run.finished, bare, place);
    assert_eq!(run.recording.problems, [], "{place}");
    let process: &Process = &run.recording.processes[0];
    assert!(process.complete, "{place}: the end was not seen");
}
