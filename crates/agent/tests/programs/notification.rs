//! The agent as a notification-only profiler: another profiler has the main slot, and neither
//! disturbs the other.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use clr_diagnostics::StartupPort;
use clrscope_analysis::{Collection, ExceptionLog, ExceptionQuery, LockQuery, Query, collections, locks};
use clrscope_contract::request::{AGENT_CLSID, AGENT_VARIABLE, NOTIFICATION_CLSID};
use clrscope_recording::model::Recording;
use clrscope_testkit::{
    Expectations, Finished, Runtime, agent, attempted, each_runtime, example, fixture, load_profiler, run, run_within,
    scratch, wait_for,
};

use crate::support::{MAIN_PROFILER, Sums, assert_unchanged, notify_agent, under_agent};

const TEMPLATE: &str = "{6F0E8E6B-2C8E-4B6B-9A55-5D1E3B1F7C01}";
const TRACE: &str = "{E8B0E2D3-5E0C-4C57-8B7D-1D5D4F4C9B32}";
const LOCKS: &str = "{9754FACF-377E-48AB-AF30-AD3E50437A82}";
/// The class of the example `threads` that leaves the main slot to others.
const THREADS: &str = "{1256BFA0-BB2F-40C6-BA1D-B74528EB6025}";

/// Tests of instruments that hold in any slot. What they compare with is what programs count and
/// clock.
const OF_INSTRUMENTS: [&str; 7] = [
    "exceptions::each_story_is_what_the_program_did",
    "gc::collections_are_those_that_the_program_asked_for_and_the_runtime_counts",
    "sampling::shares_of_cpu_time_are_those_that_the_program_measures",
    "heap::a_snapshot_has_known_objects_with_what_holds_them",
    "heap::snapshots_are_whole_while_four_threads_allocate",
    "locks::a_convoy_at_a_monitor_is_counted_and_clocked_as_the_program_does",
    "counters::counters_have_what_the_program_adds_to_them",
];
/// As these; looks at memory may miss a peak on a busy machine.
const OF_MEMORY: [&str; 1] = ["memory::each_place_has_what_the_program_put_there"];

/// Runs tests once more, in a process of their own, with hooks of another profiler in each method.
fn again(names: &[&str]) -> Result<(), String> {
    let mut tests = Command::new(std::env::current_exe().expect("this program"));
    tests.args(["--exact", "--test-threads", "2"]).args(names);
    tests.env(MAIN_PROFILER, format!("{}={TEMPLATE}", example("template").display()));
    let said = run_within(tests, Duration::from_secs(900)).stdout_text();
    let have_passed = said.contains(&format!("{} passed; 0 failed; 0 ignored", names.len()));
    if have_passed { Ok(()) } else { Err(said) }
}

#[test]
fn instruments_are_right_where_another_profiler_has_the_main_slot() {
    again(&OF_INSTRUMENTS).unwrap_or_else(|said| panic!("{said}"));
    attempted(|| again(&OF_MEMORY)).unwrap_or_else(|said| panic!("{said}"));
}

fn opened(out: &Path) -> Recording {
    let recording = clrscope_recording::open(out).expect("a recording");
    assert_eq!(recording.problems, []);
    recording
}

/// The calls of the program's own methods in the traces of all threads, in order.
fn traced(folder: &Path, program: &str) -> Vec<String> {
    let files = fs::read_dir(folder).expect("the profiler wrote").flatten();
    let mut threads: Vec<Vec<String>> = files
        .map(|file| {
            let text = fs::read_to_string(file.path()).expect("a text");
            let names = text.lines().filter_map(|line| line.split_once('\t'));
            names.filter(|(_, name)| name.contains(program)).map(|(_, name)| name.trim().to_owned()).collect()
        })
        .collect();
    threads.retain(|calls| !calls.is_empty());
    threads.sort();
    threads.concat()
}

