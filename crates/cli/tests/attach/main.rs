//! `clrscope attach` and `ps`: a program that runs is recorded and left as it was, and each
//! obstacle has one clear outcome.

mod awaiters;
mod awaits;
mod by_name;
mod code_parts;
#[path = "../common/mod.rs"]
mod common;
mod counters;
mod covered;
mod ends;
mod heap;
mod live_probes;
mod locks;
mod memory;
mod probe_callers;
mod probe_calls;
mod probe_lines;
mod probe_types;
mod probes;
mod refusals;
mod requests;
mod resident;
mod screens;
mod server;
mod single_file;
mod stacks;
mod sync_over_async;
mod waiting;

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use clrscope_testkit::{self as testkit, confine};
use common::TestFolder;
use serde_json::Value;
use server::{Server, attach, listed, recorded, refused, said, some_runtime, thrown};

#[test]
fn collections_of_a_running_program_are_recorded_with_what_caused_them() {
    testkit::each_runtime(|runtime| {
        let place = TestFolder::new();
        let mut command = runtime.command(&testkit::fixture("Collections"));
        command.arg("serve");
        let server = Server::spawn(command);
        for instruments in ["gc", "gc:survivors"] {
            let name = format!("{}.clrs", instruments.replace(':', "-"));
            let more = format!("-i {instruments} --duration 500ms -o {name}");
            let output = attach(&place, server.pid, &more).output().expect("the tool starts");
            assert!(output.status.success(), "{}", said(&output));
            let output = place.run(&format!("report {name} --view gc --format json"));
            let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
            let rows = report["rows"].as_array().expect("rows");
            let of = |cause: &str| rows.iter().filter(|row| row["cause"] == cause).collect::<Vec<_>>();
            let (zero, full) = (of("Collections.Program::Zero"), of("Collections.Program::Full"));
            assert!(!zero.is_empty() && !full.is_empty(), "{} with {instruments}: {report:#}", runtime.version);
            // The runtime's own events begin a moment after the callbacks, and the last collection
            // may be under way at the end.
            let is_whole =
                |row: &&Value| row["number"].is_u64() && !row["end_ns"].is_null() && rows.last() != Some(*row);
            let whole: Vec<&Value> = full.into_iter().filter(is_whole).collect();
            assert!(!whole.is_empty(), "{} with {instruments}: {report:#}", runtime.version);
            for row in whole {
                assert_eq!((&row["generation"], &row["reason"]), (&2.into(), &"induced".into()), "{row:#}");
                assert!(row["pause_ns"].as_u64() > Some(0) && row["number"].is_u64(), "{row:#}");
                assert!(row["heap_after_bytes"].as_u64() > Some(0), "{row:#}");
            }
            assert_eq!(server.left_over(), BTreeSet::new());
        }
        let output = place.run("report gc-survivors.clrs --view survivors --format json");
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let types = report["rows"].as_array().expect("rows").iter().map(|row| row["type"].as_str());
        assert!(types.clone().count() > 3 && types.clone().all(|name| name.is_some()), "{report:#}");
        server.end();
    });
}

/// Each flavour of the collector in a program that runs already: collections, and pauses by the
/// callbacks as by the runtime's events.
#[test]
fn collections_of_every_flavour_are_recorded_in_a_running_program() {
    const FLAVOURS: [(&str, &[(&str, &str)]); 5] = [
        ("server", &[("DOTNET_gcServer", "1"), ("DOTNET_GCHeapCount", "2")]),
        ("adapting", &[("DOTNET_gcServer", "1"), ("DOTNET_GCDynamicAdaptationMode", "1")]),
        ("not-concurrent", &[("DOTNET_gcConcurrent", "0")]),
        ("conserving", &[("DOTNET_GCConserveMemory", "5")]),
        ("segments", &[("DOTNET_GCName", "libclrgc.so")]),
    ];
    let (place, newest) = (TestFolder::new(), testkit::runtimes().last().expect("a runtime"));
    for (flavour, variables) in FLAVOURS {
        let mut command = newest.command(&testkit::fixture("Collections"));
        command.arg("serve").envs(variables.iter().copied());
        let server = Server::spawn(command);
        let output = attach(&place, server.pid, &format!("-i gc --duration 500ms -o {flavour}.clrs")).output();
        let output = output.expect("the tool starts");
        assert!(output.status.success(), "{flavour}: {}", said(&output));
        server.end();
        let output = place.run(&format!("report {flavour}.clrs --view gc --format json"));
        let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let rows = report["rows"].as_array().expect("rows");
        let number = |row: &Value, key: &str| row[key].as_u64();
        let both: Vec<_> =
            rows.iter().filter_map(|row| Some([number(row, "pause_ns")?, number(row, "runtime_pause_ns")?])).collect();
        assert!(both.len() >= 2, "{flavour}: {report:#}");
        let [by_callbacks, by_events] = [0, 1].map(|at| both.iter().map(|pair| pair[at]).sum::<u64>());
        let near = by_events.abs_diff(by_callbacks) <= by_callbacks / 5 + 100_000_000;
        assert!(near, "{flavour}: {by_callbacks} and {by_events}, {report:#}");
    }
}

