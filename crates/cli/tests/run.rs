//! `run` and what belongs to it, on real .NET programs.

mod common;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};

use clrscope_testkit as testkit;
use common::TestFolder;
use serde_json::Value;
use testkit::{Expectations, Finished, Runtime};

/// The tool over `dotnet --fx-version VERSION fixture.dll`, with the runtime's environment.
fn over(place: &TestFolder, runtime: &Runtime, options: &[&str], fixture: &str, arguments: &[OsString]) -> Finished {
    let mut words: Vec<OsString> = ["run"].iter().chain(options).map(OsString::from).collect();
    words.push("--".into());
    words.extend(runtime.words(&testkit::fixture(fixture)));
    words.extend_from_slice(arguments);
    let mut command = place.clrscope(words);
    runtime.prepare(&mut command);
    testkit::run(command)
}

fn bare(place: &TestFolder, runtime: &Runtime, fixture: &str, arguments: &[OsString]) -> Finished {
    let mut command = runtime.command(&testkit::fixture(fixture));
    command.args(arguments).current_dir(place.path());
    testkit::run(command)
}

fn newest() -> &'static Runtime {
    testkit::runtimes().last().expect("a runtime")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Calls of a function, all its instantiations and processes together.
fn calls(document: &Value, name: &str) -> u64 {
    let rows = document["rows"].as_array().expect("rows");
    rows.iter().filter(|row| row["name"] == name).filter_map(|row| row["calls"].as_u64()).sum()
}

/// Command lines may have secrets, and recordings are passed on; what is made of one was open to
/// all users of the machine.
#[test]
fn command_lines_with_secrets_are_left_out_and_exports_are_as_private_as_the_recording() {
    let place = TestFolder::new();
    let secret = ["--password=hunter2".into()];
    let record = |options: &[&str]| over(&place, newest(), options, "Recursion", &secret).expect_success();
    let started = |file: &str| place.json(&format!("report {file}"))["recording"].to_string();
    record(&["-i", "calls", "-o", "with.clrs"]);
    // Of the recording, of its process, and among what the process is for other tools.
    assert_eq!(started("with.clrs").matches("hunter2").count(), 3, "{}", started("with.clrs"));
    record(&["-i", "calls", "--no-command-line", "-o", "without.clrs"]);
    let about = started("without.clrs");
    assert_eq!(about.matches("Recursion.dll\",\"[arguments left out]\"").count(), 2, "{about}");
    assert!(about.contains("Recursion.dll [arguments left out]\"") && !about.contains("hunter2"), "{about}");
    for (line, file) in [
        ("export without.clrs --to speedscope -o made.json", "made.json"),
        ("report without.clrs --format html -o made.html", "made.html"),
    ] {
        for (mode, made) in [(0o600, 0o600), (0o644, 0o644)] {
            fs::set_permissions(place.file("without.clrs"), fs::Permissions::from_mode(mode)).expect("a mode");
            let output = place.run(&format!("{line} --force"));
            assert!(output.status.success(), "{}", text(&output.stderr));
            let bytes = fs::read(place.file(file)).expect("the file");
            assert!(!text(&bytes).contains("hunter2"), "{line}");
            let about = fs::metadata(place.file(file)).expect("the file");
            assert_eq!(about.permissions().mode() & 0o777, made, "{line}");
        }
    }
}

