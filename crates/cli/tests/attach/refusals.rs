//! Refusals of what can't be attached to: one clear sentence each, and nothing is left.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use clrscope_testkit::{self as testkit, Runtime, confine};
use serde_json::Value;

use crate::common::TestFolder;
use crate::server::{Server, attach, kill, listed, recorded, refused, rows, said, some_runtime, thrown};

#[test]
fn a_second_attach_at_once_is_refused() {
    let place = TestFolder::new();
    let server = Server::start(some_runtime());
    let launcher =
        attach(&place, server.pid, "-i exceptions -o a.clrs").stderr(Stdio::piped()).spawn().expect("the tool starts");
    testkit::wait_until("the agent", || !server.left_over().is_empty());
    let other = TestFolder::new();
    let refusal = refused(&other, server.pid, "--duration 1s");
    assert!(refusal.contains("why: another 'clrscope attach' or another tool is attached"), "{refusal}");
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
    let other = testkit::example("template");
    for (library, class, asked, words) in [
        (&ours, "{C7E1A7D4-3B7B-4C2E-9B7F-0C15C09E5A11}", "-i exceptions", "it was started under clrscope"),
        (
            &other,
            "{6F0E8E6B-2C8E-4B6B-9A55-5D1E3B1F7C01}",
            "-i alloc -i requests",
            "libtemplate.so', and requests changes methods",
        ),
    ] {
        let mut command = runtime.command(&testkit::fixture("Server"));
        testkit::load_profiler(&mut command, library, class);
        let out = place.file(&format!("{}.clrs.d", library.file_name().expect("a name").to_string_lossy()));
        command.env("CLRSCOPE_AGENT", format!("exceptions;trust-writable;out={}", out.display()));
        let server = Server::spawn(command);
        let refusal = refused(&place, server.pid, &format!("{asked} --duration 1s"));
        assert!(refusal.contains(words), "{refusal}");
        let is_ours = library == &ours;
        let names_it = refusal.contains("clrscope report ") && refusal.contains(&out.display().to_string());
        assert_eq!(is_ours, names_it, "{refusal}");
        server.end();
    }
}

/// The runtime attaches profilers that leave the main slot to others.
#[test]
fn programs_that_were_started_with_another_profiler_are_attached_to_without_the_main_slot() {
    for runtime in testkit::runtimes() {
        let place = TestFolder::new();
        let mut command = runtime.command(&testkit::fixture("Server"));
        testkit::load_profiler(&mut command, &testkit::example("template"), "{6F0E8E6B-2C8E-4B6B-9A55-5D1E3B1F7C01}");
        let server = Server::spawn(command);
        for name in ["first.clrs", "second.clrs"] {
            let report = recorded(&place, server.pid, "-i exceptions --duration 300ms", name);
            assert!(thrown(&report) > 0, "{name} on {}", runtime.version);
        }
        let snapshot = place.run(&format!("heap {} -o heap.clrs", server.pid));
        assert!(snapshot.status.success(), "{} on {}", said(&snapshot), runtime.version);
        let (code, rows) = judged(&place, server.pid);
        let found = rows.iter().find(|[name, status, _]| name == "profilers" && status == "note");
        assert!(code == Some(0) && found.is_some_and(|[.., found]| found.contains("libtemplate.so'")), "{rows:?}");
        server.end();
    }
}

/// A library with the versions of an old glibc, and nothing else of it.
fn old_library(place: &TestFolder) -> PathBuf {
    let (source, versions, library) = (place.file("old.c"), place.file("old.map"), place.file("libc.so.6"));
    fs::write(&source, "int old;\n").expect("a file");
    fs::write(&versions, "GLIBC_2.2.5 { };\nGLIBC_2.17 { } GLIBC_2.2.5;\nGLIBC_PRIVATE { } GLIBC_2.17;\n")
        .expect("a file");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-nostdlib", "-o"]).arg(&library).arg(&source);
    compiler.arg(format!("-Wl,--version-script={}", versions.display()));
    testkit::run(compiler).expect_success();
    library
}

