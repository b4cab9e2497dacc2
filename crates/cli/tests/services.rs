//! Programs that serve: started by the variables alone, read while they run, ended by a signal, and
//! those that outlive the program that started them.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use clrscope_testkit as testkit;
use common::TestFolder;
use serde_json::Value;
use testkit::{
    Expectations, Runtime, Service, each_runtime, each_web_runtime, fixture, get, load, runtimes, wait_until,
    workspace_root,
};

/// The tool over a fixture on this runtime.
fn over(place: &TestFolder, runtime: &Runtime, options: &[&str], name: &str, arguments: &[&str]) -> Command {
    let mut words: Vec<OsString> = ["run"].iter().chain(options).chain(&["--"]).map(OsString::from).collect();
    words.extend(runtime.words(&fixture(name)));
    words.extend(arguments.iter().map(OsString::from));
    let mut command = place.clrscope(words);
    runtime.prepare(&mut command);
    command
}

fn calls(document: &Value, name: &str) -> u64 {
    let rows = document["rows"].as_array().expect("rows").iter().filter(|row| row["name"] == name);
    rows.filter_map(|row| row["calls"].as_u64()).sum()
}

/// `requests` answers of 200, by `ab` where it is installed: it keeps connections and sends more
/// than we would.
fn under_load(address: &str, path: &str, requests: usize) {
    let url = format!("http://{address}{path}");
    let count = requests.to_string();
    match Command::new("ab").args(["-q", "-k", "-n", &count, "-c", "8", &url]).output() {
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout);
            let complete = format!("Complete requests:      {requests}\nFailed requests:        0\n");
            assert!(text.contains(&complete), "{text}{}", String::from_utf8_lossy(&output.stderr));
        }
        Err(error) => {
            testkit::say(&format!("without ab ({error}) the load is our own"));
            assert_eq!(load(address, path, 8, requests / 8), requests / 8 * 8);
        }
    }
}

#[test]
fn a_web_service_is_recorded_by_the_variables_alone_and_read_while_it_runs() {
    each_web_runtime(|runtime| {
        let place = TestFolder::new();
        let printed = place.run("env --json -i calls -o web.clrs.d");
        assert!(printed.status.success(), "{}", String::from_utf8_lossy(&printed.stderr));
        let variables: Value = serde_json::from_slice(&printed.stdout).expect("JSON");
        let mut command = runtime.command(&fixture("Web"));
        for (name, value) in variables.as_object().expect("names and values") {
            command.env(name, value.as_str().expect("a text"));
        }
        let service = Service::start(command);
        let address = service.address().to_owned();
        under_load(&address, "/ok", 2_000);
        assert_eq!((get(&address, "/async"), get(&address, "/throw")), (200, 500));

        // An answered request is in the recording at once.
        let running = place.json("report web.clrs.d --view functions");
        assert_eq!(calls(&running, "Web.Program::Ok"), 2_000, "on {}", runtime.version);
        assert_eq!(running["recording"]["complete"], false);
        let pid = service.id();
        assert_eq!(running["recording"]["processes"][0]["pid"], pid);
        under_load(&address, "/ok", 400);

        let finished = service.stop("TERM").expect_success();
        let text = finished.stdout_text();
        assert!(Expectations::other_lines(&text).ends_with("stopped\n"), "{text}");
        assert_eq!(finished.stderr_text(), "");
        let expected = Expectations::parse(&text);
        let ended = place.json("report web.clrs.d --view functions");
        for name in ["Ok", "Throw", "Work"].map(|name| format!("Web.Program::{name}")) {
            assert_eq!(Some(calls(&ended, &name)), expected.calls(&name), "{name} on {}", runtime.version);
        }
        assert_eq!(ended["recording"]["complete"], true, "the agent saw the end");
        assert!(place.run("pack web.clrs.d").status.success());
        assert_eq!(place.json("report web.clrs --view functions")["rows"], ended["rows"]);
    });
}