#[test]
fn counts_are_exact_and_output_is_unchanged_on_every_runtime() {
    for runtime in testkit::runtimes() {
        let place = TestFolder::new();
        let alone = bare(&place, runtime, "Recursion", &[]).expect_success();
        let with = over(&place, runtime, &["-i", "calls", "-o", "r.clrs"], "Recursion", &[]).expect_success();
        assert_eq!(with.stdout_text(), alone.stdout_text(), "{runtime:?}");
        assert!(with.stderr_text().contains("next: clrscope report r.clrs"), "{}", with.stderr_text());
        let expected = Expectations::parse(&alone.stdout_text());
        let document = place.json("report r.clrs --view functions");
        let name = "Recursion.Program::Fib";
        assert_eq!(Some(calls(&document, name)), expected.calls(name), "{runtime:?}");
        assert_eq!(document["recording"]["complete"], true);
        assert_eq!(document["recording"]["processes"][0]["exit_code"], 0);
        let version = document["recording"]["processes"][0]["runtime"].as_str().expect("a runtime").to_owned();
        assert!(version.contains(&runtime.version.to_string()), "{version} is not {}", runtime.version);
        let mode = fs::metadata(place.file("r.clrs")).expect("the file").permissions().mode();
        assert_eq!(mode & 0o077, 0, "a recording is private");
        assert!(!place.file("r.clrs.d").exists(), "the directory is gone");
    }
}

#[test]
fn quiet_adds_nothing_to_what_the_program_writes() {
    testkit::each_runtime(|runtime| {
        let place = TestFolder::new();
        let alone = bare(&place, runtime, "Echo", &["a".into()]);
        let with = over(&place, runtime, &["-q", "-o", "r.clrs"], "Echo", &["a".into()]);
        assert_eq!((with.stdout_text(), with.stderr_text()), (alone.stdout_text(), alone.stderr_text()));
        assert_eq!(with.code(), alone.code(), "on {}", runtime.version);
    });
}

#[test]
fn arguments_of_every_kind_pass_through() {
    let odd: Vec<OsString> =
        ["", " two words ", "it's \"quoted\"", "line\nbreak", "--help", "-q", "--", "大きさ;x,%y", "$HOME"]
            .iter()
            .map(OsString::from)
            .chain([OsStr::from_bytes(b"not\xff\xfeutf8").to_owned()])
            .collect();
    testkit::each_runtime(|runtime| {
        let place = TestFolder::new();
        let alone = bare(&place, runtime, "Echo", &odd);
        let with = over(&place, runtime, &["-q", "--force", "-o", "r.clrs"], "Echo", &odd);
        assert_eq!(with.stdout_text(), alone.stdout_text(), "on {}", runtime.version);
        assert_eq!(with.stderr_text(), alone.stderr_text(), "on {}", runtime.version);
        assert_eq!(with.code(), alone.code(), "on {}", runtime.version);
    });
}

#[test]
fn exit_codes_and_ends_are_the_programs() {
    testkit::each_runtime(exit_codes_and_ends);
}

fn exit_codes_and_ends(runtime: &Runtime) {
    let place = TestFolder::new();
    let ways: [&[&str]; 9] = [
        &["return", "0"],
        &["return", "126"],
        &["exit", "255"],
        &["_exit", "7"],
        &["signal", "9"],
        &["signal", "15"],
        &["failfast"],
        &["unhandled"],
        &["stackoverflow"],
    ];
    for way in ways {
        let arguments: Vec<OsString> = way.iter().map(OsString::from).collect();
        let alone = bare(&place, runtime, "Ends", &arguments);
        let with = over(&place, runtime, &["-q", "-i", "calls", "--force", "-o", "e.clrs"], "Ends", &arguments);
        let on = format!("{way:?} on {}", runtime.version);
        assert_eq!((with.code(), with.stdout_text()), (alone.code(), alone.stdout_text()), "{on}");
        // With a stack trace comes what the agent's tests compare.
        if alone.stderr.is_empty() {
            assert_eq!(with.stderr_text(), "", "{on}");
        }
        let document = place.json("report e.clrs --view functions");
        assert_eq!(calls(&document, "Ends.Program::Work"), 1000, "{on}");
        let head = String::from_utf8_lossy(&place.run("report e.clrs --verbose").stdout).into_owned();
        assert_eq!(head.contains("apparently a stack overflow"), way[0] == "stackoverflow", "{on}:\n{head}");
        assert_eq!(head.contains("used up its stack"), way[0] == "stackoverflow", "{on}:\n{head}");
    }
}

