//! `clrscope probe PID`: probes come and go during a recording, at any caller's request.

use std::collections::BTreeMap;
use std::process::{Child, Output, Stdio};
use std::time::Duration;

use clrscope_testkit as testkit;
use serde_json::Value;

use crate::common::TestFolder;
use crate::probes::{BATCH, Counter, attached};
use crate::server::{Server, attach, kill, said, some_runtime};

/// Gives a command, and what came of it.
fn probe(place: &TestFolder, pid: u32, words: &str) -> Output {
    place.run(&format!("probe {pid} {words}"))
}

/// Gives a command that must work, and what is said of it.
fn done(place: &TestFolder, pid: u32, words: &str) -> String {
    let output = probe(place, pid, words);
    assert!(output.status.success() && output.stdout.is_empty(), "{words}: {}", said(&output));
    said(&output)
}

/// Calls of the methods so far, and whether their probes were taken away, by name.
fn listed(place: &TestFolder, pid: u32) -> BTreeMap<String, (u64, bool)> {
    let output = probe(place, pid, "list --format json");
    assert!(output.status.success(), "{}", said(&output));
    let list: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let row = |row: &Value| {
        let name = row["name"].as_str().expect("a name").to_owned();
        (name, (row["calls"].as_u64().expect("a number"), row["removed"].as_bool().expect("yes or no")))
    };
    list["rows"].as_array().expect("rows").iter().map(row).collect()
}

/// An attach with probes to the server, once calls are counted.
fn attached_to(place: &TestFolder, server: &Server, pattern: &str) -> Child {
    let line = format!("--probe {pattern} -o a.clrs --quiet");
    let launcher = attach(place, server.pid, &line).stderr(Stdio::piped()).spawn().expect("the tool starts");
    testkit::wait_until("calls that are counted", || {
        let output = probe(place, server.pid, "list --format json");
        let list: Option<Value> = serde_json::from_slice(&output.stdout).ok();
        list.is_some_and(|list| list["rows"][0]["calls"].as_u64().is_some_and(|calls| calls > 0))
    });
    launcher
}

fn ended(launcher: Child) {
    kill(launcher.id(), "INT");
    let output = launcher.wait_with_output().expect("it ends");
    assert!(output.status.success() && output.stderr.is_empty(), "{}", said(&output));
}

/// One method of a program that says how often it was called: each batch counts while it has
/// probes, and none while it has not.
fn count_in_turn(fixture: &'static str) {
    testkit::each_runtime(|runtime| {
        let (place, mut counter) = (TestFolder::new(), Counter::spawn(fixture, runtime));
        let bare = counter.shortest();
        let (launcher, _) = attached(&place, &mut counter, "a.clrs");
        let (pid, method) = (counter.pid(), counter.method());
        let calls = || listed(&place, pid)[&method].0;
        for round in 0..3 {
            let (before, said_before) = (calls(), counter.said);
            counter.batch();
            assert_eq!(calls() - before, BATCH, "round {round} on {}", runtime.version);
            let said = done(&place, pid, &format!("remove {method}"));
            assert_eq!(said, format!("clrscope: process {pid}: no more probes in 1 method that matches '{method}'\n"));
            counter.as_fast_as(bare, &format!("without probes on {}", runtime.version));
            assert_eq!(listed(&place, pid)[&method], (before + BATCH, true), "round {round} on {}", runtime.version);
            assert!(counter.said > said_before + BATCH);
            let said = done(&place, pid, &format!("add {method}"));
            assert_eq!(said, format!("clrscope: process {pid}: probes in 1 method that matches '{method}'\n"));
            assert!(!listed(&place, pid)[&method].1);
        }
        kill(launcher.id(), "INT");
        let output = launcher.wait_with_output().expect("it ends");
        assert!(output.status.success(), "{}", said(&output));
        counter.assert_asleep(&format!("{fixture} on {}", runtime.version));
        counter.end();
    });
}

#[test]
fn probes_of_a_method_come_and_go_and_each_call_with_them_is_counted() {
    count_in_turn("Counter");
}

#[test]
fn probes_of_a_method_that_was_inlined_come_and_go() {
    count_in_turn("Inlined");
}

/// The last word about a method counts, whichever pattern chose it before; what was counted stays.
#[test]
fn methods_are_added_and_removed_by_patterns_that_overlap() {
    testkit::each_runtime(|runtime| {
        let (place, server) = (TestFolder::new(), Server::start(runtime));
        let launcher = attached_to(&place, &server, "Server.Program::Request");
        let names = ["Request", "Parse", "Failed"].map(|name| format!("Server.Program::{name}"));
        let now = || listed(&place, server.pid);
        done(&place, server.pid, "add Server.Program::Parse Server.Program::Fail*");
        let moves = |wanted: [bool; 3]| {
            let before = now();
            testkit::wait_until("calls of what has probes", || {
                let after = now();
                names.iter().zip(wanted).all(|(name, has)| !has || after[name].0 > before[name].0)
            });
            let after = now();
            for (name, has) in names.iter().zip(wanted) {
                assert_eq!(after[name].1, !has, "{name} of {after:?} on {}", runtime.version);
                // Calls that were under way may have ended meanwhile, and begun before the probes
                // went.
                assert!(has || after[name].0 - before[name].0 <= 4, "{name} of {before:?}, {after:?}");
            }
        };
        moves([true, true, true]);
        assert!(done(&place, server.pid, "remove Parse").contains("in 1 method "));
        moves([true, false, true]);
        assert!(done(&place, server.pid, "remove [Server]*").contains("in 2 methods "));
        moves([false, false, false]);
        assert!(done(&place, server.pid, "add Server.Program.Request(string) Parse").contains("in 1 method "));
        moves([true, true, false]);
        let counted = now();
        ended(launcher);
        let report = place.run("report a.clrs --view probes --format json");
        let report: Value = serde_json::from_slice(&report.stdout).expect("JSON");
        for row in report["rows"].as_array().expect("rows") {
            let calls = counted[row["name"].as_str().expect("a name")].0;
            assert!(row["calls"].as_u64().expect("a number") >= calls, "{counted:?}, {report:#}");
        }
        server.end();
    });
}

