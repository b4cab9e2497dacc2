//! The view `pending` against programs that know which of their operations wait, and for what.

mod common;

use std::io::Write;
use std::process::Stdio;

use clrscope_testkit as testkit;
use common::TestFolder;
use common::blocked;
use common::pending::{Operations, said, shown};
use serde_json::Value;
use testkit::{Runtime, each_runtime, fixture};

/// Records the heap of the program `Pending` at its end; what the program says of its operations
/// comes back.
fn recorded(place: &TestFolder, runtime: &Runtime, many: u32) -> Operations {
    let mut command = place.clrscope(["run", "-q", "-i", "heap", "-o", "h.clrs", "--"]);
    command.args(runtime.words(&fixture("Pending"))).arg(many.to_string());
    runtime.prepare(&mut command);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().expect("the tool starts");
    // It waits for a line once all operations wait.
    child.stdin.take().expect("a pipe").write_all(b"\n").expect("the program reads");
    let ended = child.wait_with_output().expect("an end");
    assert!(ended.status.success());
    said(&String::from_utf8_lossy(&ended.stdout))
}

fn rows(place: &TestFolder) -> Vec<Value> {
    let output = place.run("report h.clrs --view pending --json");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    document["rows"].as_array().expect("rows").clone()
}

/// Tasks, value tasks, pooled ones, iterators, semaphores, channels, sockets, timers, several
/// awaited at once, and one that waits for itself: as many as the program says, and no others.
#[test]
fn operations_that_wait_are_those_that_the_program_knows() {
    each_runtime(|runtime| {
        let place = TestFolder::new();
        let known = recorded(&place, runtime, 7);
        assert_eq!(known.len(), 14, "{known:#?}");
        assert_eq!(shown(&rows(&place)), known, "{}", runtime.version);
    });
}

/// The thread that blocks on an operation stands at its end, by its name.
#[test]
fn a_thread_that_blocks_on_an_operation_is_named() {
    each_runtime(|runtime| {
        let place = TestFolder::new();
        recorded(&place, runtime, 1);
        let rows = rows(&place);
        let blocks = rows.iter().find(|row| row["frames"][0]["name"] == "Pending.Shop::Blocks").expect("the operation");
        assert_eq!(blocks["frames"][1]["name"], "[thread blocked]", "{blocks:#}");
        let text = String::from_utf8(place.run("report h.clrs --view pending -n 2").stdout).expect("UTF-8");
        assert!(text.contains("Pending.Shop::Answer") && text.contains("a TaskCompletionSource"), "{text}");
    });
}

/// Methods stand at the lines of their awaits, whether the heap is read before or after objects
/// move.
#[test]
fn methods_that_wait_have_the_lines_of_their_awaits() {
    each_runtime(|runtime| {
        for instrument in ["heap", "heap:collect=off"] {
            let place = TestFolder::new();
            let mut command = place.clrscope(["run", "-q", "-i", instrument, "-o", "h.clrs", "--"]);
            command.args(runtime.words(&fixture("SyncOverAsync")));
            runtime.prepare(&mut command);
            command.stdin(Stdio::piped()).stdout(Stdio::piped());
            let mut child = command.spawn().expect("the tool starts");
            child.stdin.take().expect("a pipe").write_all(b"\n").expect("the program reads");
            let ended = child.wait_with_output().expect("an end");
            assert!(ended.status.success());
            let known = blocked::said(&String::from_utf8_lossy(&ended.stdout));
            let found: Vec<Vec<String>> = rows(&place).iter().map(|row| blocked::shown(&row["frames"])).collect();
            for (thread, (frames, _)) in known.iter().filter(|(_, (frames, _))| frames.len() > 1) {
                let expected = [frames.clone(), vec![format!("[thread {thread}]")]].concat();
                assert!(found.contains(&expected), "{} {instrument} {expected:?}: {found:#?}", runtime.version);
            }
        }
    });
}

#[test]
fn a_hundred_thousand_operations_are_one_row() {
    let place = TestFolder::new();
    let runtime = &testkit::runtimes()[0];
    let known = recorded(&place, runtime, 100_000);
    let pay = ("Task.Delay".to_owned(), "Pay, Order, Checkout".to_owned());
    assert_eq!(known[&pay], 100_000);
    assert_eq!(shown(&rows(&place)), known);
}