#[test]
fn a_library_alone_is_started_with_dotnet_and_names_its_recording() {
    let (place, runtime) = (TestFolder::new(), newest());
    let library = testkit::fixture("Hello");
    for _ in 0..2 {
        let mut command = place.clrscope([OsStr::new("run"), library.as_os_str()]);
        runtime.prepare(&mut command);
        let finished = testkit::run(command).expect_success();
        assert_eq!(finished.stdout_text(), "Hello, World!\n");
    }
    let mut names: Vec<String> = fs::read_dir(place.path())
        .expect("the folder")
        .flatten()
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    assert_eq!(names.len(), 2, "{names:?}");
    assert!(names.iter().all(|n| n.starts_with("Hello-20") && n.ends_with(".clrs")), "{names:?}");
}

#[test]
fn two_runs_in_the_same_second_get_two_names() {
    let (place, runtime) = (TestFolder::new(), newest());
    let tool = env!("CARGO_BIN_EXE_clrscope");
    let script = format!(
        "for i in 1 2 3 4; do {tool} run -q -- \"$@\" > said-$i & done; wait; ls *.clrs | wc -l; ls -d *.clrs.d 2>/dev/null"
    );
    let mut shell = Command::new("bash");
    shell.args(["-c", &script, "bash"]).args(runtime.words(&testkit::fixture("Hello"))).current_dir(place.path());
    runtime.prepare(&mut shell);
    assert_eq!(text(&shell.output().expect("a shell").stdout).trim(), "4");
}

#[test]
fn a_program_without_dotnet_is_one_clear_line() {
    let place = TestFolder::new();
    let output = place.run("run -o n.clrs -- sh -c true");
    assert_eq!(output.status.code(), Some(0));
    let lines = text(&output.stderr);
    assert_eq!(lines.lines().count(), 1, "{lines}");
    assert!(lines.contains("started no .NET runtime") && lines.contains("'clrscope doctor'"), "{lines}");
    assert!(!place.file("n.clrs").exists() && !place.file("n.clrs.d").exists(), "nothing is left");
    // A file that --force would have overwritten stays, and --quiet does not silence the line.
    std::fs::write(place.file("n.clrs"), "kept").expect("a file");
    let quiet = place.run("run -q --force -o n.clrs -- sh -c true");
    assert_eq!(text(&quiet.stderr), lines);
    assert_eq!(std::fs::read_to_string(place.file("n.clrs")).expect("the file"), "kept");
    let mut command = place.clrscope(["run", "--force", "-o", "n.clrs", "--", "true"]);
    let output = command.env("DOTNET_EnableDiagnostics", "0").output().expect("the tool starts");
    assert!(text(&output.stderr).contains("DOTNET_EnableDiagnostics=0 disables every profiler"));
}

#[test]
fn a_file_size_limit_is_a_failure_and_not_our_end() {
    let place = TestFolder::new();
    let script = format!("ulimit -f 64; exec {} run -o s.clrs -- true", env!("CARGO_BIN_EXE_clrscope"));
    // The first has to put the agent into its cache, too; the second finds it there.
    for cache in [place.file("empty"), place.file("filled")] {
        if cache.ends_with("filled") {
            assert!(place.clrscope(["env"]).env("XDG_CACHE_HOME", &cache).output().expect("the tool").status.success());
        }
        let mut shell = Command::new("bash");
        shell.args(["-c", &script]).current_dir(place.path()).env("XDG_CACHE_HOME", &cache);
        let output = shell.env("TMPDIR", place.path()).output().expect("a shell");
        assert_eq!(output.status.code(), Some(125), "{output:?}");
        assert!(text(&output.stderr).contains("why: file too large"), "{}", text(&output.stderr));
    }
}

