//! `clrscope attach PID --probe -i probes:args`: calls of a program that runs, each with its
//! values, again and again.

use std::collections::BTreeSet;

use clrscope_testkit as testkit;
use serde_json::{Value, json};

use crate::common::TestFolder;
use crate::server::{Server, attach, kill, refused, said};

/// Calls that a recording has.
fn calls(place: &TestFolder, name: &str) -> Vec<Value> {
    let output = place.run(&format!("report {name} --view probes --each --format json --limit 3000"));
    assert!(output.status.success(), "{}", said(&output));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    report["rows"].as_array().expect("rows").clone()
}

/// Attaches for a while with values of calls.
fn attached(place: &TestFolder, server: &Server, instrument: &str, name: &str) -> Vec<Value> {
    let probes = "--probe Server.Program::Request --probe Server.Program::Parse --probe [System.Private.CoreLib]System.Int32::Parse \
                  --probe [System.Collections.Concurrent]*BlockingCollection*::TryTakeWithNoTimeValidation";
    let line = format!("{probes} -i {instrument} --duration 700ms -o {name}");
    let output = attach(place, server.pid, &line).output().expect("the tool starts");
    assert!(output.status.success(), "{}", said(&output));
    let calls = calls(place, name);
    assert!(calls.len() > 100, "{name}: {} calls: {}", calls.len(), said(&output));
    calls
}

/// First argument of a call.
fn first(call: &Value) -> &Value {
    &call["args"][0]
}

/// A call has the values that the program's code says it must have.
fn check(call: &Value, place: &str) {
    match call["name"].as_str().expect("a name") {
        "Server.Program::Request" => {
            let text = first(call)["value"].as_str().expect("a text");
            assert!(text == "bad" || text.starts_with("request "), "{place}: {call:#}");
            assert_eq!((&call["this"], &call["returns"]), (&Value::Null, &Value::Null), "{place}: {call:#}");
        }
        "Server.Program::Parse" => {
            let text = first(call)["value"].as_str().expect("a text").to_owned();
            match (text.strip_prefix("request "), call["failed"].as_bool()) {
                (_, None) => assert_eq!(call["duration_ns"], Value::Null, "{place}: {call:#}"),
                (None, failed) => {
                    assert_eq!((failed, &call["returns"]), (Some(true), &Value::Null), "{place}: {call:#}")
                }
                (Some(number), failed) => {
                    let number: i64 = number.parse().expect("a number");
                    let returned = (failed, &call["returns"]);
                    assert_eq!(
                        returned,
                        (Some(false), &json!({ "type": "int", "value": number })),
                        "{place}: {call:#}"
                    );
                }
            }
        }
        // The one that takes a span of characters.
        "System.Int32::Parse"
            if call["signature"].as_str().is_some_and(|signature| signature.contains("Span<char>")) =>
        {
            let items = first(call)["value"]["items"].as_array().expect("characters");
            let number: String = items.iter().map(|unit| unit.as_str().expect("a character")).collect();
            let number: i64 = number.parse().expect("a number");
            assert!(call["returns"]["value"] == number || call["failed"].is_null(), "{place}: {call:#}");
        }
        "System.Int32::Parse" => {}
        name => {
            assert!(name.ends_with("::TryTakeWithNoTimeValidation"), "{name}");
            let this = call["this"]["type"].as_str().expect("an object");
            assert!(this.contains("BlockingCollection<string>"), "{place}: {call:#}");
            assert!(call["this"]["fields"].is_object(), "{place}: {call:#}");
            // An item of type `T`, which is a string here; none where the call was cut off.
            assert_eq!(first(call)["passing"], "out", "{place}: {call:#}");
            let item = &call["args_after"][0]["value"];
            let is_taken = item.as_str().is_some_and(|text| text == "bad" || text.starts_with("request "));
            assert!(call["args_after"].is_null() || is_taken || item.is_null(), "{place}: {call:#}");
            assert_ne!(call["args_after"][0]["unknown"], true, "{place}: {call:#}");
        }
    }
}

