//! The launcher under bad conditions: killed at any moment, odd names, no space, no permission,
//! every exit code.

mod common;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;
use std::time::Duration;

use clrscope_testkit as testkit;
use common::TestFolder;
use serde_json::Value;
use testkit::confine::{with_small_disk, without_powers};
use testkit::{
    Expectations, Finished, Runtime, Service, each_runtime, fixture, last_count, random_pause, wait_for_work,
    wait_until,
};

fn newest() -> &'static Runtime {
    testkit::runtimes().last().expect("a runtime")
}

fn over(place: &TestFolder, runtime: &Runtime, options: &[&OsStr], name: &str, arguments: &[&str]) -> Command {
    let mut words: Vec<OsString> = vec!["run".into()];
    words.extend(options.iter().map(|word| (*word).to_owned()));
    words.push("--".into());
    words.extend(runtime.words(&fixture(name)));
    words.extend(arguments.iter().map(OsString::from));
    let mut command = place.clrscope(words);
    runtime.prepare(&mut command);
    command
}

fn options<'a>(words: &[&'a str]) -> Vec<&'a OsStr> {
    words.iter().map(|word| OsStr::new(*word)).collect()
}

fn json(place: &TestFolder, arguments: &[&OsStr]) -> Value {
    let output = place.clrscope(arguments).args(["--format", "json"]).output().expect("the tool starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn calls(place: &TestFolder, recording: &OsStr, name: &str) -> u64 {
    let document = json(place, &[OsStr::new("report"), recording, OsStr::new("--view"), OsStr::new("functions")]);
    let rows = document["rows"].as_array().expect("rows").iter().filter(|row| row["name"] == name);
    rows.filter_map(|row| row["calls"].as_u64()).sum()
}

/// Names in a folder, without hidden drafts.
fn names(place: &TestFolder) -> Vec<String> {
    let entries = fs::read_dir(place.path()).expect("a listing").flatten();
    let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.retain(|name| !name.starts_with('.'));
    names.sort();
    names
}

/// Calls between two lines of the program: so many that its output stays short.
const BATCH: u64 = 1_000_000;

#[test]
fn killing_the_launcher_at_any_moment_loses_nothing_and_the_program_goes_on() {
    each_runtime(|runtime| {
        for most_ms in [1, 100, 900] {
            let place = TestFolder::new();
            let pause = random_pause(Duration::from_millis(most_ms));
            let place_of = format!("{pause:?} on {}", runtime.version);
            let arguments = ["100000000000", &BATCH.to_string()];
            let command =
                over(&place, runtime, &options(&["-q", "-i", "calls", "-o", "k.clrs"]), "Counter", &arguments);
            let service = Service::start(command);
            testkit::pause(pause);
            let launcher = service.id();
            let program = child_of(launcher).expect("it counts for ever");
            kill(launcher);
            // The program goes on, and so does its recording.
            wait_for_work(program, Duration::from_millis(100));
            let before = calls(&place, OsStr::new("k.clrs"), "Counter.Program::Step");
            wait_for_work(program, Duration::from_millis(100));
            kill(program);
            let finished = service.wait();
            let said = last_count(&finished, BATCH);
            let found = calls(&place, OsStr::new("k.clrs"), "Counter.Program::Step");
            assert!((said..=said + BATCH).contains(&found), "said {said}, recorded {found}, {place_of}");
            assert!(before < found, "recorded {before}, then {found}, {place_of}");
            assert_eq!(names(&place), ["k.clrs.d"], "{place_of}");
            assert!(place.run("pack k.clrs.d").status.success(), "{place_of}");
            assert_eq!(calls(&place, OsStr::new("k.clrs"), "Counter.Program::Step"), found, "{place_of}");
        }
    });
}

#[test]
fn killing_the_program_at_any_moment_is_handed_on_and_loses_nothing() {
    each_runtime(|runtime| {
        for most_ms in [1, 400] {
            let place = TestFolder::new();
            let arguments = ["100000000000", &BATCH.to_string()];
            let command =
                over(&place, runtime, &options(&["-q", "-i", "calls", "-o", "k.clrs"]), "Counter", &arguments);
            let service = Service::start(command);
            testkit::pause(random_pause(Duration::from_millis(most_ms)));
            kill(child_of(service.id()).expect("it counts for ever"));
            let finished = service.wait();
            let said = last_count(&finished, BATCH);
            assert_eq!(finished.code(), 137, "on {}", runtime.version);
            let found = calls(&place, OsStr::new("k.clrs"), "Counter.Program::Step");
            assert!((said..=said + BATCH).contains(&found), "said {said}, recorded {found} on {}", runtime.version);
            assert_eq!(names(&place), ["k.clrs"], "on {}", runtime.version);
            let document = json(&place, &options(&["report", "k.clrs", "--view", "losses"]));
            assert_eq!(document["recording"]["complete"], true, "its end was seen: {document:#}");
            assert_eq!(document["recording"]["processes"][0]["signal"], 9, "{document:#}");
            let losses = document["rows"].as_array().expect("rows").iter().map(|row| &row["reason"]);
            // A helper thread that gets no processor finds no memory for new paths in time.
            let reasons: Vec<_> = losses.filter(|&reason| reason != "arena_behind").collect();
            assert_eq!(reasons, ["abrupt_end"], "{document:#}");
        }
    });
}

/// The program makes all its steps, whether it ran already or only its recording was there.
#[test]
fn killing_the_launcher_while_the_program_starts_takes_nothing_from_it() {
    each_runtime(|runtime| {
        for most_ms in [20, 200] {
            let place = TestFolder::new();
            let recorded = options(&["-q", "-i", "calls", "-o", "s.clrs"]);
            let over = over(&place, runtime, &recorded, "Counter", &["300000", "100000"]);
            let pause = random_pause(Duration::from_millis(most_ms));
            let mut command = Command::new("timeout");
            // In a group of its own it is killed alone.
            let seconds = format!("{:.6}", pause.as_secs_f64().max(1e-6));
            command.args(["--foreground", "--signal=KILL", &seconds]).arg(over.get_program()).args(over.get_args());
            command.current_dir(place.path());
            for (name, value) in over.get_envs() {
                match value {
                    Some(value) => command.env(name, value),
                    None => command.env_remove(name),
                };
            }
            // Until all that hold its output have ended, the program as well.
            let finished = testkit::run(command);
            let said = last_count(&finished, 100_000);
            let place_of = format!("{pause:?} on {}: {:?}", runtime.version, names(&place));
            assert!(said == 0 || said == 300_000, "said {said}, {place_of}");
            if said > 0 {
                assert_eq!(calls(&place, OsStr::new("s.clrs"), "Counter.Program::Step"), said, "{place_of}");
            }
        }
    });
}

#[test]
fn killing_the_launcher_while_it_packs_leaves_a_whole_recording() {
    let runtime = newest();
    // The first is killed before it sees the end of its program, the others so many milliseconds
    // after it could.
    for wait_ms in [None, Some(0), Some(1), Some(2), Some(4), Some(7), Some(12)] {
        let place = TestFolder::new();
        let recorded = options(&["-q", "-i", "calls", "-o", "p.clrs"]);
        let service = Service::start(over(&place, runtime, &recorded, "Server", &[]));
        let launcher = service.id();
        let program = child_of(launcher).expect("it serves until it is asked to end");
        signal("STOP", launcher);
        signal("TERM", program);
        wait_for_end(program);
        if let Some(wait_ms) = wait_ms {
            signal("CONT", launcher);
            testkit::pause(Duration::from_millis(wait_ms));
        }
        kill(launcher);
        let finished = service.wait();
        assert!(wait_ms.is_some() || finished.status.code().is_none(), "it was killed while it stood");
        let name = "Server.Program::Request";
        let truth = Expectations::parse(&finished.stdout_text()).calls(name);
        assert!(truth.is_some(), "{}", finished.stdout_text());
        assert_eq!(Some(calls(&place, OsStr::new("p.clrs"), name)), truth, "{wait_ms:?} ms: {:?}", names(&place));
    }
}

/// The program that a launcher runs, unless it has ended.
fn child_of(parent: u32) -> Option<u32> {
    let children = fs::read_to_string(format!("/proc/{parent}/task/{parent}/children")).unwrap_or_default();
    children.split_whitespace().next().and_then(|pid| pid.parse().ok())
}

/// Until it has ended, reaped or not.
fn wait_for_end(pid: u32) {
    let running = || {
        let status = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        status.rsplit(") ").next().is_some_and(|rest| !rest.is_empty() && !rest.starts_with('Z'))
    };
    wait_until("the end of the program", || !running());
}

fn kill(pid: u32) {
    signal("KILL", pid);
}

fn signal(name: &str, pid: u32) {
    // The process may just have ended by itself.
    let _ =
        Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).stderr(std::process::Stdio::null()).status();
}