#[test]
fn an_agents_log_is_kept_beside_the_recording() {
    let (place, runtime) = (TestFolder::new(), newest());
    let words: Vec<OsString> = ["run", "-q", "-o", "l.clrs", "--"].map(OsString::from).to_vec();
    let mut command = place.clrscope(words.into_iter().chain(runtime.words(&testkit::fixture("Hello"))));
    runtime.prepare(&mut command);
    command.env("CLRSCOPE_LOG", "info");
    let said = testkit::run(command).expect_success().stderr_text();
    let name = said.trim().strip_prefix("clrscope: log of an agent: ").expect("one line that names it");
    assert!(name.starts_with("l.clrs.agent-") && name.ends_with(".log"), "{said}");
    let log = fs::read_to_string(place.file(name)).expect("the log");
    assert!(log.contains("instruments: cpu:") && log.contains("Shutdown"), "{log}");
    assert!(place.file("l.clrs").exists() && !place.file("l.clrs.d").exists());
}

#[test]
fn an_agent_that_steps_aside_says_why_through_the_launcher() {
    let (place, runtime) = (TestFolder::new(), newest());
    // Enough for the launcher's log, too little for the agent's tree.
    let words: Vec<String> =
        runtime.words(&testkit::fixture("Hello")).iter().map(|w| format!("'{}'", w.to_string_lossy())).collect();
    let tool = env!("CARGO_BIN_EXE_clrscope");
    let script = format!("ulimit -f 2000; exec {tool} run -i calls -o s.clrs -- {}", words.join(" "));
    let mut shell = Command::new("bash");
    shell.args(["-c", &script]).current_dir(place.path());
    runtime.prepare(&mut shell);
    // The runtime itself needs large files for this.
    shell.env("DOTNET_EnableWriteXorExecute", "0");
    let finished = testkit::run(shell).expect_success();
    assert_eq!(finished.stdout_text(), "Hello, World!\n");
    let said = finished.stderr_text();
    assert!(said.starts_with("clrscope: nothing was recorded, the agent in process "), "{said}");
    assert!(said.contains(" disabled itself: ") && said.trim_end().ends_with("File too large"), "{said}");
    assert_eq!(said.lines().count(), 1, "{said}");
}

#[test]
fn another_profiler_in_the_environment_is_one_line_and_we_record() {
    testkit::each_runtime(with_another_profiler);
}

fn with_another_profiler(runtime: &Runtime) {
    let place = TestFolder::new();
    let mut words: Vec<OsString> = ["run", "-o", "p.clrs", "--"].iter().map(OsString::from).collect();
    words.extend(runtime.words(&testkit::fixture("Hello")));
    let mut command = place.clrscope(words);
    runtime.prepare(&mut command);
    command.env("CORECLR_ENABLE_PROFILING", "1").env("CORECLR_PROFILER", "{00000000-0000-0000-0000-000000000001}");
    command.env("CORECLR_PROFILER_PATH_64", "/opt/other/profiler.so");
    let finished = testkit::run(command).expect_success();
    assert_eq!(finished.stdout_text(), "Hello, World!\n", "on {}", runtime.version);
    let said = finished.stderr_text();
    assert!(said.starts_with("clrscope: '/opt/other/profiler.so' keeps the runtime's main slot; "), "{said}");
    assert_eq!(place.json("report p.clrs")["recording"]["processes"].as_array().map(Vec::len), Some(1));
}