#[test]
fn what_handlers_of_a_web_service_throw_is_told_request_by_request() {
    let source = workspace_root().join("dotnet/fixtures/Web/Web.cs");
    let source = fs::read_to_string(source).expect("the fixture's source");
    let line = 1 + source.lines().position(|line| line.contains("was to fail")).expect("the line that throws");
    each_web_runtime(|runtime| {
        let (place, version) = (TestFolder::new(), &runtime.version);
        let service = Service::start(over(&place, runtime, &["-q", "-i", "exceptions", "-o", "w.clrs"], "Web", &[]));
        let address = service.address().to_owned();
        assert_eq!(get(&address, "/ok"), 200);
        assert_eq!(load(&address, "/throw", 4, 10), 0, "each is answered with 500 on {version}");
        assert_eq!(get(&address, "/throw"), 500);
        service.stop("TERM").expect_success();

        let each = place.json("report w.clrs --view exceptions --each");
        let rows: Vec<&Value> = each["rows"].as_array().expect("rows").iter().collect();
        let mut messages = Vec::new();
        for row in rows.iter().filter(|row| row["name"] == "Web.Program::Throw" && row["rethrow_of"].is_null()) {
            assert_eq!(row["type"], "System.InvalidOperationException", "on {version}");
            let thrower = &row["stack"][0];
            assert_eq!((&thrower["name"], &thrower["line"]), (&Value::from("Web.Program::Throw"), &Value::from(line)));
            assert!(thrower["file"].as_str().is_some_and(|file| file.ends_with("Web.cs")), "{thrower}");
            let catcher = row["catcher"]["module"].as_str().unwrap_or_default();
            assert!(catcher.starts_with("Microsoft.AspNetCore"), "the middleware catches: {row}");
            assert_eq!((&row["unhandled"], &row["caught_by_runtime"]), (&false.into(), &false.into()), "{row}");
            assert!(row["throw_to_catch_ns"].as_u64().is_some_and(|ns| ns > 0), "{row}");
            messages.push(row["message"].as_str().expect("a message").to_owned());
        }
        messages.sort();
        let mut expected: Vec<String> = (1..=41).map(|number| format!("request {number} was to fail")).collect();
        expected.sort();
        assert_eq!(messages, expected, "on {version}");
        let groups = place.json("report w.clrs --view exceptions");
        let of_handler = |row: &&Value| row["name"] == "Web.Program::Throw";
        let counts = groups["rows"].as_array().expect("rows").iter().filter(of_handler);
        let counted: u64 = counts.map(|row| row["count"].as_u64().expect("a count")).sum();
        let thrown = rows.iter().copied().filter(of_handler).count();
        assert_eq!(counted, thrown as u64, "both views agree on {version}");
    });
}

#[test]
fn a_server_under_the_launcher_ends_in_order() {
    each_runtime(|runtime| {
        for signal in ["INT", "TERM"] {
            let place = TestFolder::new();
            let service = Service::start(over(&place, runtime, &["-q", "-i", "calls", "-o", "s.clrs"], "Server", &[]));
            let requests = || calls(&place.json("report s.clrs.d --view functions"), "Server.Program::Request");
            wait_until("a request", || requests() > 0);
            let finished = service.stop(signal).expect_success();
            let text = finished.stdout_text();
            assert_eq!(Expectations::other_lines(&text), "ready\nstopped\n", "{signal} on {}", runtime.version);
            assert_eq!(finished.stderr_text(), "", "{signal} on {}", runtime.version);
            let document = place.json("report s.clrs --view functions");
            let name = "Server.Program::Request";
            assert_eq!(Some(calls(&document, name)), Expectations::parse(&text).calls(name), "on {}", runtime.version);
            assert_eq!(document["recording"]["complete"], true);
            assert!(!place.file("s.clrs.d").exists());
        }
    });
}

#[test]
fn a_server_that_outlives_the_program_is_listed_and_goes_on_unrecorded() {
    each_runtime(|runtime| {
        let place = TestFolder::new();
        let began = Instant::now();
        let pid_file = place.file("pid");
        let command = over(
            &place,
            runtime,
            &["-o", "o.clrs"],
            "Processes",
            &["outlive", "60", pid_file.to_str().expect("UTF-8")],
        );
        let finished = testkit::run(command).expect_success();
        assert!(began.elapsed() < Duration::from_secs(50), "the launcher waited for the server");
        assert_eq!(finished.stdout_text(), "left a child behind\n");
        let pid = fs::read_to_string(&pid_file).expect("written").trim().to_owned();
        let alive = || Path::new(&format!("/proc/{pid}/stat")).exists();
        assert!(alive(), "the server goes on");
        let document = place.json("report o.clrs --view losses");
        let processes = document["recording"]["processes"].as_array().expect("processes");
        let complete: Vec<_> = processes.iter().map(|process| process["complete"].as_bool()).collect();
        // The server may not have got as far as its agent.
        assert!(complete == [Some(true), Some(false)] || complete == [Some(true)], "{document:#}");
        assert!(!place.file("o.clrs.d").exists(), "the directory is packed and gone");
        // No event says that nothing is written any more.
        testkit::pause(Duration::from_millis(300));
        assert!(alive() && !place.file("o.clrs.d").exists(), "on {}", runtime.version);
        assert!(Command::new("kill").arg(&pid).status().expect("kill starts").success());
    });
}

