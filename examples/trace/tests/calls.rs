//! The trace has every call under its caller, on every runtime at hand.

use std::collections::BTreeMap;
use std::path::Path;

use clrscope_testkit as testkit;

/// Calls by function, and by caller and function, as the traces of all threads in a folder have
/// them.
#[derive(Default)]
struct TraceCalls {
    calls: BTreeMap<String, u64>,
    edges: BTreeMap<(String, String), u64>,
}

impl TraceCalls {
    fn read(folder: &Path) -> Self {
        let mut seen = Self::default();
        for file in std::fs::read_dir(folder).expect("the profiler wrote") {
            let text = std::fs::read_to_string(file.expect("an entry").path()).expect("a text file");
            seen.add_trace(&text);
        }
        seen
    }

    fn add_trace(&mut self, text: &str) {
        let mut open: Vec<&str> = Vec::new();
        for line in text.lines() {
            let (depth, rest) = line.split_once('\t').expect("a depth, a tab, a name");
            let depth: usize = depth.parse().expect("a number");
            let indent = rest.len() - rest.trim_start().len();
            assert_eq!(indent, depth.min(60) * 2, "{line}");
            assert!(depth <= open.len(), "a call without a caller: {line}");
            let (block, name) = rest.trim_start().rsplit_once(" of ").unwrap_or(("", rest.trim_start()));
            if block.is_empty() {
                *self.calls.entry(name.into()).or_default() += 1;
                if let Some(caller) = depth.checked_sub(1).map(|caller| open[caller]) {
                    *self.edges.entry((caller.into(), name.into())).or_default() += 1;
                }
            } else if block != "filter" {
                assert_eq!(open.get(depth), Some(&name), "a block stands at its own function's depth: {line}");
            }
            open.truncate(depth);
            open.push(name);
        }
    }
}

fn check(fixture: &str) {
    let library = testkit::example("trace");
    testkit::each_runtime(|runtime| {
        let fixture = testkit::fixture(fixture);
        let bare = testkit::run(runtime.command(&fixture)).expect_success();
        let folder = testkit::scratch();
        let mut command = runtime.command(&fixture);
        testkit::load_profiler(&mut command, &library, "{E8B0E2D3-5E0C-4C57-8B7D-1D5D4F4C9B32}");
        command.env("TRACE_PROFILER_OUTPUT", folder.path());
        let profiled = testkit::run(command).expect_success();
        assert_eq!((profiled.stdout, profiled.stderr), (bare.stdout.clone(), bare.stderr.clone()));

        let seen = TraceCalls::read(folder.path());
        let expected = testkit::Expectations::parse(&bare.stdout_text());
        for (name, calls) in &expected.calls {
            assert_eq!(seen.calls.get(name), Some(calls), "{name} on .NET {}", runtime.version);
        }
        for (edge, calls) in &expected.edges {
            assert_eq!(seen.edges.get(edge), Some(calls), "{edge:?} on .NET {}", runtime.version);
        }
    });
}

#[test]
fn recursion_is_traced_to_the_last_call() {
    check("Recursion");
}

#[test]
fn what_blocks_call_stands_under_their_function() {
    check("Exceptions");
}

#[test]
fn what_is_unloaded_gives_its_identifiers_away_and_keeps_its_name() {
    check("Loading");
}