#[test]
fn the_variables_alone_record_too() {
    let (place, runtime) = (TestFolder::new(), newest());
    let printed = place.run("env --shell -i calls:clock=tsc -o by.clrs.d");
    assert!(printed.status.success(), "{}", text(&printed.stderr));
    let words: Vec<String> = runtime
        .words(&testkit::fixture("Recursion"))
        .iter()
        .map(|word| format!("'{}'", word.to_string_lossy()))
        .collect();
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("{}\nexec {}", text(&printed.stdout), words.join(" "))]).current_dir(place.path());
    runtime.prepare(&mut shell);
    let finished = testkit::run(shell).expect_success();
    let expected = Expectations::parse(&finished.stdout_text());
    let document = place.json("report by.clrs --view functions");
    assert_eq!(Some(calls(&document, "Recursion.Program::Fib")), expected.calls("Recursion.Program::Fib"));
    assert!(document["recording"]["instruments"]["filled"].as_str().expect("a text").contains("clock=tsc"));
    assert_eq!(document["recording"]["complete"], true, "the agent saw the end");
    let packed = place.run("pack by.clrs.d");
    assert_eq!(text(&packed.stdout), "by.clrs\n", "{}", text(&packed.stderr));
    assert_eq!(place.json("report by.clrs --view functions")["rows"], document["rows"]);
    assert_eq!(place.run("pack by.clrs.d").status.code(), Some(1), "never over a file that is there");
    assert!(place.run("pack by.clrs.d --force").status.success());
}

#[test]
fn what_a_killed_launcher_leaves_can_be_read_and_packed() {
    let (place, runtime) = (TestFolder::new(), newest());
    let start = ["run", "-q", "-i", "calls", "-o", "k.clrs", "--", "sh", "-c"];
    let mut words: Vec<OsString> = start.iter().map(OsString::from).collect();
    let program: Vec<String> =
        runtime.words(&testkit::fixture("Hello")).iter().map(|w| format!("'{}'", w.to_string_lossy())).collect();
    words.push(format!("{}; kill -KILL $PPID", program.join(" ")).into());
    let mut command = place.clrscope(words);
    runtime.prepare(&mut command);
    let output: Output = command.output().expect("the tool starts");
    assert_eq!(output.status.code(), None, "the launcher was killed");
    let document = place.json("report k.clrs --view functions");
    assert_eq!(document["recording"]["complete"], false);
    assert!(!document["rows"].as_array().expect("rows").is_empty());
    assert!(place.run("pack k.clrs.d").status.success());
}

/// Modules with calls, framework or not.
fn called_modules(document: &Value) -> Vec<String> {
    let rows = document["rows"].as_array().expect("rows").iter();
    let called = rows.filter(|row| row["calls"].as_u64() > Some(0) && row["module"] != "");
    called.filter_map(|row| row["module"].as_str().map(str::to_owned)).collect()
}

#[test]
fn filters_leave_out_what_they_say() {
    let (place, runtime) = (TestFolder::new(), newest());
    let modules = |options: &[&str]| {
        let options = [&["-q", "-i", "calls", "--force", "-o", "f.clrs"], options].concat();
        over(&place, runtime, &options, "Recursion", &[]).expect_success();
        called_modules(&place.json("report f.clrs --view modules"))
    };
    assert!(modules(&[]).len() > 1);
    assert_eq!(modules(&["--just-my-code"]), ["Recursion"]);
    assert_eq!(modules(&["--include", "[Recursion]*"]), ["Recursion"]);
    let none = modules(&["--include", "[Recursion]*", "--exclude", "*::Fib"]);
    assert_eq!(none, ["Recursion"]);
    let document = place.json("report f.clrs --view functions");
    assert_eq!(calls(&document, "Recursion.Program::Fib"), 0);
    assert!(calls(&document, "Recursion.Program::Main") > 0);
}

#[test]
fn a_duration_ends_the_recording_and_not_the_program() {
    let (place, runtime) = (TestFolder::new(), newest());
    let alone = bare(&place, runtime, "Times", &[]).expect_success();
    let with = over(&place, runtime, &["-q", "--duration", "100ms", "-o", "d.clrs"], "Times", &[]).expect_success();
    assert_eq!(with.stdout_text().lines().count(), alone.stdout_text().lines().count());
    let document = place.json("report d.clrs --view losses");
    let rows = document["rows"].as_array().expect("rows");
    assert!(rows.iter().any(|row| row["reason"] == "stopped"), "{document:#}");
}

