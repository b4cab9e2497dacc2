//! The log nests right and has what the program did, on every runtime at hand.

use std::collections::{BTreeMap, BTreeSet};

use clrscope_testkit as testkit;
use testkit::Runtime;

const SEARCH: &str = "exception_search_function_enter";

/// Pairs of callbacks: a line that opens a level and the line that closes it.
const PAIRS: [(&str, &str); 6] = [
    ("assembly_load_started", "assembly_load_finished"),
    ("module_load_started", "module_load_finished"),
    ("class_load_started", "class_load_finished"),
    ("jit_compilation_started", "jit_compilation_finished"),
    (SEARCH, "exception_search_function_leave"),
    ("exception_search_filter_enter", "exception_search_filter_leave"),
];

/// The lines without thread and indentation; fails where a pair's lines don't stand at the same
/// level.
fn lines(text: &str) -> Vec<&str> {
    let mut open = BTreeMap::<&str, Vec<(&str, usize)>>::new();
    let mut lines = Vec::new();
    for line in text.lines() {
        let (thread, rest) = line.split_once('\t').expect("a thread, a tab, text");
        let text = rest.trim_start();
        let level = (rest.len() - text.len()) / 2;
        let what = text.split(' ').next().unwrap_or_default();
        let open = open.entry(thread).or_default();
        if PAIRS.iter().any(|(begin, _)| *begin == what) {
            open.push((what, level));
        } else if let Some((begin, _)) = PAIRS.iter().find(|(_, end)| *end == what) {
            // An exception that escapes a filter ends the search without saying so of the function
            // it had come to.
            while what == "exception_search_filter_leave" && open.last().is_some_and(|(what, _)| *what == SEARCH) {
                open.pop();
            }
            assert_eq!(open.pop(), Some((*begin, level)), "{line}");
        }
        lines.push(text);
    }
    assert!(open.values().all(Vec::is_empty), "never closed: {open:?}");
    lines
}

const CLSID: &str = "{A7F3D1C2-0E5B-4D29-9C3E-6B8F2A1D5E54}";

/// Runs a fixture bare and under the log; what the program said, and the log.
fn logged(runtime: &Runtime, fixture: &str, events: Option<&str>) -> (String, String) {
    let fixture = testkit::fixture(fixture);
    let bare = testkit::run(runtime.command(&fixture)).expect_success();
    let folder = testkit::scratch();
    let output = folder.path().join("log.txt");
    let mut command = runtime.command(&fixture);
    testkit::load_profiler(&mut command, &testkit::example("logging"), CLSID);
    command.env("LOGGING_PROFILER_OUTPUT", &output).envs(events.map(|events| ("LOGGING_PROFILER_EVENTS", events)));
    let profiled = testkit::run(command).expect_success();
    assert_eq!((profiled.stdout, profiled.stderr), (bare.stdout.clone(), bare.stderr.clone()));
    (bare.stdout_text(), std::fs::read_to_string(&output).expect("the profiler wrote"))
}

#[test]
fn callbacks_are_logged_in_their_nesting() {
    testkit::each_runtime(|runtime| {
        let (said, text) = logged(runtime, "Exceptions", None);
        let lines = lines(&text);
        let count = |what: &str| lines.iter().filter(|line| line.starts_with(what)).count() as u64;
        let version = &runtime.version;
        assert_eq!(lines.first(), Some(&"initialize"), "on .NET {version}");
        assert_eq!(count("shutdown"), 1, "on .NET {version}");
        assert_eq!(count("assembly_load_finished assembly=Exceptions status=ok"), 1, "on .NET {version}");
        assert_eq!(count("class_load_finished class=Exceptions.Program status=ok"), 1, "on .NET {version}");
        assert!(
            count("jit_compilation_finished function=Exceptions.Program.Main() status=ok") >= 1,
            "on .NET {version}"
        );
        assert!(count("thread_created") >= 2, "on .NET {version}");
        assert!(lines.iter().any(|line| line.starts_with("object_allocated") && line.ends_with(" class=string")));

        let thrown = testkit::Expectations::parse(&said).calls("Exceptions.Program+Nested::ThrowOther");
        let asked = count("exception_search_function_enter function=Exceptions.Program.Nested.ThrowOther()");
        assert_eq!(Some(asked), thrown, "on .NET {version}");
    });
}

/// Callbacks of a program that loads and unloads and collects.
const OF_COLLECTIONS: [&str; 21] = [
    "assembly_unload_finished",
    "class_unload_finished",
    "dynamic_method_jit_compilation_finished",
    "dynamic_method_unloaded",
    "finalizable_object_queued",
    "garbage_collection_finished",
    "garbage_collection_started",
    "handle_created",
    "handle_destroyed",
    "managed_to_unmanaged_transition",
    "module_unload_finished",
    "module_unload_started",
    "object_references",
    "objects_allocated_by_class",
    "root_references2",
    "runtime_resume_finished",
    "runtime_suspend_started",
    "runtime_thread_suspended",
    "surviving_references",
    "thread_assigned_to_os_thread",
    "unmanaged_to_managed_transition",
];

#[test]
fn no_callback_is_left_out() {
    testkit::each_runtime(|runtime| {
        let (_, text) = logged(runtime, "Loading", None);
        let seen: BTreeSet<_> = lines(&text).iter().filter_map(|line| line.split(' ').next()).collect();
        let missing: Vec<_> = OF_COLLECTIONS.iter().filter(|name| !seen.contains(*name)).collect();
        assert!(missing.is_empty(), "{missing:?} on .NET {}", runtime.version);
    });
}

#[test]
fn events_can_be_chosen() {
    let (_, text) =
        logged(testkit::runtimes().last().expect("a runtime"), "Hello", Some("CLASS_LOADS, CACHE_SEARCHES"));
    let seen: BTreeSet<_> = lines(&text).iter().filter_map(|line| line.split(' ').next()).collect();
    assert!(
        seen.contains("jit_cached_function_search_finished") && !seen.contains("jit_compilation_started"),
        "{seen:?}"
    );
}
