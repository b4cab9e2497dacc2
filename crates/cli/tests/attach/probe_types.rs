//! Types that values name: looked into in a program that runs, by threads that the runtime does not
//! know, without loading any.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use clrscope_testkit as testkit;
use serde_json::{Value, json};
use testkit::{Runtime, Service, fixture};

use crate::common::TestFolder;
use crate::server::{Server, attach, said};

/// Rows of a report about a recording.
fn rows(place: &TestFolder, name: &str, view: &str) -> Vec<Value> {
    let output = place.run(&format!("report {name} --view {view} --format json --limit 100000"));
    assert!(output.status.success(), "{}", said(&output));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    report["rows"].as_array().expect("rows").clone()
}

/// Records calls of a program that runs, with their values.
fn record(place: &TestFolder, pid: u32, method: &str, options: &str, name: &str) -> Vec<Value> {
    let line = format!("--probe {method} -i probes:args,{options} --duration 3s -o {name}");
    let output = attach(place, pid, &line).output().expect("the tool starts");
    assert!(output.status.success(), "{}", said(&output));
    rows(place, name, "probes --each")
}

/// A value as the program's code says it, without addresses and sizes.
fn plain(value: &Value) -> Value {
    let Some(object) = value.as_object() else { return value.clone() };
    let kept = object.iter().filter(|(key, _)| !matches!(key.as_str(), "address" | "size_bytes"));
    let kept = kept.map(|(key, value)| match value {
        Value::Object(fields) if key == "fields" => {
            (key.clone(), fields.iter().map(|(name, value)| (name.clone(), plain(value))).collect())
        }
        value => (key.clone(), plain(value)),
    });
    Value::Object(kept.collect())
}

/// Fields of the object that `dotnet/fixtures/Unseen` shows, with the values that it gives them.
fn held() -> Value {
    let pair =
        |ty: &str, first: Value, second: Value| json!({ "type": ty, "fields": { "First": first, "Second": second } });
    let of_rare =
        |second: &str, value: u32| pair(&format!("Unseen.Pair<Unseen.Rare, {second}>"), Value::Null, value.into());
    let nested = "Unseen.Pair<Unseen.Seldom<Unseen.Rare>, Unseen.Pair<Unseen.Rare, byte>>";
    json!({
        "inherited": null,
        "inheritedPair": of_rare("short", 7),
        "unseen": null,
        "seldom": null,
        "table": null,
        "pair": of_rare("int", 41),
        "nested": pair(nested, Value::Null, of_rare("byte", 42)),
        "maybe": of_rare("int", 43),
        "known": pair("Unseen.Pair<int, Unseen.Level>", 44.into(), "Two".into()),
        "plain": { "type": "Unseen.Plain", "fields": { "A": 45, "Level": "One", "B": 46 } },
        "pairs": null,
        "values": null,
        "level": "Two",
        "text": "held",
        "tuple": { "type": "(Unseen.Rare, string)", "fields": { "Item1": null, "Item2": "second" } },
        "entry": {
            "type": "System.Collections.Generic.KeyValuePair<string, Unseen.Rare>",
            "fields": { "key": "key", "value": null }
        },
        "boxed": 47,
        "often": { "type": "Unseen.Seldom<int>", "fields": { "Value": 48, "Count": 49 } },
        "last": 50
    })
}

/// A look at a field of a shown object loaded the field's type, with its assembly; on a thread that
/// the runtime does not know, that ended the program.
#[test]
fn fields_of_types_that_nobody_has_loaded_are_shown_and_load_nothing() {
    testkit::each_runtime(|runtime| {
        let (place, server) = (TestFolder::new(), Server::spawn(runtime.command(&fixture("Unseen"))));
        for (depth, name) in [(3, "first.clrs"), (5, "second.clrs")] {
            let calls = record(&place, server.pid, "Unseen.Program::Show", &format!("depth={depth}"), name);
            let place_of = format!("{name}, {} calls on {}", calls.len(), runtime.version);
            let last = calls.last().unwrap_or_else(|| panic!("{place_of}"));
            assert_eq!((&last["args"][0]["type"], &last["args"][0]["unknown"]), (&json!("Unseen.Held"), &Value::Null));
            let mut found = plain(&last["args"][0]["value"])["fields"].clone();
            let fields = found.as_object_mut().expect("fields");
            let (list, guid) = (fields.remove("list"), fields.remove("guid"));
            assert_eq!(list.expect("a list")["items"], json!(["item"]), "{place_of}");
            assert_eq!(guid.expect("a value")["text"], "00112233-4455-6677-8899-aabbccddeeff", "{place_of}");
            assert_eq!(found, held(), "{place_of}");
        }
        // It says WRONG where an assembly came to be loaded.
        server.end();
    });
}

/// Under `run` types are looked into on the program's own threads.
#[test]
fn fields_of_types_that_nobody_has_loaded_load_nothing_in_a_program_from_its_start() {
    testkit::each_runtime(|runtime| {
        for instrument in ["flow:args,depth=3", "probes:args,depth=3", "exceptions:args"] {
            let place = TestFolder::new();
            let mut words = vec!["run", "--quiet", "-o", "a.clrs", "-i", instrument];
            words.extend(match instrument.starts_with("probes") {
                true => ["--probe", "Unseen.Program::Show", "--"],
                false => ["--include", "Unseen.Program::Show", "--"],
            });
            let mut words: Vec<std::ffi::OsString> = words.into_iter().map(Into::into).collect();
            words.extend(runtime.words(&fixture("Unseen")));
            words.push("briefly".into());
            let mut command = place.clrscope(words);
            runtime.prepare(&mut command);
            let output = command.output().expect("the tool starts");
            let text = String::from_utf8_lossy(&output.stdout);
            let place_of = format!("{instrument} on {}: {text}{}", runtime.version, said(&output));
            assert!(output.status.success() && text.contains("stopped\n") && !text.contains("WRONG"), "{place_of}");
            let found = match instrument.split(':').next() {
                Some("flow") => rows(&place, "a.clrs", "flow").into_iter().rfind(|row| row["event"] == "enter"),
                Some("probes") => rows(&place, "a.clrs", "probes --each").pop(),
                _ => continue,
            };
            let found = plain(&found.unwrap_or_else(|| panic!("{place_of}"))["args"][0]["value"])["fields"].clone();
            for (name, value) in held().as_object().expect("fields") {
                assert_eq!(&found[name], value, "{name}, {place_of}");
            }
        }
    });
}