#[test]
fn children_are_further_processes_unless_they_are_not_wanted() {
    testkit::each_runtime(children_are_further_processes);
}

fn children_are_further_processes(runtime: &Runtime) {
    let place = TestFolder::new();
    let alone = bare(&place, runtime, "Processes", &["start".into()]).expect_success();
    let processes = |options: &[&str]| {
        let options = [&["-q", "-i", "calls", "--force", "-o", "c.clrs"], options].concat();
        let with = over(&place, runtime, &options, "Processes", &["start".into()]);
        assert_eq!((with.stdout_text(), with.stderr_text()), (alone.stdout_text(), alone.stderr_text()));
        assert_eq!(with.status, alone.status, "on {}", runtime.version);
        place.json("report c.clrs")["recording"]["processes"].as_array().expect("processes").len()
    };
    assert_eq!(processes(&[]), 3, "the program and the two it starts");
    let children = place.json("report c.clrs --view functions --process *child*");
    assert!(calls(&children, "Processes.Program::Main") == 2, "{children:#}");
    assert_eq!(processes(&["--no-children"]), 1);
}

#[test]
fn the_demo_prints_its_report_on_stdout_and_keeps_a_recording_when_asked() {
    let place = TestFolder::new();
    let output = place.run("demo -o demo.clrs");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let report = text(&output.stdout);
    assert!(report.starts_with("'dotnet Demo.dll': ") && report.contains("What stands out"), "{report}");
    assert!(place.file("demo.clrs").is_file());
}

#[test]
fn the_doctor_tries_every_runtime() {
    let (place, runtime) = (TestFolder::new(), newest());
    let mut command = place.clrscope(["doctor", "--json"]);
    runtime.prepare(&mut command);
    let output = command.output().expect("the tool starts");
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(document["schema"], "clrscope.doctor/1");
    assert_eq!(document["ok"], true, "{document:#}");
    let rows = document["rows"].as_array().expect("rows");
    let version = runtime.version.to_string();
    let tried = rows.iter().find(|r| r["name"] == ".NET" && r["found"].as_str().is_some_and(|f| f.contains(&version)));
    assert!(tried.is_some_and(|r| r["status"] == "ok"), "{document:#}");
    assert!(rows.iter().all(|r| r["status"] == "ok" || r["cure"].is_string()), "each failure has its cure");
}

#[test]
fn a_recording_stops_at_its_greatest_size_and_says_so() {
    let (place, runtime) = (TestFolder::new(), newest());
    let arguments = [OsString::from("22")];
    let alone = bare(&place, runtime, "Paths", &arguments).expect_success();
    // Eight million calls are twice as many events of 16 bytes, and more than twice the size.
    let options = ["-i", "flow:all", "--max-size", "64MiB", "-o", "r.clrs"];
    let with = over(&place, runtime, &options, "Paths", &arguments).expect_success();
    assert_eq!(with.stdout_text(), alone.stdout_text());
    let said = with.stderr_text();
    assert!(said.contains("the recording reached its maximum size (--max-size) and stopped"), "{said}");
    let losses = place.json("report r.clrs --view losses");
    let rows = losses["rows"].as_array().expect("rows");
    assert!(rows.iter().any(|row| row["reason"] == "size_limit" && row["count"] == 1), "{losses}");
    let plain = fs::metadata(place.file("r.clrs")).expect("packed").len();
    assert!(plain < 64 << 20, "{plain} bytes");
    let text = place.run("report r.clrs --view losses");
    assert!(String::from_utf8_lossy(&text.stdout).contains("maximum size (--max-size)"), "{text:?}");
}

#[test]
fn little_address_space_is_told_before_the_program_starts() {
    let place = TestFolder::new();
    let script = "ulimit -v 60000000; exec \"$0\" \"$@\"";
    let words = [env!("CARGO_BIN_EXE_clrscope"), "run", "--", "true"];
    let mut shell = Command::new("bash");
    shell.args(["-c", script]).args(words).current_dir(place.path());
    let said = testkit::run(shell).stderr_text();
    assert!(said.contains("of address space: .NET and the agent reserve much more"), "{said}");
}