/// The doctor's answer about a process: its exit code, and the name, status and text of each check.
fn judged(place: &TestFolder, pid: u32) -> (Option<i32>, Vec<[String; 3]>) {
    let output = place.run(&format!("doctor --json {pid}"));
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let word = |row: &Value, key: &str| row[key].as_str().unwrap_or_default().to_owned();
    let rows = document["rows"].as_array().expect("rows");
    (output.status.code(), rows.iter().map(|row| ["name", "status", "found"].map(|key| word(row, key))).collect())
}

/// In a container with an older C library the runtime could not load the agent, and there was no
/// message.
#[test]
fn a_program_whose_c_library_is_too_old_is_refused_with_both_versions() {
    if !confine::is_root() {
        return testkit::not_run("tests are not root here, and can't make namespaces");
    }
    let place = TestFolder::new();
    let runtime = some_runtime();
    let mut command = Command::new("unshare");
    command.arg("--mount").args(runtime.words(&testkit::fixture("Server")));
    runtime.prepare(&mut command);
    let server = Server::spawn(command);
    // It goes on with the library that it has: only who looks at its files finds the other.
    let maps = fs::read_to_string(format!("/proc/{}/maps", server.pid)).expect("its maps");
    let own = maps.lines().filter_map(|line| Some(&line[line.find('/')?..])).find(|path| path.ends_with("/libc.so.6"));
    let mut mount = Command::new("nsenter");
    mount.arg(format!("--mount=/proc/{}/ns/mnt", server.pid)).args(["mount", "--bind"]);
    mount.arg(old_library(&place)).arg(own.expect("it has glibc"));
    testkit::run(mount).expect_success();
    let refusal = refused(&place, server.pid, "--duration 1s");
    let words = "why: its C library is glibc 2.17, and this agent needs glibc 2.";
    assert!(
        refusal.contains(words) && refusal.contains("hint: run the program in an image with glibc 2."),
        "{refusal}"
    );
    let (code, rows) = judged(&place, server.pid);
    let failed = rows.iter().find(|[name, status, _]| name == "C library" && status == "failed");
    assert!(code == Some(1) && failed.is_some_and(|[.., found]| found.contains("is glibc 2.17")), "{rows:?}");
    server.end();
}

/// A process counts as one on musl by what it has mapped. The tool that tests build has an agent
/// for this machine's C library alone.
#[test]
fn a_program_on_another_c_library_is_refused_by_name() {
    let place = TestFolder::new();
    let (source, library) = (place.file("other.c"), place.file("ld-musl-x86_64.so.1"));
    fs::write(&source, "int other;\n").expect("a file");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-nostdlib", "-o"]).arg(&library).arg(&source);
    testkit::run(compiler).expect_success();
    let mut command = some_runtime().command(&testkit::fixture("Server"));
    command.env("LD_PRELOAD", &library);
    let server = Server::spawn(command);
    let refusal = refused(&place, server.pid, "--duration 1s");
    let words = "the C library is musl (Alpine Linux), and this clrscope has an agent for glibc only";
    assert!(refusal.contains(&format!("why: {words}")) && refusal.contains("hint: use a published build"), "{refusal}");
    let (code, rows) = judged(&place, server.pid);
    let failed = rows.iter().find(|[name, status, _]| name == "C library" && status == "failed");
    assert!(code == Some(1) && failed.is_some_and(|[.., found]| found.contains(words)), "{rows:?}");
    server.end();
}