#[test]
fn a_running_program_is_recorded_and_left_as_it_was_three_times_in_a_row() {
    testkit::each_runtime(|runtime| {
        let place = TestFolder::new();
        let server = Server::start(runtime);
        let first = recorded(&place, server.pid, "-i exceptions --duration 300ms", "first.clrs");
        let (tasks, maps) = (server.tasks(), server.mapped().lines().count());
        for name in ["second.clrs", "third.clrs"] {
            let report = recorded(&place, server.pid, "-i exceptions --duration 300ms", name);
            assert!(thrown(&report) > 0, "{report:#}");
            let row = &report["rows"][0];
            assert_eq!(row["type"], "System.FormatException", "{row:#}");
            assert_eq!(row["name"], "Server.Program::Parse", "names are right each time: {row:#}");
            assert_eq!(server.left_over(), BTreeSet::new());
        }
        assert!(thrown(&first) > 0);
        assert!(server.tasks() <= tasks + 1, "{} threads, {tasks} before", server.tasks());
        let grown = server.mapped().lines().count().saturating_sub(maps);
        assert!(grown < 20, "{grown} more mappings\n{}", server.mapped());
        assert_eq!(server.mapped().matches("libclrscope_agent.so").count(), 4, "one library");
        server.end();
    });
}

/// Samples of CPU time, which is the default, then of all threads by the clock, then both; and the
/// program is as before each time. The server takes too little CPU time to be sure of a sample of
/// it, but its threads are always somewhere.
#[test]
fn a_running_program_is_sampled_three_times_in_a_row() {
    testkit::each_runtime(|runtime| {
        let place = TestFolder::new();
        let server = Server::start(runtime);
        for (number, instruments) in ["", "-i wall", "-i cpu -i wall"].into_iter().enumerate() {
            let name = format!("sampled-{number}.clrs");
            let line = format!("{instruments} --duration 1s -o {name}");
            let output = attach(&place, server.pid, &line).output().expect("the tool starts");
            assert!(output.status.success(), "{}", said(&output));
            let shown = |view: &str| {
                let output = place.run(&format!("report {name} {view} --format json"));
                assert!(output.status.success(), "{}", said(&output));
                serde_json::from_slice::<Value>(&output.stdout).expect("JSON")
            };
            let filled = shown("--view losses")["recording"]["instruments"]["filled"].to_string();
            assert_eq!(filled.contains("cpu"), !instruments.starts_with("-i wall"), "{filled}");
            if instruments.contains("wall") {
                let report = shown("--view functions --metric wall");
                let rows = report["rows"].as_array().expect("rows");
                let serve = rows.iter().find(|row| row["name"] == "Server.Program::Serve");
                let samples = serve.and_then(|row| row["total_samples"].as_u64());
                assert!(samples > Some(0), "{instruments}: {report:#}");
            }
            assert_eq!(server.left_over(), BTreeSet::new(), "{instruments}");
        }
        server.end();
    });
}

#[test]
fn events_that_attach_allows_are_recorded_and_others_refused_with_the_way_to_start() {
    let place = TestFolder::new();
    let server = Server::start(some_runtime());
    let output =
        attach(&place, server.pid, "-i events --duration 300ms -o events.clrs").output().expect("the tool starts");
    assert!(output.status.success(), "{}", said(&output));
    let output = place.run("report events.clrs --view events --format json");
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let has = |event: &str| report["rows"].as_array().expect("rows").iter().any(|row| row["event"] == event);
    assert!(has("InitializeForAttach") && has("ProfilerAttachComplete") && has("ExceptionThrown"));
    let conditions = place.run("report events.clrs --view conditions");
    let text = String::from_utf8_lossy(&conditions.stdout).replace("\n           ", " ");
    assert!(text.contains("does not report searches for precompiled code"), "{text}");
    for wanted in ["-i calls", "-i flow", "-i exceptions:args --include Server", "-i events:transitions"] {
        let refusal = refused(&place, server.pid, wanted);
        assert!(refusal.contains("hint: start the program instead: clrscope run -i "), "{refusal}");
    }
    server.end();
}

#[test]
fn ps_lists_what_runs_and_whether_the_agent_is_in_it() {
    testkit::each_runtime(|runtime| {
        let place = TestFolder::new();
        let server = Server::start(runtime);
        let row = listed(&place, server.pid);
        assert_eq!((&row["runtime"], &row["entry_assembly"]), (&runtime.version.to_string().into(), &"Server".into()));
        assert!(row["uptime_ns"].as_u64().is_some_and(|age| age < 600_000_000_000), "{row:#}");
        assert_eq!((&row["agent"], &row["obstacle"]), (&false.into(), &Value::Null));
        assert!(row["command"].as_array().is_some_and(|words| words.len() > 1), "{row:#}");
        let text = String::from_utf8_lossy(&place.run("ps").stdout).into_owned();
        assert!(text.lines().any(|line| line.contains(&server.pid.to_string()) && line.contains("Server")), "{text}");
        recorded(&place, server.pid, "-i exceptions --duration 100ms", "a.clrs");
        assert_eq!(listed(&place, server.pid)["agent"], true);
        server.end();
    });
}

