//! The log nests right and has what the program did, on every runtime at hand.

use std::collections::BTreeMap;

use clrscope_testkit as testkit;

const SEARCH: &str = "exception_search_function_enter";

/// What comes in pairs: a line that opens a level and the line that closes it.
const PAIRS: [(&str, &str); 6] = [
    ("assembly_load_started", "assembly_load_finished"),
    ("module_load_started", "module_load_finished"),
    ("class_load_started", "class_load_finished"),
    ("jit_compilation_started", "jit_compilation_finished"),
    (SEARCH, "exception_search_function_leave"),
    ("exception_search_filter_enter", "exception_search_filter_leave"),
];

/// The lines without thread and indentation; fails where a pair's lines don't stand at the same level.
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
            // An exception that escapes a filter ends the search without saying so of the function it had come to.
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

#[test]
fn callbacks_are_logged_in_their_nesting() {
    let library = testkit::example("logging");
    testkit::each_runtime(|runtime| {
        let fixture = testkit::fixture("Exceptions");
        let bare = testkit::run(runtime.command(&fixture)).expect_success();
        let folder = testkit::scratch();
        let output = folder.path().join("log.txt");
        let mut command = runtime.command(&fixture);
        testkit::load_profiler(&mut command, &library, "{A7F3D1C2-0E5B-4D29-9C3E-6B8F2A1D5E54}");
        command.env("LOGGING_PROFILER_OUTPUT", &output);
        let profiled = testkit::run(command).expect_success();
        assert_eq!((profiled.stdout, profiled.stderr), (bare.stdout.clone(), bare.stderr.clone()));

        let text = std::fs::read_to_string(&output).expect("the profiler wrote");
        let lines = lines(&text);
        let count = |what: &str| lines.iter().filter(|line| line.starts_with(what)).count() as u64;
        let version = &runtime.version;
        assert_eq!(lines.first(), Some(&"initialize"), "on .NET {version}");
        assert_eq!(count("shutdown"), 1, "on .NET {version}");
        assert_eq!(count("assembly_load_finished Exceptions ok"), 1, "on .NET {version}");
        assert_eq!(count("class_load_finished Exceptions.Program ok"), 1, "on .NET {version}");
        assert!(count("jit_compilation_finished Exceptions.Program.Main() ok") >= 1, "on .NET {version}");
        assert!(count("thread_created") >= 2, "on .NET {version}");

        let thrown = testkit::Expectations::parse(&bare.stdout_text()).calls("Exceptions.Program+Nested::ThrowOther");
        let asked = count("exception_search_function_enter Exceptions.Program.Nested.ThrowOther()");
        assert_eq!(Some(asked), thrown, "on .NET {version}");
    });
}