#[test]
fn the_doctor_says_of_a_process_what_keeps_the_agent_out() {
    let place = TestFolder::new();
    let runtime = some_runtime();
    let holds = |rows: &[[String; 3]], name: &str, status: &str, words: &str| {
        let found = rows.iter().any(|row| row[0] == name && row[1] == status && row[2].contains(words));
        assert!(found, "no {status} {name} with {words:?} in {rows:?}");
    };
    let server = Server::start(runtime);
    let (code, rows) = judged(&place, server.pid);
    assert_eq!(code, Some(0), "{rows:?}");
    holds(&rows, "process", "ok", "is Server on .NET ");
    holds(&rows, "C library", "ok", "the agent needs glibc 2.");
    holds(&rows, "agent", "ok", "is not in the process");
    server.end();
    // Its variables ask for an agent that is not there: the runtime says nothing.
    let mut command = runtime.command(&testkit::fixture("Server"));
    testkit::load_profiler(&mut command, Path::new("/nowhere/agent.so"), "{C7E1A7D4-3B7B-4C2E-9B7F-0C15C09E5A11}");
    command.env("CLRSCOPE_AGENT", "exceptions");
    let server = Server::spawn(command);
    let (code, rows) = judged(&place, server.pid);
    assert_eq!(code, Some(1), "{rows:?}");
    holds(&rows, "agent", "failed", "'/nowhere/agent.so' is not a file where the program runs");
    server.end();
    let (code, rows) = judged(&place, u32::MAX);
    assert_eq!(code, Some(1), "{rows:?}");
    holds(&rows, "process", "failed", "there is no such process");
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
    let server = Server::spawn(command);
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

/// A user without a name.
const SOMEBODY: u32 = 64_123;
/// Another one: each has a folder of temporary files of their own.
const SOMEBODY_ELSE: u32 = 64_124;

/// One whose names others have taken.
const SOMEBODY_ROBBED: u32 = 64_125;

/// The program as another user, who sees the runtime and the program at places of his own.
fn as_user(user: u32, runtime: &Runtime) -> Option<Server> {
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
    command.args([user.to_string(), runtime.version.to_string()]);
    runtime.prepare(&mut command);
    command.env("DOTNET_ROOT", "/mnt/dotnet").env("HOME", "/nowhere");
    Some(Server::spawn(command))
}

#[test]
fn root_attaches_to_the_programs_of_others_and_others_not_to_those_of_root() {
    let Some(server) = as_user(SOMEBODY, some_runtime()) else { return };
    let place = TestFolder::new();
    for name in ["first.clrs", "second.clrs"] {
        assert!(thrown(&recorded(&place, server.pid, "-i exceptions --duration 300ms", name)) > 0);
    }
    let stacks = place.run(&format!("stacks {}", server.pid));
    assert!(stacks.status.success() && stacks.stdout.starts_with(b"Threads\n"), "{}", said(&stacks));
    assert_eq!(server.left_over(), BTreeSet::new());
    assert_eq!(server.mapped().matches("libclrscope_agent.so").count(), 4, "one library");
    let folder = PathBuf::from(format!("/tmp/clrscope-attach-{SOMEBODY}"));
    let left: Vec<_> = fs::read_dir(&folder).expect("the agent's").flatten().map(|entry| entry.file_name()).collect();
    assert!(left.len() == 1 && left[0].to_string_lossy().starts_with("agent-"), "{left:?}");
    fs::remove_dir_all(&folder).expect("it goes");
    server.end();

    let server = Server::start(some_runtime());
    let tool = place.copied_tool();
    open_to_all(place.path());
    let as_other = |words: &[&str]| {
        let mut command = Command::new(&tool);
        command.args(words).current_dir(place.path()).env("HOME", place.path());
        confine::as_user(SOMEBODY, &command).output().expect("the tool starts")
    };
    let output = as_other(&["attach", &server.pid.to_string()]);
    assert!(said(&output).contains("why: it belongs to another user (id 0)"), "{}", said(&output));
    // The system's list of threads may stand before that, as far as this user sees it.
    let output = as_other(&["stacks", &server.pid.to_string()]);
    assert!(said(&output).contains("why: it belongs to another user (id 0)"), "{}", said(&output));
    assert_eq!(output.status.code(), Some(1));
    let list = String::from_utf8_lossy(&as_other(&["ps"]).stdout).into_owned();
    let line = list.lines().find(|line| line.contains(&server.pid.to_string())).unwrap_or_else(|| panic!("{list}"));
    assert!(line.contains("(of another user, root)"), "{line}");
    server.end();
}

/// In a folder of temporary files that is sticky another user's file can't be removed: one by the
/// name of the agent's folder, or of the socket at which it sleeps, stopped each attach.
#[test]
fn strangers_who_take_our_names_do_not_stop_an_attach() {
    use std::os::unix::fs::{MetadataExt, chown};
    let Some(server) = as_user(SOMEBODY_ROBBED, some_runtime()) else { return };
    let stat = fs::read_to_string(format!("/proc/{}/stat", server.pid)).expect("a process");
    let started = stat.rsplit(") ").next().and_then(|rest| rest.split(' ').nth(19)).expect("its start").to_owned();
    let usual = format!("/tmp/clrscope-attach-{SOMEBODY_ROBBED}");
    let taken = [usual.clone(), format!("/tmp/clrscope-agent-{}-{started}-socket", server.pid)];
    for name in &taken {
        fs::write(name, "").and_then(|()| chown(name, Some(SOMEBODY), None)).expect("a stranger's file");
    }
    let place = TestFolder::new();
    for name in ["first.clrs", "second.clrs"] {
        // The second wakes the agent, which can't be let go after probes.
        let line = "--probe Server.Program::Parse -i exceptions --duration 300ms";
        assert!(thrown(&recorded(&place, server.pid, line, name)) > 0);
    }
    let ours: Vec<PathBuf> = fs::read_dir("/tmp")
        .expect("a folder")
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.display().to_string().starts_with(&format!("{usual}-")))
        .collect();
    assert_eq!(ours.len(), 1, "the second attach finds the folder of the first: {ours:?}");
    assert_eq!(fs::metadata(&ours[0]).expect("a folder").uid(), SOMEBODY_ROBBED);
    fs::remove_dir_all(&ours[0]).expect("it goes");
    server.end();
    for name in &taken {
        assert_eq!(fs::metadata(name).expect("it is left alone").uid(), SOMEBODY);
        fs::remove_file(name).expect("it goes");
    }
}

