//! `clrscope attach` and `ps`: a program that runs is recorded and left as it was, and each obstacle has one clear outcome.

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use clrscope_testkit::{self as testkit, Runtime, confine};
use common::TestFolder;
use serde_json::Value;

/// A program that serves, and throws, until it is told to end.
struct Server {
    child: Child,
    pid: u32,
}

impl Server {
    fn start(runtime: &Runtime) -> Self {
        Self::of(runtime.command(&testkit::fixture("Server")))
    }

    fn of(mut command: Command) -> Self {
        testkit::let_children_hear();
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().expect("the program starts");
        let mut line = String::new();
        BufReader::with_capacity(1, child.stdout.as_mut().expect("a pipe")).read_line(&mut line).expect("it writes");
        assert_eq!(line, "ready\n");
        let pid = child.id();
        Self { child, pid }
    }

    fn signal(&self, signal: &str) {
        kill(self.pid, signal);
    }

    fn tasks(&self) -> usize {
        fs::read_dir(format!("/proc/{}/task", self.pid)).expect("it lives").count()
    }

    fn mapped(&self) -> String {
        fs::read_to_string(format!("/proc/{}/maps", self.pid)).expect("it lives")
    }

    /// Leftovers in the program: what it has open or mapped of recordings, and threads of the agent.
    fn left_over(&self) -> BTreeSet<String> {
        testkit::left_over(self.pid)
    }

