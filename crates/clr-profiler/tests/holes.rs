//! Holes through which safe code crashed its program, each closed: the example profiler `holes`,
//! which forbids `unsafe`, asks for all of it on every runtime at hand, gets sentences, and the
//! program ends well. As a debug build and as a release build: profilers are released.

mod common;

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use clr_diagnostics::{AttachProfiler, Process};
use clrscope_testkit as testkit;

const CLASS: &str = "{6F0E8E6B-2C8E-4B6B-9A55-5D1E3B1F7C11}";

/// Lines that the profiler wrote, as `(what, answer)`.
fn lines(output: &Path) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(output).expect("the profiler writes");
    let split = |line: &str| line.split_once(": ").map(|(what, said)| (what.to_owned(), said.to_owned()));
    text.lines().filter_map(split).collect()
}

/// Checks the profiler as a debug build and as a release build, each on every runtime.
fn each_build(check: impl Fn(&Path, &testkit::Runtime) + Sync) {
    let builds: [PathBuf; 2] = [common::profiler("holes"), testkit::framework_example("holes")];
    testkit::each_runtime(|runtime| builds.iter().for_each(|library| check(library, runtime)));
}

/// Runs a fixture under the profiler to its good end, and gives what that wrote.
fn run(library: &Path, runtime: &testkit::Runtime, fixture: &str, arguments: &[&str]) -> Vec<(String, String)> {
    let folder = testkit::scratch();
    let output = folder.path().join("answers");
    let mut command = common::profiled(runtime, fixture, library, CLASS);
    command.args(arguments).env("HOLES_OUTPUT", &output);
    testkit::run(command).expect_success();
    lines(&output)
}

fn answers<'l>(lines: &'l [(String, String)], what: &str) -> Vec<&'l str> {
    lines.iter().filter(|line| line.0 == what).map(|line| line.1.as_str()).collect()
}

/// Fails unless all answers to these queries, and at least one to each, say that the module is
/// gone.
fn expect_gone(lines: &[(String, String)], queries: &[&str], runtime: &testkit::Runtime) {
    for query in queries {
        let said = answers(lines, query);
        let is_gone = |said: &&str| *said == "CORPROF_E_DATAINCOMPLETE the module was unloaded";
        assert!(!said.is_empty() && said.iter().all(is_gone), "{query} on {}: {said:?}", runtime.version);
    }
}

#[test]
fn metadata_modules_and_il_after_unload_are_refused() {
    each_build(|library, runtime| {
        let lines = run(library, runtime, "Loading", &["contexts"]);
        assert!(answers(&lines, "alive").contains(&"true"), "on .NET {}: {lines:?}", runtime.version);
        assert!(answers(&lines, "assembly alive").contains(&"true"), "on .NET {}: {lines:?}", runtime.version);
        expect_gone(
            &lines,
            &["module", "assembly", "metadata", "name", "metadata again", "IL", "type", "compile again"],
            runtime,
        );
        assert!(answers(&lines, "contains").iter().all(|said| *said == "false"), "{lines:?}");
        assert_eq!(answers(&lines, "dropped").len(), answers(&lines, "alive").len(), "{lines:?}");
    });
}

#[test]
fn classes_and_functions_after_unload_are_refused() {
    each_build(|library, runtime| {
        let lines = run(library, runtime, "Loading", &["contexts"]);
        expect_gone(&lines, &["function", "code", "code by start", "IL map by start", "class", "layout"], runtime);
    });
}

#[test]
fn objects_do_not_move_in_their_callback_and_handles_open_nowhere_else() {
    each_build(|library, runtime| {
        let lines = run(library, runtime, "Throws", &["2000"]);
        let refused = |what: &str, part: &str| {
            let said = answers(&lines, what);
            let is_refused =
                |said: &&str| said.starts_with("CORPROF_E_UNSUPPORTED_CALL_SEQUENCE") && said.contains(part);
            assert!(said.len() == 1 && said.iter().all(is_refused), "{what} on {}: {said:?}", runtime.version);
        };
        refused("suspension where an object is lent", "lends objects");
        refused("handle on an own thread", "may move the object");
        assert_eq!(answers(&lines, "handle in the callback"), ["true"], "on .NET {}", runtime.version);
        assert_eq!(answers(&lines, "moved"), [""; 0], "on .NET {}", runtime.version);
        assert_eq!(answers(&lines, "exceptions"), ["2000"], "on .NET {}", runtime.version);
    });
}