/// Root and the program's own user; both have agent and recording in one folder of temporary files.
#[test]
fn two_users_that_attach_at_once_have_one_clear_outcome_each() {
    let Some(server) = as_user(SOMEBODY_ELSE, some_runtime()) else { return };
    let place = TestFolder::new();
    let tool = place.copied_tool();
    open_to_all(place.path());
    let launchers = ["root.clrs", "somebody.clrs"].map(|name| {
        let mut command = Command::new(&tool);
        command.args(["attach", &server.pid.to_string(), "-i", "exceptions", "--duration", "300ms", "-o", name]);
        command.current_dir(place.path()).env("HOME", place.path());
        let mut command = if name == "root.clrs" { command } else { confine::as_user(SOMEBODY_ELSE, &command) };
        (name, command.stdin(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the tool starts"))
    });
    let outcomes = launchers.map(|(name, launcher)| {
        let output = launcher.wait_with_output().expect("it ends");
        let said = said(&output);
        match output.status.success() {
            true => assert!(thrown(&rows(&place, name)) > 0, "{name}: {said}"),
            false => {
                let words: Vec<&str> = said.lines().map(|line| line.split(' ').next().unwrap_or_default()).collect();
                assert_eq!(words, ["error:", "why:", "hint:"], "{name}: {said}");
                assert!(said.contains("why: another 'clrscope attach'"), "{name}: {said}");
                assert!(!place.file(name).exists(), "{name}: nothing is left");
            }
        }
        output.status.success()
    });
    assert!(outcomes.contains(&true), "one of them got it");
    assert_eq!(server.left_over(), BTreeSet::new());
    fs::remove_dir_all(format!("/tmp/clrscope-attach-{SOMEBODY_ELSE}")).expect("the agent's folder");
    server.end();
}

fn open_to_all(folder: &Path) {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(folder, fs::Permissions::from_mode(0o777)).expect("its mode");
}