#[test]
fn calls_of_a_running_program_have_their_values_each_time_that_it_is_attached_to() {
    testkit::each_runtime(|runtime| {
        let (place, server) = (TestFolder::new(), Server::start(runtime));
        for name in ["first.clrs", "second.clrs", "third.clrs"] {
            let place_of = format!("{name} on {}", runtime.version);
            let calls = attached(&place, &server, "probes:args", name);
            calls.iter().for_each(|call| check(call, &place_of));
            let names: BTreeSet<&str> = calls.iter().filter_map(|call| call["name"].as_str()).collect();
            assert_eq!(names.len(), 4, "{place_of}: {names:?}");
            assert_eq!(server.left_over(), BTreeSet::from(["clrscope-sleeps\n".to_owned()]), "{place_of}");
        }
        let types = attached(&place, &server, "probes:args=types", "types.clrs");
        assert!(types.iter().all(|call| first(call).get("value").is_none_or(|value| value["type"].is_string())));
        let each = attached(&place, &server, "probes:each", "each.clrs");
        let is_bare = |call: &&Value| call.get("args").is_none() && call["duration_ns"] != 0;
        assert_eq!(each.iter().find(|call| !is_bare(call)), None, "on {}", runtime.version);
        server.end();
    });
}

/// A method that is added while calls of others are recorded with their values.
#[test]
fn calls_of_a_method_that_is_added_have_their_values_too() {
    testkit::each_runtime(|runtime| {
        let (place, server) = (TestFolder::new(), Server::start(runtime));
        let line = "--probe Server.Program::Request -i probes:args -o a.clrs --quiet";
        let mut launcher = attach(&place, server.pid, line).spawn().expect("the tool starts");
        let counted = |name: &str| {
            let output = place.run(&format!("probe {} list --format json", server.pid));
            let list: Value = serde_json::from_slice(&output.stdout).unwrap_or_default();
            let rows = list["rows"].as_array().cloned().unwrap_or_default();
            rows.iter().find(|row| row["name"] == name).and_then(|row| row["calls"].as_u64()).unwrap_or_default()
        };
        testkit::wait_until("calls", || counted("Server.Program::Request") > 100);
        let output = place.run(&format!("probe {} add Server.Program::Parse", server.pid));
        assert!(output.status.success(), "{}", said(&output));
        testkit::wait_until("calls of the added method", || counted("Server.Program::Parse") > 100);
        kill(launcher.id(), "INT");
        assert!(launcher.wait().expect("it ends").success());
        let calls = calls(&place, "a.clrs");
        calls.iter().for_each(|call| check(call, &runtime.version.to_string()));
        let parsed: Vec<&Value> = calls.iter().filter(|call| call["name"] == "Server.Program::Parse").collect();
        let ended = |failed: bool| parsed.iter().filter(|call| call["failed"] == failed).count();
        assert!(ended(false) > 50 && ended(true) > 5, "{} calls on {}", parsed.len(), runtime.version);
        server.end();
    });
}

#[test]
fn what_was_not_recorded_and_what_means_nothing_is_refused_with_a_cure() {
    let runtime = testkit::runtimes().first().expect("a runtime");
    let (place, server) = (TestFolder::new(), Server::start(runtime));
    let refusal = refused(&place, server.pid, "--probe Server.Program::Parse -i probes:last=2MiB");
    assert!(refusal.contains("needs probes:each or probes:args"), "{refusal}");
    let line = "--probe Server.Program::Parse --duration 100ms -o counted.clrs";
    assert!(attach(&place, server.pid, line).status().expect("the tool starts").success());
    for format in ["text", "json", "csv"] {
        let output = place.run(&format!("report counted.clrs --view probes --each --format {format}"));
        let said = said(&output);
        assert!(!output.status.success() && said.contains("'probes:each', which was not recorded"), "{said}");
        assert!(said.contains("-i probes:each") && said.contains("-i probes:args"), "{said}");
    }
    server.end();
}