/// Eight add and remove at the same time, each with a method of its own: none is lost, and the
/// program does what it did.
#[test]
fn several_clients_change_the_probes_of_a_program_at_once() {
    testkit::each_runtime(|runtime| {
        let (place, server) = (TestFolder::new(), Server::start(runtime));
        let launcher = attached_to(&place, &server, "Server.Program::Request");
        let methods = ["Request", "Parse", "Failed", "Main"].map(|name| format!("Server.Program::{name}"));
        std::thread::scope(|scope| {
            for method in &methods {
                let place = &place;
                scope.spawn(move || {
                    for _ in 0..5 {
                        done(place, server.pid, &format!("add {method}"));
                        done(place, server.pid, &format!("remove {method}"));
                    }
                    done(place, server.pid, &format!("add {method}"));
                });
                scope.spawn(move || {
                    for _ in 0..5 {
                        listed(place, server.pid);
                    }
                });
            }
        });
        let list = listed(&place, server.pid);
        assert!(methods.iter().all(|method| !list[method].1), "{list:?} on {}", runtime.version);
        let before = list[&methods[0]].0;
        testkit::wait_until("calls", || listed(&place, server.pid)[&methods[0]].0 > before + 100);
        ended(launcher);
        server.end();
    });
}

/// Probes that others have added go with the recording when its launcher is killed.
#[test]
fn added_probes_go_when_the_launcher_is_killed() {
    testkit::each_runtime(|runtime| {
        let (place, server) = (TestFolder::new(), Server::start(runtime));
        let mut launcher = attached_to(&place, &server, "Server.Program::Request");
        done(&place, server.pid, "add Server.Program::*");
        launcher.kill().expect("it lives");
        launcher.wait().expect("it ends");
        testkit::wait_until("the agent's sleep", || {
            server.left_over().into_iter().eq(["clrscope-sleeps\n".to_owned()])
        });
        let refusal = said(&probe(&place, server.pid, "add Server.Program::Parse"));
        assert!(refusal.contains("records nothing now\nhint: attach to it"), "{refusal}");
        server.end();
    });
}

#[test]
fn what_can_not_be_done_about_probes_is_refused_with_a_reason() {
    let runtime = some_runtime();
    let (place, server) = (TestFolder::new(), Server::start(runtime));
    let refused = |words: &str, code: i32, reasons: &[&str]| {
        let output = place.run(&format!("probe {words}"));
        let said = said(&output);
        let lines: Vec<&str> = said.lines().map(|line| line.split(' ').next().unwrap_or_default()).collect();
        assert_eq!((lines.as_slice(), output.status.code()), (&["error:", "why:", "hint:"][..], Some(code)), "{said}");
        assert!(reasons.iter().all(|reason| said.contains(reason)), "{reasons:?} in {said}");
    };
    let pid = server.pid;
    refused(&format!("{pid} list"), 1, &["it does not run under the agent", "attach to it first"]);
    refused("4000000 add X", 1, &["there is no such process", "clrscope ps"]);
    refused(&format!("{pid} add"), 2, &["PATTERN or --at FILE:LINE is required", &format!("clrscope probe {pid} add")]);
    refused(&format!("{pid} list X"), 2, &["takes no pattern"]);
    refused(&format!("{pid} remove X --format json"), 2, &["takes no --format"]);
    refused(&format!("{pid} add [Shop"), 2, &["'[Shop' is not a pattern", "not closed"]);
    refused(&format!("{pid} add {}", "x".repeat(1025)), 2, &["longer than 1024 bytes"]);
    refused(&format!("{pid} change X"), 2, &["change"]);
    let launcher = attached_to(&place, &server, "Server.Program::Request");
    refused(
        &format!("{pid} add Requst"),
        1,
        &["no method of the loaded assemblies matches 'Requst'", "Server.Program::Request"],
    );
    refused(&format!("{pid} remove Parse"), 1, &["no method that has a probe matches 'Parse'"]);
    refused(
        &format!("{pid} add [System.Private.CoreLib]System.ICloneable::Clone"),
        1,
        &["no probe could be set in any method that matches"],
    );
    // What is stopped takes no probes.
    assert!(place.run(&format!("record {pid} stop")).status.success());
    refused(&format!("{pid} add Parse"), 1, &["nothing is recorded right now"]);
    assert!(place.run(&format!("record {pid} start")).status.success());
    assert!(done(&place, pid, "add Parse Parse").lines().count() == 2, "twice is the same as once");
    ended(launcher);
    // Recorded with something else.
    let launcher = attach(&place, pid, "-i exceptions --duration 60s -o b.clrs").stderr(Stdio::piped()).spawn();
    let launcher = launcher.expect("the tool starts");
    testkit::wait_until("a recording", || {
        let said = said(&probe(&place, pid, "add Parse"));
        std::thread::park_timeout(Duration::from_millis(20));
        said.contains("it is recorded without probes")
    });
    kill(launcher.id(), "INT");
    assert!(launcher.wait_with_output().expect("it ends").status.success());
    server.end();
}