/// A program that outlives its recording hands its variables on to whatever it starts.
#[test]
fn programs_started_after_the_end_do_not_make_the_recording_anew() {
    let (place, runtime) = (TestFolder::new(), runtimes().last().expect("a runtime"));
    let words: Vec<String> = runtime.words(&fixture("Hello")).iter().map(|w| format!("'{}'", w.display())).collect();
    let script = format!(
        "(until [ -e go ]; do sleep 0.1; done; {} > said 2>&1; mv said heard) </dev/null >/dev/null 2>&1 &",
        words.join(" ")
    );
    let mut command = place.clrscope(["run", "-q", "-o", "l.clrs", "--", "sh", "-c", &script]);
    runtime.prepare(&mut command);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    assert!(command.status().expect("the tool starts").success());
    assert!(!place.file("l.clrs.d").exists(), "nothing was recorded by then");
    fs::write(place.file("go"), "").expect("a file");
    wait_until("the late program", || place.file("heard").exists());
    assert_eq!(fs::read_to_string(place.file("heard")).expect("text"), "Hello, World!\n");
    assert!(!place.file("l.clrs.d").exists(), "the recording was over");
}

/// The child is recorded with its parent, and each request of the one has the trace of the other's.
#[test]
fn both_sides_of_a_pair_of_services_have_the_same_traces() {
    each_web_runtime(|runtime| {
        let place = TestFolder::new();
        let output = over(&place, runtime, &["-o", "r.clrs", "-i", "requests"], "Pair", &["20"]).output();
        let output = output.expect("it runs");
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
        // What the handlers clocked, in nanoseconds, by the trace they saw.
        let seen = |word: &str| -> BTreeMap<String, u64> {
            let words = text.lines().map(|line| line.split(' ').collect::<Vec<_>>());
            let words = words.filter(|words| words[0] == word);
            words.map(|words| (words[2].to_owned(), words[3].parse().expect("a time"))).collect()
        };
        let [stocks, sales] = ["STOCK", "CHECKOUT"].map(seen);
        let traces: BTreeSet<String> = stocks.keys().cloned().collect();
        assert_eq!((traces.len(), &traces), (20, &sales.keys().cloned().collect()), "{text}");
        let report = place.json("report r.clrs --view requests --each --limit 1000");
        let rows = report["rows"].as_array().expect("rows");
        let side = |direction: &str, route: &str| -> BTreeMap<String, &Value> {
            let rows = rows.iter().filter(|row| {
                row["direction"] == direction && row["route"].as_str().is_some_and(|name| name.starts_with(route))
            });
            let traced = rows.filter_map(|row| Some((row["trace_id"].as_str()?.to_owned(), row)));
            traced.filter(|(trace, _)| traces.contains(trace)).collect()
        };
        let [checkouts, asked, answered] =
            [side("served", "GET /checkout/"), side("made", "GET 127.0.0.1:"), side("served", "GET /stock/")];
        for trace in &traces {
            let [checkout, asked, answered] = [&checkouts, &asked, &answered].map(|side| side[trace]);
            assert!(checkout["pid"] == asked["pid"] && asked["pid"] != answered["pid"], "{trace}: {report:#}");
            let begun = [checkout, asked, answered].map(|row| row["time_ns"].as_u64().expect("a time"));
            assert!(begun.is_sorted(), "{trace}: {begun:?}");
            // Each row holds what is inside it by the program's own clock: the handler of the
            // checkout, the request it made, the handler of the stock.
            let [served, made, inner] =
                [checkout, asked, answered].map(|row| row["duration_ns"].as_u64().expect("a time"));
            let took = [served, sales[trace], made, inner, stocks[trace]];
            assert!(took.is_sorted_by(|outer, inner| outer >= inner), "{trace}: {took:?}");
            // One trace chooses both sides.
            let chosen = place.json(&format!("report r.clrs --view requests --each --trace {trace}"));
            assert_eq!(chosen["rows"].as_array().map(Vec::len), Some(3), "{chosen:#}");
        }
    });
}