#[test]
fn every_exit_code_and_every_deadly_signal_is_handed_on() {
    let place = TestFolder::new();
    let code = |script: &str| {
        let mut command = place.clrscope(["run", "-q", "--force", "-o", "e.clrs", "--", "sh", "-c", script]);
        command.output().expect("the tool starts").status.code()
    };
    for number in 0..=255 {
        assert_eq!(code(&format!("exit {number}")), Some(number));
    }
    // Signals that end a program: all but CHLD, CONT, STOP, TSTP, TTIN, TTOU, URG, WINCH and what
    // the C library keeps.
    let deadly = (1..=64).filter(|n| !matches!(n, 17..=23 | 28 | 32 | 33));
    for number in deadly {
        assert_eq!(code(&format!("ulimit -c 0; kill -{number} $$")), Some(128 + number), "signal {number}");
    }
}

#[test]
fn names_of_every_kind_are_taken_as_they_are() {
    const NAMES: [&str; 2] = ["it's  \"two\"\nlines-大きさ-Größe", "semi;colon,percent%20 $HOME `x` & | !"];
    each_runtime(|runtime| NAMES.into_iter().for_each(|name| taken_as_it_is(runtime, name)));
}

fn taken_as_it_is(runtime: &Runtime, name: &str) {
    let outer = TestFolder::new();
    let folder = outer.file(name);
    fs::create_dir(&folder).expect("a folder");
    for end in ["dll", "runtimeconfig.json"] {
        fs::copy(fixture("Echo").with_extension(end), folder.join(name).with_extension(end)).expect("a copy");
    }
    // The program, the recording and the agent's cache all lie there; with a backslash .NET finds
    // no program, bare or not.
    let library = folder.join(name).with_extension("dll");
    let recording = folder.join(format!("{name}\\.clrs"));
    let words = runtime.words(&library);
    let mut bare = Command::new(&words[0]);
    bare.args(&words[1..]).arg(name).current_dir(&folder);
    runtime.prepare(&mut bare);
    let mut all: Vec<OsString> = ["run", "-i", "calls", "-o"].map(OsString::from).to_vec();
    all.extend([recording.clone().into_os_string(), "--".into()]);
    all.extend(words.iter().cloned().chain([name.into()]));
    let mut with = outer.clrscope(all);
    runtime.prepare(&mut with);
    with.current_dir(&folder).env("XDG_CACHE_HOME", folder.join("cache\\"));
    let (bare, with) = (testkit::run(bare), testkit::run(with));
    assert_eq!(bare.code(), 1, "{name:?}");
    assert_eq!((with.stdout_text(), with.code()), (bare.stdout_text(), bare.code()), "{name:?}");
    let said = with.stderr_text();
    let ours = said.strip_prefix(&bare.stderr_text()).unwrap_or_else(|| panic!("{name:?}: {said}"));
    assert!(ours.trim_start().starts_with("cpu ") && ours.contains("\nclrscope: recorded "), "{name:?}: {said}");
    assert_eq!(calls(&outer, recording.as_os_str(), "Echo.Program::Grüße_世界"), 1, "{name:?}");
    // The command it proposes is one that a shell understands.
    let next = said.split("; next: clrscope ").nth(1).unwrap_or_else(|| panic!("{said}"));
    let mut shell = Command::new("bash");
    shell.args(["-c", &format!("\"$0\" {next}"), env!("CARGO_BIN_EXE_clrscope")]);
    testkit::run(shell).expect_success();
}