/// A method that calls itself last is made a loop: 2 calls were shown for 6,000,002, and nothing
/// said that there were more.
#[test]
fn methods_that_call_themselves_last_have_at_least_so_many_calls() {
    testkit::each_runtime(|runtime| {
        let place = TestFolder::new();
        let ended = over(&place, runtime, &["-q", "-i", "calls:noinline", "-o", "a.clrs"], "TailCalls", &[]);
        assert!(ended.status.success(), "{}", ended.stderr_text());
        let report = place.json("report a.clrs --view functions");
        let rows = report["rows"].as_array().expect("rows");
        let marked = |name: &str| {
            let row = rows.iter().find(|row| row["name"] == name).unwrap_or_else(|| panic!("{name} in {report:#}"));
            (row["calls"].as_u64(), row["tail_recursive"].as_bool().unwrap_or_default())
        };
        for name in ["TailCalls.Program::Loop", "TailCalls.Program::Again", "TailCalls.Turn::Again"] {
            assert_eq!(marked(name), (Some(1_000), true), "{name} on {}", runtime.version);
        }
        // Tail calls of others are calls.
        for name in ["TailCalls.Program::Near", "TailCalls.Program::Last", "TailCalls.Ping::Play"] {
            assert!(!marked(name).1, "{name} on {}", runtime.version);
        }
        let said = place.run("report a.clrs --view functions --function *::Loop");
        let said = text(&said.stdout);
        assert!(said.contains("\u{2265}1,000") && said.contains("recursive tail calls"), "{said}");
    });
}

/// The runtime was asked for the instantiation that a token is, and answered for tokens that are
/// none, in assemblies without generic methods: there the mark was missing.
#[test]
fn a_method_that_calls_itself_last_is_marked_where_nothing_is_generic() {
    let Some(sdk) = testkit::Sdk::find() else { return testkit::not_run("no .NET SDK is at hand") };
    let place = TestFolder::new();
    let source = "class P { static int Loop(int n) { if (n == 0) return 7; return Loop(n - 1); } static int Main() => Loop(9); }";
    fs::write(place.file("Plain.cs"), source).expect("a file");
    let mut compiler = sdk.compiler_to(&place.file("Plain.dll"));
    compiler.args(["-optimize+", "-target:exe"]).arg(place.file("Plain.cs"));
    testkit::run(compiler).expect_success();
    let config = testkit::fixture("TailCalls").with_extension("runtimeconfig.json");
    fs::copy(config, place.file("Plain.runtimeconfig.json")).expect("a copy");
    let runtime = newest();
    let mut command = place.clrscope(["run", "-q", "-i", "calls", "-o", "a.clrs", "--"]);
    command.args(runtime.words(&place.file("Plain.dll"))).env("DOTNET_TieredCompilation", "0");
    runtime.prepare(&mut command);
    assert_eq!(testkit::run(command).code(), 7);
    let report = place.json("report a.clrs --view functions --function P::Loop");
    let row = &report["rows"][0];
    assert_eq!((row["calls"].as_u64(), row["tail_recursive"].as_bool()), (Some(1), Some(true)), "{report:#}");
}