/// Fields that calls show, by their way from an argument, each with how many of the calls show it.
fn shown<'r>(calls: impl Iterator<Item = &'r Value>) -> (usize, BTreeMap<String, usize>) {
    fn visit(value: &Value, way: &str, found: &mut BTreeSet<String>) {
        if value["unknown"] == true {
            return;
        }
        found.insert(way.to_owned());
        for (name, field) in value["fields"].as_object().into_iter().flatten() {
            visit(field, &format!("{way}.{name}"), found);
        }
        for (number, item) in value["items"].as_array().into_iter().flatten().enumerate() {
            visit(item, &format!("{way}[{number}]"), found);
        }
    }
    let (mut count, mut all) = (0, BTreeMap::new());
    for call in calls {
        count += 1;
        let mut found = BTreeSet::new();
        visit(&call["this"], "this", &mut found);
        for argument in call["args"].as_array().into_iter().flatten().filter(|argument| argument["unknown"] != true) {
            visit(&argument["value"], argument["name"].as_str().expect("a name"), &mut found);
        }
        found.into_iter().for_each(|way| *all.entry(way).or_default() += 1);
    }
    (count, all)
}

/// Fields that half of the later calls show: by then every type has been met.
fn usual(calls: &[Value]) -> BTreeSet<String> {
    let (count, all) = shown(calls[calls.len() / 2..].iter());
    all.into_iter().filter(|(_, times)| times * 2 >= count).map(|(way, _)| way).collect()
}

const ENDPOINT: &str = "[Microsoft.AspNetCore.Routing]*EndpointMiddleware::Invoke";

/// Calls of the web program's endpoints from its start, by hooks.
fn under_run(place: &TestFolder, runtime: &Runtime, depth: u32) -> Vec<Value> {
    let name = format!("run{depth}.clrs");
    let instrument = format!("flow:args,depth={depth}");
    let words = ["run", "--quiet", "-i", &instrument, "--include", ENDPOINT, "-o", &name, "--"];
    let mut words: Vec<std::ffi::OsString> = words.into_iter().map(Into::into).collect();
    words.extend(runtime.words(&fixture("Web")));
    let mut command = place.clrscope(words);
    runtime.prepare(&mut command);
    let service = Service::start(command);
    assert_eq!(testkit::load(service.address(), "/async", 4, 50), 200);
    assert!(service.stop("TERM").status.success());
    let is_call =
        |row: &Value| row["event"] == "enter" && row["name"].as_str().is_some_and(|name| name.ends_with("::Invoke"));
    rows(place, &name, "flow").into_iter().filter(is_call).collect()
}

/// Values of objects ended the program about every second time.
#[test]
fn a_web_program_under_load_survives_values_and_shows_the_fields_that_it_shows_under_run() {
    testkit::each_web_runtime(|runtime| {
        let place = TestFolder::new();
        let service = Service::start(runtime.command(&fixture("Web")));
        let (address, is_over) = (service.address().to_owned(), AtomicBool::new(false));
        let (attached, requests) = thread::scope(|scope| {
            let load = scope.spawn(|| {
                let (mut answered, mut sent) = (0, 0);
                while !is_over.load(Ordering::Relaxed) {
                    answered += testkit::load(&address, "/async", 4, 25);
                    sent += 100;
                }
                (answered, sent)
            });
            let attached = [3, 5, 1].map(|depth| {
                let calls =
                    record(&place, service.id(), ENDPOINT, &format!("depth={depth}"), &format!("attach{depth}.clrs"));
                (depth, calls)
            });
            is_over.store(true, Ordering::Relaxed);
            (attached, load.join().expect("each request is answered"))
        });
        assert_eq!(requests.0, requests.1, "on {}", runtime.version);
        let ended = service.stop("TERM");
        assert!(
            ended.status.success() && ended.stdout_text().contains("stopped\n"),
            "on {}: {ended:?}",
            runtime.version
        );

        for (depth, calls) in &attached[..2] {
            let (under_run, under_attach) = (usual(&under_run(&place, runtime, *depth)), usual(calls));
            // At depth 5 both end where the two kilobytes do that there are for the values of a
            // call.
            let both = match depth {
                3 => under_run.intersection(&under_attach).count(),
                _ => under_attach.len(),
            };
            let place_of = format!("depth {depth}, {both} of {} on {}", under_run.len(), runtime.version);
            testkit::say(&place_of);
            let (missing, more) = (&under_run - &under_attach, &under_attach - &under_run);
            assert!(
                under_run.len() > 20 && both * 100 >= under_run.len() * 95,
                "{place_of}: missing {missing:?}, more {more:?}"
            );
            let of_context = under_attach.iter().filter(|way| way.starts_with("httpContext.")).count();
            assert!(*depth > 3 || of_context > 20, "{place_of}: {under_attach:?}");
        }
    });
}