#[test]
fn switched_off_diagnostics_are_named_with_their_cure() {
    each_runtime(|runtime| {
        for variable in ["DOTNET_EnableDiagnostics", "DOTNET_EnableDiagnostics_Profiler"] {
            named_with_its_cure(runtime, variable);
        }
    });
}

fn named_with_its_cure(runtime: &Runtime, variable: &str) {
    let place = TestFolder::new();
    let mut command = over(&place, runtime, &options(&["-o", "d.clrs"]), "Hello", &[]);
    command.env(variable, "0");
    let finished = testkit::run(command).expect_success();
    assert_eq!(finished.stdout_text(), "Hello, World!\n");
    let said = finished.stderr_text();
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines.len(), 2, "{said}");
    assert!(lines[0].starts_with(&format!("clrscope: {variable}=0 disables every profiler")), "{said}");
    assert!(lines[1].contains("nothing was recorded, because") && lines[1].contains("unset it"), "{said}");
}

#[test]
fn what_comes_on_stdin_reaches_the_program() {
    let (place, runtime) = (TestFolder::new(), newest());
    let input = place.file("input");
    fs::write(&input, (0..=255).cycle().take(100_000).collect::<Vec<u8>>()).expect("a file");
    let mut command = over(&place, runtime, &options(&["-q", "-o", "i.clrs"]), "Echo", &["-"]);
    let output = command.stdin(fs::File::open(&input).expect("the file")).output().expect("the tool starts");
    assert_eq!((output.status.code(), output.stdout.len()), (Some(0), 100_000));
    assert!(fs::read(&input).is_ok_and(|bytes| bytes == output.stdout));
}

#[test]
fn two_launchers_at_once_do_not_disturb_each_other() {
    each_runtime(two_launchers_at_once);
}