#[test]
fn the_main_profiler_writes_what_it_writes_without_us() {
    let library = example("trace");
    each_runtime(|runtime| {
        let place = runtime.version.to_string();
        let folder = scratch();
        let traced_to = |name: &str, notified: Option<&Path>| {
            let mut command = runtime.command(&fixture("Exceptions"));
            if let Some(out) = notified {
                under_agent(&mut command, "exceptions;gc;cpu;wall;heap:at=100ms", out);
                notify_agent(&mut command);
            }
            load_profiler(&mut command, &library, TRACE);
            command.env("TRACE_PROFILER_OUTPUT", folder.path().join(name));
            run(command).expect_success()
        };
        let (out, alone) = (folder.path().join("run.clrs.d"), traced_to("alone", None));
        let with = traced_to("with", Some(&out));
        assert_unchanged(&with, &alone, &place);
        let calls = ["alone", "with"].map(|name| traced(&folder.path().join(name), "Exceptions.Program"));
        assert!(calls[0].len() > 10_000, "{place}: {}", calls[0].len());
        assert!(calls[0] == calls[1], "{place}: {} calls, {} with the agent", calls[0].len(), calls[1].len());

        let recording = opened(&out);
        let process = &recording.processes[0];
        let said = format!("notification-only: the agent left the runtime's main slot to {}", library.display());
        assert!(process.remarks.iter().any(|remark| remark.text == said), "{:?} on {place}", process.remarks);
        let log = ExceptionLog::open(&recording, &ExceptionQuery::default()).expect("exceptions");
        assert_eq!(log.rows().0.len(), 40 * 100, "{place}");
        let [snapshot] = &process.snapshots[..] else { panic!("{:?} on {place}", process.snapshots) };
        assert!(snapshot.is_complete() && snapshot.roots > 0, "{snapshot:?} on {place}");
        let rows: Vec<Collection<'_>> = collections(&recording, &Query::default()).expect("collections");
        assert!(rows.iter().any(|row| row.generation == 2), "the one of the snapshot, on {place}");
    });
}

/// A number that a program printed.
fn printed(finished: &Finished, key: &str) -> u64 {
    let text = finished.stdout_text();
    let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(' '));
    line.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("no {key} in {text}"))
}

/// Each profiler has a session for the same events: none gets those of the other, or any twice.
#[test]
fn sessions_of_two_profilers_deliver_each_event_once_to_each() {
    let library = example("locks");
    each_runtime(|runtime| {
        let place = runtime.version.to_string();
        let folder = scratch();
        let (out, text) = (folder.path().join("run.clrs.d"), folder.path().join("locks.txt"));
        let mut command = runtime.command(&fixture("Contended"));
        command.args(["monitor", "4", "100"]);
        under_agent(&mut command, "locks", &out);
        notify_agent(&mut command);
        load_profiler(&mut command, &library, LOCKS);
        command.env("LOCKS_PROFILER_OUTPUT", &text);
        let finished = run(command).expect_success();
        let truth = printed(&finished, "CONTENDED");
        let of_main = fs::read_to_string(&text).expect("the profiler wrote");
        let waits = of_main.lines().filter(|line| line.contains("Contended.Program"));
        let of_main: u64 = waits.map(|line| line.split('\t').next().and_then(|n| n.parse::<u64>().ok()).unwrap()).sum();
        let recording = opened(&out);
        let ours: u64 = locks(&recording, &LockQuery::default()).expect("locks").0.iter().map(|row| row.count).sum();
        // The session of the main profiler may begin when threads wait already; a double would
        // show.
        assert!(of_main > 0 && of_main <= truth, "{of_main} of {truth} on {place}");
        assert!(ours > 0 && ours <= truth + truth / 10 && ours >= of_main, "{ours} of {truth} on {place}");
    });
}

/// The other way round: ours has the main slot, with hooks, and another is notified.
#[test]
fn a_notification_only_profiler_does_not_disturb_hooks_of_the_agent() {
    let library = example("threads");
    each_runtime(|runtime| {
        let place = runtime.version.to_string();
        let folder = scratch();
        let (out, text) = (folder.path().join("run.clrs.d"), folder.path().join("threads.txt"));
        let bare = run(runtime.command(&fixture("Recursion")));
        let mut command = runtime.command(&fixture("Recursion"));
        load_profiler(&mut command, agent(), AGENT_CLSID);
        command.env(AGENT_VARIABLE, format!("calls;trust-writable;out={}", out.display()));
        command.env("CORECLR_ENABLE_NOTIFICATION_PROFILERS", "1").env("THREADS_PROFILER_OUTPUT", &text);
        command.env("CORECLR_NOTIFICATION_PROFILERS", format!("{}={THREADS};", library.display()));
        let with = run(command);
        assert_unchanged(&with, &bare, &place);
        assert!(fs::read_to_string(&text).expect("it wrote").lines().count() >= 2, "{place}");
        assert_calls(&opened(&out), "Recursion", &with, &place);
    });
}