    /// Ends in order, having done what it does without us.
    fn end(mut self) {
        self.signal("TERM");
        let mut said = String::new();
        self.child.stdout.take().expect("a pipe").read_to_string(&mut said).expect("text");
        assert!(self.child.wait().expect("it ends").success(), "{said}");
        assert!(said.starts_with("stopped\n") && !said.contains("WRONG"), "{said}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn kill(pid: u32, signal: &str) {
    assert!(Command::new("kill").args([format!("-{signal}"), pid.to_string()]).status().expect("kill").success());
}

fn attach(place: &TestFolder, pid: u32, more: &str) -> Command {
    let words = ["attach".to_owned(), pid.to_string()];
    place.clrscope(words.into_iter().chain(more.split_whitespace().map(str::to_owned)))
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Attaches for a while, which must work.
fn recorded(place: &TestFolder, pid: u32, more: &str, name: &str) -> Value {
    let output = attach(place, pid, &format!("{more} -o {name}")).output().expect("the tool starts");
    assert!(output.status.success() && output.stdout.is_empty(), "{}", said(&output));
    rows(place, name)
}

fn rows(place: &TestFolder, name: &str) -> Value {
    let output = place.run(&format!("report {name} --view exceptions --format json"));
    assert!(output.status.success(), "{}", said(&output));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn thrown(report: &Value) -> u64 {
    report["rows"].as_array().expect("rows").iter().filter_map(|row| row["count"].as_u64()).sum()
}

/// The three lines of a refusal; nothing is recorded then.
fn refused(place: &TestFolder, pid: u32, more: &str) -> String {
    // Where it is not refused after all, that must end.
    let more = if more.contains("--duration") { more.to_owned() } else { format!("{more} --duration 1s") };
    let before = fs::read_dir(place.path()).expect("a folder").count();
    let output = attach(place, pid, &more).output().expect("the tool starts");
    let said = said(&output);
    assert!(!output.status.success(), "{said}");
    let lines: Vec<&str> = said.lines().map(|line| line.split(' ').next().unwrap_or_default()).collect();
    assert_eq!(lines, ["error:", "why:", "hint:"], "{said}");
    assert_eq!(fs::read_dir(place.path()).expect("a folder").count(), before, "nothing is left");
    said
}

fn some_runtime() -> &'static Runtime {
    testkit::runtimes().first().expect("a runtime")
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

/// Samples of CPU time, which is the default, then of all threads by the clock, then both; and the program is as before each
/// time. The server takes too little CPU time to be sure of a sample of it, but its threads are always somewhere.
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
fn ctrl_c_ends_the_recording_and_not_the_program() {
    let place = TestFolder::new();
    let server = Server::start(some_runtime());
    let launcher =
        attach(&place, server.pid, "-i exceptions -o a.clrs").stderr(Stdio::piped()).spawn().expect("the tool starts");
    testkit::wait_until("the agent", || !server.left_over().is_empty());
    testkit::wait_for_work(server.pid, std::time::Duration::from_millis(50));
    kill(launcher.id(), "INT");
    let output = launcher.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{}", said(&output));
    // Not on a terminal: nothing but the end.
    assert!(!said(&output).contains("Ctrl-C") && !said(&output).contains('\r'), "{}", said(&output));
    assert!(thrown(&rows(&place, "a.clrs")) > 0);
    assert_eq!(server.left_over(), BTreeSet::new());
    server.end();
}

#[test]
fn killing_the_launcher_ends_the_recording_and_the_next_attach_works() {
    testkit::each_runtime(|runtime| {
        let place = TestFolder::new();
        let server = Server::start(runtime);
        let mut launcher = attach(&place, server.pid, "-i exceptions -o a.clrs").spawn().expect("the tool starts");
        testkit::wait_until("the agent", || !server.left_over().is_empty());
        testkit::wait_for_work(server.pid, std::time::Duration::from_millis(50));
        launcher.kill().expect("it lives");
        launcher.wait().expect("it ends");
        testkit::wait_until("the agent's leave", || server.left_over().is_empty());
        assert!(thrown(&rows(&place, "a.clrs.d")) > 0, "what was recorded is there");
        assert!(thrown(&recorded(&place, server.pid, "-i exceptions --duration 200ms", "b.clrs")) > 0);
        server.end();
    });
}

#[test]
fn the_end_of_the_program_ends_the_recording() {
    for signal in ["TERM", "KILL"] {
        let place = TestFolder::new();
        let server = Server::start(some_runtime());
        let launcher = attach(&place, server.pid, "-i exceptions -o a.clrs")
            .stderr(Stdio::piped())
            .spawn()
            .expect("the tool starts");
        testkit::wait_until("the agent", || !server.left_over().is_empty());
        testkit::wait_for_work(server.pid, std::time::Duration::from_millis(50));
        match signal {
            "TERM" => server.end(),
            _ => drop(server),
        }
        let output = launcher.wait_with_output().expect("it ends");
        assert!(output.status.success(), "{}", said(&output));
        assert!(thrown(&rows(&place, "a.clrs")) > 0, "{signal}");
    }
}

#[test]
fn a_second_attach_at_once_is_refused() {
    let place = TestFolder::new();
    let server = Server::start(some_runtime());
    let launcher =
        attach(&place, server.pid, "-i exceptions -o a.clrs").stderr(Stdio::piped()).spawn().expect("the tool starts");
    testkit::wait_until("the agent", || !server.left_over().is_empty());
    let other = TestFolder::new();
    let refusal = refused(&other, server.pid, "--duration 1s");
    assert!(refusal.contains("why: another 'clrscope attach', or another tool, is attached to it"), "{refusal}");
    kill(launcher.id(), "TERM");
    assert!(launcher.wait_with_output().expect("it ends").status.success());
    server.end();
}

/// The agent's file, as the tool installs it.
fn agent(place: &TestFolder) -> PathBuf {
    let output = place.run("env --json");
    let variables: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let found = variables.as_object().and_then(|all| all.get("CORECLR_PROFILER_PATH")).and_then(Value::as_str);
    PathBuf::from(found.expect("the agent's path"))
}

#[test]
fn programs_that_were_started_with_a_profiler_keep_it() {
    let place = TestFolder::new();
    let runtime = some_runtime();
    let ours = agent(&place);
    let other = place.file("libother.so");
    fs::copy(&ours, &other).expect("a copy");
    for (library, words) in [(&ours, "it was started under clrscope"), (&other, "another profiler is loaded")] {
        let mut command = runtime.command(&testkit::fixture("Server"));
        testkit::load_profiler(&mut command, library, "{C7E1A7D4-3B7B-4C2E-9B7F-0C15C09E5A11}");
        let out = place.file(&format!("{}.clrs.d", library.file_name().expect("a name").to_string_lossy()));
        command.env("CLRSCOPE_AGENT", format!("exceptions;trust-writable;out={}", out.display()));
        let server = Server::of(command);
        let refusal = refused(&place, server.pid, "--duration 1s");
        assert!(refusal.contains(words), "{refusal}");
        server.end();
    }
}

#[test]
fn processes_that_can_not_be_attached_to_are_told_apart() {
    let place = TestFolder::new();
    let runtime = some_runtime();
    let refusal = refused(&place, u32::MAX - 1, "");
    assert!(refusal.contains("why: there is no such process"), "{refusal}");
    let refusal = refused(&place, std::process::id(), "");
    assert!(refusal.contains("why: it runs no .NET runtime"), "{refusal}");
    let mut command = runtime.command(&testkit::fixture("Server"));
    command.env("DOTNET_EnableDiagnostics", "0");
    let server = Server::of(command);
    let refusal = refused(&place, server.pid, "");
    assert!(refusal.contains("DOTNET_EnableDiagnostics=0"), "{refusal}");
    assert!(listed(&place, server.pid)["obstacle"].as_str().is_some_and(|why| why.contains("diagnostics are off")));
    server.end();
    let server = Server::start(runtime);
    server.signal("STOP");
    testkit::wait_until("the stop", || {
        fs::read_to_string(format!("/proc/{}/stat", server.pid)).is_ok_and(|stat| stat.contains(") T "))
    });
    let refusal = refused(&place, server.pid, "");
    assert!(refusal.contains("why: it is stopped") && refusal.contains("kill -CONT"), "{refusal}");
    assert_eq!(listed(&place, server.pid)["obstacle"], "stopped");
    server.signal("CONT");
    server.end();
}

fn listed(place: &TestFolder, pid: u32) -> Value {
    let output = place.run("ps --format json");
    let list: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(list["schema"], "clrscope.ps/1");
    let rows = list["rows"].as_array().expect("rows");
    rows.iter().find(|row| row["pid"] == pid).unwrap_or_else(|| panic!("{pid} is in {list:#}")).clone()
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

/// A user without a name.
const SOMEBODY: u32 = 64_123;

/// The program as another user, who sees the runtime and the program at places of his own.
fn as_somebody(runtime: &Runtime) -> Option<Server> {
    if !confine::is_root() {
        testkit::not_run("tests are not root here, and can't become somebody else");
        return None;
    }
    let fixture = testkit::fixture("Server");
    let bin = fixture.parent().expect("a folder");
    let script = r#"mount -t tmpfs own /mnt && mkdir /mnt/dotnet /mnt/bin && mount --bind "$1" /mnt/dotnet && \
        mount --bind "$2" /mnt/bin && exec setpriv --reuid=$3 --regid=$3 --clear-groups /mnt/dotnet/dotnet \
        --fx-version $4 /mnt/bin/Server.dll"#;
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script, "sh"]).arg(&runtime.root).arg(bin);
    command.args([SOMEBODY.to_string(), runtime.version.to_string()]);
    runtime.prepare(&mut command);
    command.env("DOTNET_ROOT", "/mnt/dotnet").env("HOME", "/nowhere");
    Some(Server::of(command))
}

#[test]
fn root_attaches_to_the_programs_of_others_and_others_not_to_those_of_root() {
    let Some(server) = as_somebody(some_runtime()) else { return };
    let place = TestFolder::new();
    for name in ["first.clrs", "second.clrs"] {
        assert!(thrown(&recorded(&place, server.pid, "-i exceptions --duration 300ms", name)) > 0);
    }
    assert_eq!(server.left_over(), BTreeSet::new());
    assert_eq!(server.mapped().matches("libclrscope_agent.so").count(), 4, "one library");
    let folder = PathBuf::from(format!("/tmp/clrscope-attach-{SOMEBODY}"));
    let left: Vec<_> = fs::read_dir(&folder).expect("the agent's").flatten().map(|entry| entry.file_name()).collect();
    assert!(left.len() == 1 && left[0].to_string_lossy().starts_with("agent-"), "{left:?}");
    fs::remove_dir_all(&folder).expect("it goes");
    server.end();

    let server = Server::start(some_runtime());
    let tool = place.file("clrscope");
    fs::copy(env!("CARGO_BIN_EXE_clrscope"), &tool).expect("a copy");
    open_to_all(place.path());
    let as_other = |words: &[&str]| {
        let mut command = Command::new(&tool);
        command.args(words).current_dir(place.path()).env("HOME", place.path());
        confine::as_user(SOMEBODY, &command).output().expect("the tool starts")
    };
    let output = as_other(&["attach", &server.pid.to_string()]);
    assert!(said(&output).contains("why: it belongs to another user (id 0)"), "{}", said(&output));
    let list = String::from_utf8_lossy(&as_other(&["ps"]).stdout).into_owned();
    let line = list.lines().find(|line| line.contains(&server.pid.to_string())).unwrap_or_else(|| panic!("{list}"));
    assert!(line.contains("(of another user, root)"), "{line}");
    server.end();
}

fn open_to_all(folder: &Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).expect("its mode");
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
        let mut server = Server::of(command);
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
