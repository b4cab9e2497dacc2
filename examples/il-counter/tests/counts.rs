//! Methods with additions in them count right, and with every instruction moved they do what they
//! did, on every runtime.

use std::collections::BTreeMap;

use clrscope_testkit as testkit;

const CLASS: &str = "{6F0E8E6B-2C8E-4B6B-9A55-5D1E3B1F7C21}";

/// The profiler's table.
#[derive(Default)]
struct Counts {
    /// Calls by name, and how many have ended; sums over overloads.
    calls: BTreeMap<String, (u64, u64)>,
    /// Reasons why methods stayed as they were.
    refused: Vec<String>,
}

/// Runs a program without and with the profiler: its output is the same.
fn counted(runtime: &testkit::Runtime, program: &str, options: &[&str]) -> (Counts, String) {
    let fixture = testkit::fixture(program);
    let bare = testkit::run(runtime.command(&fixture)).expect_success();
    let folder = testkit::scratch();
    let output = folder.path().join("calls.txt");
    let mut command = runtime.command(&fixture);
    testkit::load_profiler(&mut command, &testkit::example("il-counter"), CLASS);
    command.env("IL_COUNTER_OUTPUT", &output);
    command.envs(options.iter().map(|option| option.split_once('=').expect("a name and a value")));
    let profiled = testkit::run(command).expect_success();
    assert_eq!(profiled.stdout_text(), bare.stdout_text(), "{program} on .NET {}", runtime.version);
    assert_eq!(profiled.stderr_text(), bare.stderr_text(), "{program} on .NET {}", runtime.version);
    let mut counts = Counts::default();
    for line in std::fs::read_to_string(&output).expect("the profiler writes at the end").lines() {
        let cells: Vec<&str> = line.split('\t').collect();
        match cells[..] {
            ["refused", reason] => counts.refused.push(reason.to_owned()),
            [calls, ends, name] => {
                let both = counts.calls.entry(without_arity(name)).or_default();
                both.0 += calls.parse::<u64>().expect("a number");
                both.1 += ends.parse::<u64>().expect("a number");
            }
            _ => panic!("{line}"),
        }
    }
    (counts, bare.stdout_text())
}

/// Numbers of type parameters are left out, as the programs do that say what they call.
fn without_arity(name: &str) -> String {
    let mut parts = name.split('`');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |name, part| name + part.trim_start_matches(|digit: char| digit.is_ascii_digit()))
}

/// As many of each function as the program says itself.
fn assert_known(counts: &Counts, stdout: &str, what: &str) {
    for (name, calls) in &testkit::Expectations::parse(stdout).calls {
        let seen = counts.calls.get(name).map_or(0, |(calls, _)| *calls);
        assert_eq!(seen, *calls, "{name} of {what}");
    }
}

#[test]
fn calls_and_their_ends_are_counted_and_programs_are_unchanged() {
    testkit::each_runtime(|runtime| {
        for program in ["Recursion", "Generics", "Exceptions", "Inlining"] {
            let (counts, stdout) = counted(runtime, program, &["IL_COUNTER_EXITS=1"]);
            let what = format!("{program} on .NET {}", runtime.version);
            assert_known(&counts, &stdout, &what);
            assert_eq!(counts.refused, [""; 0], "{what}");
            for (name, (calls, ends)) in &counts.calls {
                assert_eq!(calls, ends, "{name} of {what}");
            }
        }
    });
}

#[test]
fn programs_and_libraries_with_every_instruction_moved_do_what_they_did() {
    testkit::each_runtime(|runtime| {
        for program in ["Exceptions", "Filters", "Async", "TailCalls"] {
            let (counts, _) = counted(runtime, program, &["IL_COUNTER_STRESS=1", "IL_COUNTER_MODULES=all"]);
            assert_eq!(counts.refused, [""; 0], "{program} on .NET {}", runtime.version);
            let of_library = counts.calls.keys().filter(|name| name.starts_with("System.")).count();
            assert!(of_library > 100, "{of_library} methods of the library ran with changed code");
        }
    });
}
