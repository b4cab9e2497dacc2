//! Programs that are not .NET's own host, and environments that others have set up.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{Sums, under_agent};
use clrscope_testkit::{
    Expectations, Runtime, agent, each_runtime, example, fixture, load_profiler, run, scratch, workspace_root,
};

/// `dotnet/fixtures/Hosted/host.c`, built here.
fn native_host(folder: &Path) -> PathBuf {
    let (source, program) = (workspace_root().join("dotnet/fixtures/Hosted/host.c"), folder.join("host"));
    let mut compiler = Command::new("cc");
    run({
        compiler.args(["-O1", "-Wall", "-Werror", "-o"]).args([&program, &source]).arg("-ldl");
        compiler
    })
    .expect_success();
    program
}

/// The newest host library of the installation: it starts every runtime up to its own version.
fn host_library(runtime: &Runtime) -> PathBuf {
    let folder = runtime.root.join("host/fxr");
    let entries = fs::read_dir(&folder).expect("an installation has one").flatten();
    let key = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        name.split('.').filter_map(|part| part.parse::<u32>().ok()).collect::<Vec<_>>()
    };
    entries.map(|entry| entry.path()).max_by_key(key).expect("one version").join("libhostfxr.so")
}

#[test]
fn a_native_program_that_ends_while_managed_threads_run() {
    let folder = scratch();
    let host = native_host(folder.path());
    each_runtime(|runtime| {
        let config = folder.path().join(format!("{}.runtimeconfig.json", runtime.version));
        let text = format!(
            r#"{{"runtimeOptions":{{"framework":{{"name":"Microsoft.NETCore.App","version":"{}"}},"rollForward":"Disable"}}}}"#,
            runtime.version
        );
        fs::write(&config, text).expect("a file");
        for way in ["return", "exit", "_exit", "abort"] {
            let place = format!("{way} on {}", runtime.version);
            let prepared = || {
                let mut command = Command::new(&host);
                command.arg(host_library(runtime)).arg(&runtime.root).arg(&config).arg(fixture("Hosted")).arg(way);
                runtime.prepare(&mut command);
                command
            };
            let out = folder.path().join(format!("{}-{way}.clrs.d", runtime.version));
            let mut command = prepared();
            under_agent(&mut command, "calls", &out);
            let (bare, with) = (run(prepared()), run(command));
            assert_eq!((with.stdout_text(), with.stderr_text()), (bare.stdout_text(), bare.stderr_text()), "{place}");
            assert_eq!((with.status, with.code()), (bare.status, if way == "abort" { 134 } else { 7 }), "{place}");
            let recording = clrscope_recording::open(&out).expect("a recording");
            assert_eq!(recording.problems, [], "{place}");
            let sums = Sums::of_process(&recording.processes[0], "Hosted");
            let truth = Expectations::parse(&with.stdout_text()).calls("Hosted.Program::Work");
            assert_eq!(sums.calls.get("Hosted.Program::Work").copied(), truth, "{place}");
            assert!(sums.calls.get("Hosted.Program::Busy").is_some_and(|&calls| calls >= 4000), "{place}");
        }
    });
}

#[test]
fn switched_off_diagnostics_leave_no_trace() {
    each_runtime(|runtime| {
        for variable in ["DOTNET_EnableDiagnostics", "DOTNET_EnableDiagnostics_Profiler", "COMPlus_EnableDiagnostics"] {
            let folder = scratch();
            let out = folder.path().join("run.clrs.d");
            let mut command = runtime.command(&fixture("Hello"));
            under_agent(&mut command, "calls", &out);
            let finished = run({
                command.env(variable, "0");
                command
            })
            .expect_success();
            assert_eq!((finished.stdout_text().as_str(), finished.stderr_text().as_str()), ("Hello, World!\n", ""));
            assert!(!out.exists(), "{variable} on {}", runtime.version);
        }
    });
}

#[test]
fn the_log_for_developers_says_what_was_decided_and_why_not() {
    each_runtime(|runtime| {
        let logged = |request: &str, level: &str| {
            let folder = scratch();
            let out = folder.path().join("run.clrs.d");
            let mut command = runtime.command(&fixture("Hello"));
            under_agent(&mut command, request, &out);
            command.env("CLRSCOPE_LOG", level);
            let finished = run(command).expect_success();
            assert_eq!((finished.stdout_text().as_str(), finished.stderr_text().as_str()), ("Hello, World!\n", ""));
            let entries = fs::read_dir(&out).expect("the recording").flatten().map(|entry| entry.path());
            let logs: Vec<PathBuf> = entries.filter(|path| path.extension().is_some_and(|end| end == "log")).collect();
            assert_eq!(logs.len(), 1, "{logs:?}");
            fs::read_to_string(&logs[0]).expect("a log")
        };
        let log = logged("calls:noinline;include=[Hello]*", "debug");
        for line in ["info  [", "instruments: calls:clock=sampled,noinline=on", ": Hello ", "Shutdown"] {
            assert!(log.contains(line), "no '{line}' on {}:\n{log}", runtime.version);
        }
        let log = logged("calls", "info");
        assert!(!log.contains(": Hello ") && log.contains("Shutdown"), "{log}");
        assert_eq!(logged("calls", "error"), "");
        let log = logged("calls:colour", "warn");
        assert!(log.contains("warn  [") && log.contains("stepping aside: "), "{log}");
        assert!(logged("calls", "loud").contains("CLRSCOPE_LOG=loud is not a level, so info is used"));
    });
}

#[test]
fn another_profiler_in_the_environment_does_not_stand_in_our_way() {
    let (other, class) = (example("template"), "{6F0E8E6B-2C8E-4B6B-9A55-5D1E3B1F7C01}");
    each_runtime(|runtime| {
        let folder = scratch();
        let out = folder.path().join("run.clrs.d");
        let mut command = runtime.command(&fixture("Recursion"));
        // The plain path names it; the one for 64 bits, which we set too, wins.
        load_profiler(&mut command, &other, class);
        under_agent(&mut command, "calls", &out);
        command.env("CORECLR_PROFILER_PATH", &other).env("CORECLR_PROFILER_PATH_64", agent());
        command.env("CORECLR_NOTIFICATION_PROFILERS", format!("{}={class}", other.display()));
        let bare = run(runtime.command(&fixture("Recursion")));
        let with = run(command);
        assert_eq!((with.stdout_text(), with.stderr_text()), (bare.stdout_text(), bare.stderr_text()));
        assert_eq!(with.status, bare.status);
        let recording = clrscope_recording::open(&out).expect("a recording");
        let truth = Expectations::parse(&with.stdout_text()).calls("Recursion.Program::Fib");
        let sums = Sums::of_process(&recording.processes[0], "Recursion");
        assert_eq!(sums.calls.get("Recursion.Program::Fib").copied(), truth, "on {}", runtime.version);
    });
}