fn assert_calls(recording: &Recording, name: &str, finished: &Finished, place: &str) {
    let sums = Sums::of_process(&recording.processes[0], name);
    let expected = Expectations::parse(&finished.stdout_text());
    let own: BTreeMap<_, _> = expected.calls.iter().filter(|(of, _)| of.starts_with(name)).collect();
    assert!(!own.is_empty());
    for (function, calls) in own {
        assert_eq!(sums.calls.get(function), Some(calls), "{function} on {place}");
    }
}

#[test]
fn what_needs_the_main_slot_is_refused_and_the_program_runs_as_it_does() {
    let library = example("template");
    each_runtime(|runtime| {
        let folder = scratch();
        for (request, why) in [
            ("calls", "calls needs enter and leave hooks"),
            ("heap", "when the program ends, the runtime reports what holds objects only to the main profiler"),
            ("gc:survivors", "gc:survivors tracks each object"),
            ("cpu;probes;probe=X::Y", "probes changes methods"),
        ] {
            let out = folder.path().join(format!("{}.clrs.d", &request[..2]));
            let mut command = runtime.command(&fixture("Recursion"));
            under_agent(&mut command, request, &out);
            notify_agent(&mut command);
            load_profiler(&mut command, &library, TEMPLATE);
            let finished = run(command).expect_success();
            assert!(!finished.stdout_text().is_empty());
            let recording = clrscope_recording::open(&out).expect("a recording");
            let said = recording.processes.iter().find_map(|process| process.refusal().map(str::to_owned));
            assert!(said.as_ref().is_some_and(|said| said.contains(why)), "{said:?} on {}", runtime.version);
        }
    });
}

/// Both slots name the agent: the first records, and the second steps aside.
#[test]
fn one_agent_records_a_process_that_loads_two() {
    each_runtime(|runtime| {
        let folder = scratch();
        let out = folder.path().join("run.clrs.d");
        let mut command = runtime.command(&fixture("Recursion"));
        load_profiler(&mut command, agent(), AGENT_CLSID);
        notify_agent(&mut command);
        command.env(AGENT_VARIABLE, format!("exceptions;trust-writable;out={}", out.display()));
        run(command).expect_success();
        let recording = clrscope_recording::open(&out).expect("a recording");
        let refusals = recording.processes.iter().filter(|process| process.refusal().is_some()).count();
        assert!(refusals <= 1 && recording.processes.len() - refusals == 1, "on {}", runtime.version);
    });
}

/// The commands that `dotnet-monitor` gives a runtime that waits at its port, for a rule that sets
/// variables and loads a profiler.
fn loaded_by_commands(runtime: &Runtime, request: &str, class: &str, main: Option<&Path>) -> (Finished, Recording) {
    let folder = scratch();
    let out = folder.path().join("run.clrs.d");
    let port = StartupPort::bind(&folder.path().join("port")).expect("a port");
    let mut command = runtime.command(&fixture("Recursion"));
    if let Some(library) = main {
        load_profiler(&mut command, library, TEMPLATE);
    }
    command.env("DOTNET_DiagnosticPorts", port.variable()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let program = command.spawn().expect("it starts");
    let held = || port.accept(Duration::from_secs(60)).expect("it comes");
    let given = format!("{request};trust-writable;out={}", out.display());
    held().set_environment_variable(AGENT_VARIABLE, &given).expect("it is set");
    let library = agent().to_str().expect("a path");
    // The port is served before the runtime begins to wait
    // (`ds_server_pause_for_diagnostics_monitor`), and until then the command is an invalid one.
    let class = class.parse().expect("a class");
    wait_for("the runtime waits", || held().startup_profiler(class, library).ok());
    held().resume().expect("it goes on");
    let output = program.wait_with_output().expect("it ends");
    let finished =
        Finished { status: output.status, stdout: output.stdout, stderr: output.stderr, elapsed: Duration::ZERO };
    (finished.expect_success(), opened(&out))
}

#[test]
fn an_agent_that_commands_load_before_the_program_starts_counts_exactly() {
    each_runtime(|runtime| {
        let place = runtime.version.to_string();
        let bare = run(runtime.command(&fixture("Recursion")));
        let (with, recording) = loaded_by_commands(runtime, "calls", AGENT_CLSID, None);
        assert_unchanged(&Finished { elapsed: bare.elapsed, ..with.clone() }, &bare, &place);
        assert_calls(&recording, "Recursion", &with, &place);
        let (_, recording) = loaded_by_commands(runtime, "exceptions", NOTIFICATION_CLSID, Some(&example("template")));
        let remarks = &recording.processes[0].remarks;
        assert!(remarks.iter().any(|remark| remark.text.starts_with("notification-only: ")), "{remarks:?} on {place}");
    });
}