#[test]
fn inlined_exact_names_methods_and_is_refused_where_it_does_nothing() {
    let place = TestFolder::new();
    testkit::each_runtime(|runtime| {
        let file = format!("{}.clrs", runtime.version);
        let mut command = place.clrscope(["run", "-q", "--inlined=exact", "-o", file.as_str(), "--"]);
        command.args(runtime.words(&testkit::fixture("Inlinees"))).arg("40");
        runtime.prepare(&mut command);
        // The loop of `Main`, which is on each stack, is compiled for good in its first rounds.
        command.envs([("DOTNET_OSR_HitLimit", "1"), ("DOTNET_TC_OnStackReplacement_InitialCounter", "5")]);
        testkit::run(command).expect_success();
        let report = place.json(&format!("report {file} --view conditions"));
        let row = report["rows"].as_array().and_then(|rows| rows.iter().find(|row| row["condition"] == "inlined"));
        let samples =
            |name: &str| row.and_then(|row| row[name].as_u64()).unwrap_or_else(|| panic!("{name}: {report:#}"));
        let [named, none, unknown] =
            ["samples_inlined", "samples_not_inlined", "samples_inlining_unknown"].map(samples);
        assert!(named + none > 4 * unknown, "{}: {named} {none} {unknown}", runtime.version);
    });
    let variables = place.run("env --json --inlined=exact");
    let variables: Value = serde_json::from_slice(&variables.stdout).expect("JSON");
    assert_eq!(variables["DOTNET_RichDebugInfo"], "1", "{variables:#}");
    let plain: Value = serde_json::from_slice(&place.run("env --json").stdout).expect("JSON");
    assert!(plain.get("DOTNET_RichDebugInfo").is_none(), "{plain:#}");
    for (line, reason) in [
        ("run --inlined=exact -i calls -- true", "inlined=exact needs an instrument that records stacks"),
        ("run --inlined=guessed -- true", "'guessed'"),
        ("attach 1 --inlined=exact", "only if its environment asked for it at the start"),
    ] {
        let refused = place.run(line);
        let said = text(&refused.stderr);
        let code = refused.status.code();
        assert!(matches!(code, Some(2 | 125)) && said.contains(reason), "{line}: {code:?}, {said}");
    }
}

/// The runtime's events about compilations are many while the agent listens to them: what the
/// program hears of its own stays.
#[test]
fn with_inlined_exact_listeners_of_the_program_hear_what_they_hear_without() {
    testkit::each_runtime(|runtime| {
        let place = TestFolder::new();
        let heard = |command: Command| {
            let mut service = testkit::Service::start(command);
            let rounds: Vec<Vec<u32>> = (0..6)
                .map(|_| service.line().split_whitespace().map(|word| word.parse().expect("a number")).collect())
                .collect();
            service.stop("TERM");
            // The first has what the start of the program did.
            [0, 1, 2, 3].map(|kind| rounds[1..].iter().map(|round| round[kind]).sum::<u32>())
        };
        let bare = heard(runtime.command(&testkit::fixture("Listening")));
        let mut command = place.clrscope(["run", "-q", "--inlined=exact", "-o", "a.clrs", "--"]);
        command.args(runtime.words(&testkit::fixture("Listening")));
        runtime.prepare(&mut command);
        let with = heard(command);
        let case = format!("{}: {bare:?}, with the agent {with:?}", runtime.version);
        assert!((0..4).all(|kind| bare[kind] > 0 && with[kind] > 0), "{case}");
        // Those of a round may come after it.
        assert!(with[2].abs_diff(bare[2]) <= bare[2] / 5, "{case}");
    });
}

/// The flag is the instrument's option, where the instrument is recorded.
#[test]
fn whole_addresses_are_asked_for_where_requests_are_recorded() {
    let place = TestFolder::new();
    let said = |words: &str| {
        let output = place.run(words);
        let texts = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned());
        (output.status.success(), texts.concat())
    };
    let (is_well, text) = said("env -i requests --urls full");
    assert!(is_well && text.contains("requests:urls=full"), "{text}");
    let (is_well, text) = said("env -i requests:urls=full --urls full");
    assert!(is_well && text.matches("urls").count() == 1, "{text}");
    for words in ["run --urls full -- true", "env --urls full", "attach 1 -i cpu --urls full"] {
        let (is_well, text) = said(words);
        assert!(!is_well && text.contains("the instrument requests is not recorded"), "{text}");
        assert!(text.contains("hint: record it with -i requests"), "{text}");
    }
}
