//! `-i probes:callers`: who calls the methods of a program, with `run` and in one that runs
//! already.

use std::collections::BTreeSet;
use std::process::Stdio;

use clrscope_testkit as testkit;
use serde_json::Value;

use crate::common::TestFolder;
use crate::probes::{BATCH, Counter};
use crate::server::{Server, attach, kill, refused, said, some_runtime};

/// The methods of a recording with their callers.
fn callers(place: &TestFolder, name: &str) -> Vec<Value> {
    let output = place.run(&format!("report {name} --view probes --callers --format json"));
    assert!(output.status.success(), "{name}: {}", said(&output));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    report["rows"].as_array().expect("rows").clone()
}

fn number(row: &Value, key: &str) -> u64 {
    row[key].as_u64().unwrap_or_else(|| panic!("{key} in {row:#}"))
}

/// Returns the callers of a row: the name and the calls of each.
fn callers_of_row(row: &Value) -> Vec<(&str, u64)> {
    let callers = row["children"].as_array().map(Vec::as_slice).unwrap_or_default();
    callers.iter().map(|caller| (caller["name"].as_str().expect("a name"), number(caller, "calls"))).collect()
}

/// Four threads that take requests, with exceptions: each time that the program is attached to.
#[test]
fn callers_in_a_running_program_are_counted_exactly_each_time() {
    testkit::each_runtime(|runtime| {
        let (place, server) = (TestFolder::new(), Server::start(runtime));
        for (name, options) in [("a.clrs", "callers"), ("b.clrs", "callers,frames=1"), ("c.clrs", "callers,args")] {
            let probes = ["Request", "Parse", "Failed"].map(|name| format!("--probe Server.Program::{name}")).join(" ");
            let line = format!("{probes} -i probes:{options} --duration 700ms -o {name}");
            let output = attach(&place, server.pid, &line).output().expect("the tool starts");
            let place_of = format!("{options} on {}: {}", runtime.version, said(&output));
            assert!(output.status.success(), "{place_of}");
            let rows = callers(&place, name);
            let row = |name: &str| {
                rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("{place_of}: {rows:#?}"))
            };
            for (method, caller) in [("Request", "Serve"), ("Parse", "Request"), ("Failed", "Request")] {
                let row = row(&format!("Server.Program::{method}"));
                let caller = format!("Server.Program::{caller}");
                assert!(number(row, "calls") > 10, "{place_of}: {row:#}");
                assert_eq!(callers_of_row(row), [(caller.as_str(), number(row, "calls"))], "{place_of}: {row:#}");
                let direct = &row["children"][0];
                assert_eq!(number(direct, "failed"), number(row, "failed"), "{place_of}: {row:#}");
                assert_eq!(callers_of_row(direct).is_empty(), options.contains("frames=1"), "{place_of}: {row:#}");
            }
            assert_eq!(server.left_over(), BTreeSet::from(["clrscope-sleeps\n".to_owned()]), "{place_of}");
        }
        server.end();
    });
}

/// Methods that get their probes later have their callers, too, and what was counted stays when
/// they lose them.
#[test]
fn callers_of_a_method_that_is_added_and_removed_meanwhile_are_counted() {
    testkit::each_runtime(|runtime| {
        let (place, mut counter) = (TestFolder::new(), Counter::start(runtime));
        let line = "--probe Counter.Program::Answer -i probes:callers -o a.clrs --quiet";
        let launcher = attach(&place, counter.pid(), line).stderr(Stdio::piped()).spawn().expect("the tool starts");
        let pid = counter.pid();
        let done = |words: &str| {
            testkit::wait_until("the command", || place.run(&format!("probe {pid} {words}")).status.success());
        };
        let mut expected = 0;
        for _ in 0..2 {
            done("add Counter.Program::Step");
            counter.batch();
            expected += BATCH;
            done("remove Counter.Program::Step");
            counter.batch();
        }
        kill(launcher.id(), "INT");
        let output = launcher.wait_with_output().expect("it ends");
        assert!(output.status.success(), "{}", said(&output));
        let rows = callers(&place, "a.clrs");
        let step = rows.iter().find(|row| row["name"] == "Counter.Program::Step").expect("it had probes");
        assert_eq!(number(step, "calls"), expected, "{}: {step:#}", runtime.version);
        assert_eq!(callers_of_row(step), [("Counter.Program::Answer", expected)], "{}: {step:#}", runtime.version);
        counter.end();
    });
}

/// Numbers of a program that was run are the same in every format.
#[test]
fn callers_are_shown_in_every_format() {
    let (runtime, place) = (some_runtime(), TestFolder::new());
    let words = ["run", "-o", "a.clrs", "--probe", "Callers.Program::Fails", "-i", "probes:callers", "--"];
    let program = runtime.words(&testkit::fixture("Callers"));
    let mut command = place.clrscope(words.into_iter().map(Into::into).chain(program));
    runtime.prepare(&mut command);
    let output = command.output().expect("the tool starts");
    assert!(output.status.success(), "{}", said(&output));
    assert!(
        said(&output).contains("Probed methods by time (1 of 1)"),
        "the end of the run shows them: {}",
        said(&output)
    );
    let report = |options: &str| {
        let output = place.run(&format!("report a.clrs --view probes --callers {options}"));
        assert!(output.status.success(), "{options}: {}", said(&output));
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let rows = callers(&place, "a.clrs");
    let by_calls: BTreeSet<_> = callers_of_row(&rows[0]).into_iter().collect();
    let wanted = [("Callers.Program::Careful", 300), ("Callers.Program::Careless", 150)];
    assert_eq!(by_calls, BTreeSet::from(wanted), "{rows:#?}");
    let csv = report("--format csv --sort calls");
    let lines: Vec<&str> = csv.lines().collect();
    assert_eq!(lines[0], "depth,name,signature,module,kind,calls,failed,total_ns,mean_ns");
    assert!(lines[1].starts_with("0,Callers.Program::Fails,") && lines[1].contains(",450,160,"), "{csv}");
    assert!(lines[2].starts_with("1,Callers.Program::Careful,") && lines[2].contains(",300,100,"), "{csv}");
    assert!(lines[3].starts_with("2,Callers.Program::Main,"), "{csv}");
    let text = report("");
    for words in ["method and its callers", "Careless", "300", "Below a method are its callers"] {
        assert!(text.contains(words), "{words}: {text}");
    }
}

#[test]
fn what_was_not_recorded_and_what_means_nothing_is_refused_with_a_cure() {
    let (place, server) = (TestFolder::new(), Server::start(some_runtime()));
    let refusal = refused(&place, server.pid, "--probe Server.Program::Parse -i probes:frames=2");
    assert!(refusal.contains("needs probes:callers"), "{refusal}");
    let line = "--probe Server.Program::Parse --duration 100ms -o counted.clrs";
    assert!(attach(&place, server.pid, line).status().expect("the tool starts").success());
    for format in ["text", "json", "csv"] {
        let output = place.run(&format!("report counted.clrs --view probes --callers --format {format}"));
        let said = said(&output);
        assert!(!output.status.success() && said.contains("'probes:callers', which was not recorded"), "{said}");
        assert!(said.contains("-i probes:callers"), "{said}");
    }
    for (options, why) in [
        ("--view probes --callers --each", "'--callers' can't be combined with '--each'"),
        ("--view threads --callers", "'--callers' is not for the view 'threads'"),
    ] {
        let output = place.run(&format!("report counted.clrs {options}"));
        assert!(!output.status.success() && said(&output).contains(why), "{options}: {}", said(&output));
    }
    server.end();
}