#[test]
fn identifiers_and_tokens_that_name_nothing_are_refused() {
    each_build(|library, runtime| {
        let folder = testkit::scratch();
        let output = folder.path().join("answers");
        let mut command = common::profiled(runtime, "Hello", library, CLASS);
        command.env("HOLES_OUTPUT", &output).env("HOLES_NULLS", "1");
        testkit::run(command).expect_success();
        let lines = lines(&output);
        assert_eq!(answers(&lines, "null end").len(), 1, "on .NET {}: {lines:?}", runtime.version);
        let of_nothing = lines.iter().filter(|(query, _)| query.starts_with("null ") && !query.contains("token "));
        let answered: Vec<&str> =
            of_nothing.filter(|(_, said)| said == "ANSWERED").map(|(query, _)| query.as_str()).collect();
        // The runtime takes null for the calling thread, and has nothing to stop where there is no
        // session.
        let harmless = ["null thread_app_domain", "null event_pipe_stop_session"];
        assert_eq!(answered, harmless, "on .NET {}", runtime.version);
        assert_eq!(answers(&lines, "null token method").len(), 24, "on .NET {}", runtime.version);
    });
}

#[test]
fn queries_after_detach_are_refused_and_the_program_runs_on() {
    each_build(|library, runtime| {
        let folder = testkit::scratch();
        let output = folder.path().join("answers");
        let mut command = runtime.command(&testkit::fixture("Counter"));
        command.args(["-", "10"]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut program = command.spawn().expect("the program starts");
        let mut input = program.stdin.take().expect("a pipe");
        let mut counts = BufReader::new(program.stdout.take().expect("a pipe"));
        let mut next = || {
            writeln!(input, "gc").expect("it reads");
            let mut line = String::new();
            counts.read_line(&mut line).expect("it writes");
            line
        };
        assert_eq!(next(), "count 10\n");
        let class = CLASS.parse().expect("a class");
        let profiler = AttachProfiler::new(class, library.to_str().expect("a path"))
            .with_client_data(output.to_str().expect("a path").as_bytes());
        let port = Process::open(program.id()).expect("it runs").port().expect("its port");
        let attached = port.attach_profiler(&profiler);
        assert!(attached.is_ok(), "on .NET {}: {attached:?}", runtime.version);
        let is_over = || std::fs::read_to_string(&output).is_ok_and(|text| text.contains("\nend: "));
        testkit::wait_until("the last question", is_over);
        assert_eq!(next(), "count 20\n", "the program runs on .NET {}", runtime.version);
        drop(input);
        assert!(program.wait().expect("it ends").success(), "on .NET {}", runtime.version);
        let lines = lines(&output);
        assert_eq!(answers(&lines, "detach"), ["true"]);
        for what in ["modules", "threads", "events", "suspension", "detach again"] {
            let said = answers(&lines, what);
            let is_refused = |said: &&str| said.starts_with("CORPROF_E_PROFILER_DETACHING the profiler was detached");
            assert!(said.len() == 20 && said.iter().all(is_refused), "{what} on {}: {said:?}", runtime.version);
        }
    });
}

/// Sources below a folder.
fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).expect("a folder").flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
}

/// Refusals that the tests of this crate show of debug builds, those of the fake runtime too, hold
/// for release builds: the profile decides about queries in hooks and nothing else.
#[test]
fn refusals_do_not_depend_on_the_profile_except_in_hooks() {
    let found: Vec<String> = sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"))
        .iter()
        .flat_map(|path| {
            let source = std::fs::read_to_string(path).expect("a source");
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let code = source.lines().map(str::trim).filter(|line| !line.starts_with("//"));
            let depends = code.filter(|line| line.contains("debug_assert"));
            depends.map(|line| format!("{name}: {line}")).collect::<Vec<_>>()
        })
        .collect();
    let in_hooks = "call_context.rs: if cfg!(debug_assertions) { during(CallContext::Hook, body) } else { body() }";
    assert_eq!(found, [in_hooks]);
}