fn two_launchers_at_once(runtime: &Runtime) {
    let place = TestFolder::new();
    let bare = testkit::run(runtime.command(&fixture("Recursion"))).expect_success();
    let started = |options: &[&OsStr]| {
        let command = over(&place, runtime, options, "Recursion", &[]);
        std::thread::spawn(move || testkit::run(command))
    };
    // Without names each finds one; of two that want the same name one is refused before its
    // program starts.
    let unnamed: Vec<_> = (0..2).map(|_| started(&options(&["-q", "-i", "calls"]))).collect();
    let named: Vec<_> = (0..2).map(|_| started(&options(&["-q", "-i", "calls", "-o", "same.clrs"]))).collect();
    let end = |one: std::thread::JoinHandle<Finished>| {
        let finished = one.join().expect("a run");
        if finished.code() == 0 {
            let said = (finished.stdout_text(), finished.stderr_text());
            assert_eq!(said, (bare.stdout_text(), bare.stderr_text()), "on {}", runtime.version);
        }
        finished.code()
    };
    let ends = |all: Vec<std::thread::JoinHandle<Finished>>| {
        let mut codes: Vec<i32> = all.into_iter().map(end).collect();
        codes.sort_unstable();
        codes
    };
    assert_eq!(ends(unnamed), [0, 0]);
    let codes = ends(named);
    assert!(codes == [0, 125] || codes == [0, 0], "{codes:?}");
    let names = names(&place);
    assert_eq!(names.len(), 3, "{names:?}");
    for name in names {
        assert_eq!(calls(&place, OsStr::new(&name), "Recursion.Program::Fib"), 242_785, "{name}");
    }
}

#[test]
fn a_folder_without_permission_is_refused_before_the_program_starts() {
    let place = TestFolder::new();
    let closed = place.file("closed");
    fs::create_dir(&closed).expect("a folder");
    fs::set_permissions(&closed, fs::Permissions::from_mode(0o555)).expect("its mode");
    for words in [&["run", "--", "touch", "../ran"][..], &["run", "-o", "x.clrs", "--", "touch", "../ran"]] {
        let mut command = place.clrscope(words);
        command.current_dir(&closed);
        let finished = testkit::run(without_powers(&command));
        assert_eq!(finished.code(), 125);
        let said = finished.stderr_text();
        assert_eq!(said.lines().count(), 3, "{said}");
        assert!(said.contains("why: permission denied\nhint: choose another place with -o\n"), "{said}");
    }
    assert!(!place.file("ran").exists(), "the program ran");
}

#[test]
fn a_recording_that_was_removed_is_one_failure_and_the_programs_exit_code() {
    let place = TestFolder::new();
    let output = place.clrscope(["run", "-o", "r.clrs", "--", "sh", "-c", "rm -r r.clrs.d; exit 9"]).output();
    let output = output.expect("the tool starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!((output.status.code(), said.lines().count()), (Some(9), 3), "{said}");
    assert!(said.contains("there is no such file or directory"), "{said}");
}

/// Records on a disk of 4 MiB that is as full at the end as `fill` makes it: there is no packed
/// file, and all else is kept.
fn assert_not_packed_beside(fill: &str) {
    let (place, runtime) = (TestFolder::new(), newest());
    let (disk, kept) = (place.file("disk"), place.file("kept"));
    for folder in [&disk, &kept] {
        fs::create_dir(folder).expect("a folder");
    }
    let words: Vec<String> = runtime.words(&fixture("Hello")).iter().map(|w| format!("'{}'", w.display())).collect();
    let script = format!("{}; {fill}; exit 7", words.join(" "));
    let mut command = place.clrscope(["run", "-i", "calls", "-o", "full.clrs", "--", "sh", "-c", &script]);
    runtime.prepare(&mut command);
    let Some(command) = with_small_disk(&command, &disk, "4m", &kept) else { return };
    let finished = testkit::run(command);
    assert_eq!((finished.code(), finished.stdout_text().as_str()), (7, "Hello, World!\n"));
    let said = finished.stderr_text();
    let why = "no space left on device but what is left free for others: 5 % of it, at most 2 GiB";
    assert!(said.contains(&format!("{why}\nhint: free some space, then: clrscope pack")), "{said}");
    let document = json(&place, &options(&["report", "kept/full.clrs", "--view", "functions"]));
    assert!(document["rows"].as_array().is_some_and(|rows| rows.len() > 100), "{said}");
}

#[test]
fn a_full_disk_keeps_the_directory_and_the_exit_code() {
    assert_not_packed_beside("cat /dev/zero > filler");
}

/// Only recording left that space alone; the packed file took it, to the last byte.
#[test]
fn packing_leaves_the_free_space_alone_that_recording_leaves() {
    assert_not_packed_beside("cat /dev/zero > filler; truncate -s -160K filler");
}