#[test]
fn programs_in_containers_are_attached_to_from_outside() {
    if !confine::is_root() {
        return testkit::not_run("tests are not root here, and can't make namespaces");
    }
    testkit::each_runtime(|runtime| {
        let script = "mount -t tmpfs own /tmp && exec \"$@\"";
        let mut command = Command::new("unshare");
        command.args(["--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", script, "sh"]);
        command.args(runtime.words(&testkit::fixture("Server")));
        runtime.prepare(&mut command);
        let mut server = Server::spawn(command);
        let outer = server.pid;
        let children = fs::read_to_string(format!("/proc/{outer}/task/{outer}/children")).expect("it lives");
        server.pid = children.trim().parse().expect("one child");
        let place = TestFolder::new();
        let row = listed(&place, server.pid);
        assert_eq!((&row["inner_pid"], &row["entry_assembly"]), (&1.into(), &"Server".into()), "{row:#}");
        for name in ["first.clrs", "second.clrs"] {
            let report = recorded(&place, server.pid, "-i exceptions --duration 300ms", name);
            assert!(thrown(&report) > 0, "{report:#}");
            assert_eq!(report["recording"]["processes"][0]["pid"], 1);
        }
        assert_eq!(server.left_over(), BTreeSet::new());
        server.end();
    });
}

/// A program in a time namespace of its own was "watched 1,000,001 s".
#[test]
fn programs_in_time_namespaces_have_been_watched_as_long_as_they_were() {
    let script = ["--time", "--monotonic", "1000000", "--boottime", "1000000", "--fork", "--kill-child"];
    let can_make = |command: &mut Command| command.args(script).arg("true").status().is_ok_and(|end| end.success());
    if !confine::is_root() || !can_make(&mut Command::new("unshare")) {
        return testkit::not_run("time namespaces can't be made here");
    }
    testkit::each_runtime(|runtime| {
        let mut command = Command::new("unshare");
        command.args(script).args(runtime.words(&testkit::fixture("Server")));
        runtime.prepare(&mut command);
        let mut server = Server::spawn(command);
        let outer = server.pid;
        let children = fs::read_to_string(format!("/proc/{outer}/task/{outer}/children")).expect("it lives");
        server.pid = children.trim().parse().expect("one child");
        let place = TestFolder::new();
        let report = recorded(&place, server.pid, "-i cpu -i exceptions --duration 1s", "a.clrs");
        let about = &report["recording"];
        let watched = about["duration_ns"].as_f64().expect("nanoseconds") / 1e9;
        assert!((1.0..60.0).contains(&watched) && thrown(&report) > 0, "{about:#}");
        server.end();
    });
}

/// `alloc` on .NET 10 silenced the program's own listeners to allocation ticks for ever. What they
/// hear of other events they hear all the time.
#[test]
fn listeners_of_the_program_hear_what_they_hear_without_us() {
    testkit::each_runtime(|runtime| {
        let mut server = Server::spawn(runtime.command(&testkit::fixture("Listening")));
        let place = TestFolder::new();
        // Ticks, collections, exceptions, methods of so many rounds.
        let heard = |server: &mut Server, rounds: usize| -> Vec<[u32; 4]> {
            let numbers =
                |line: String| Vec::from_iter(line.split_whitespace().map(|word| word.parse().expect("a number")));
            (0..rounds).map(|_| numbers(server.line()).try_into().expect("four numbers")).collect()
        };
        let hears = |heard: &[[u32; 4]], kind: usize| heard.iter().map(|round| round[kind]).sum::<u32>() > 0;
        for instrument in ["alloc", "gc", "exceptions", "cpu"] {
            let before = heard(&mut server, 2);
            let text = format!("-i {instrument} --duration 700ms --force -o a.clrs --quiet");
            let mut launcher = attach(&place, server.pid, &text).spawn().expect("the tool starts");
            let during = heard(&mut server, 4);
            assert!(launcher.wait().expect("it ends").success(), "{instrument}");
            let around = heard(&mut server, 8);
            let after = heard(&mut server, 2);
            let case = format!("{instrument} on {}: {before:?} {during:?} {around:?} {after:?}", runtime.version);
            assert!((0..4).all(|kind| hears(&after, kind)), "{case}");
            assert!((1..4).all(|kind| hears(&during, kind)), "{case}");
            // Those of a round may come after it.
            let thrown: u32 = during.iter().chain(&around).chain(&after).map(|round| round[2]).sum();
            let of_a_round = before[1][2];
            assert!(of_a_round >= 5 && thrown.abs_diff(14 * of_a_round) <= of_a_round, "{thrown}: {case}");
        }
        server.signal("TERM");
        testkit::wait_until("its end", || server.line() == "stopped\n");
    });
}
