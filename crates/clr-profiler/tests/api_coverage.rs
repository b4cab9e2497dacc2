//! Every question to a real runtime, and objects followed through its collections, on every runtime
//! at hand.

mod common;

use std::collections::BTreeSet;

use clrscope_testkit as testkit;

#[test]
fn the_runtime_answers_all_that_is_wrapped_and_objects_are_followed_through_collections() {
    testkit::each_runtime(|runtime| {
        let folder = testkit::scratch();
        let output = folder.path().join("checks");
        let class = "{6F0E8E6B-2C8E-4B6B-9A55-5D1E3B1F7C07}";
        let mut command = common::profiled(runtime, "Objects", &common::profiler("api_coverage"), class);
        command.env("QUESTIONS_OUTPUT", &output).env("OBJECTS_WAIT", folder.path().join("go on"));
        let finished = testkit::run(command).expect_success();
        let checks = std::fs::read_to_string(&output).expect("the profiler writes before the program goes on");
        let wrong: Vec<_> = checks.lines().filter(|line| line.starts_with("WRONG")).collect();
        assert!(wrong.is_empty(), "on .NET {}:\n{}", runtime.version, wrong.join("\n"));
        assert_eq!(checks.lines().last(), Some("end"), "on .NET {}:\n{checks}", runtime.version);

        let stdout = finished.stdout_text();
        assert!(stdout.contains("statics 41 17 5 3\nanswer 42\nanswer 43\nanswer 44\n"), "{stdout}");
        let kept = stdout.lines().filter_map(|line| line.strip_prefix("kept ")?.split(' ').nth(1));
        let kept: BTreeSet<&str> = kept.collect();
        let tracked: BTreeSet<&str> = checks.lines().filter_map(|line| line.strip_prefix("tracked ")).collect();
        assert_eq!(kept.len(), 1000);
        let lost: Vec<_> = kept.difference(&tracked).collect();
        assert!(lost.is_empty(), "not where they are, on .NET {}: {lost:?}", runtime.version);
        // Besides: one in a static field, two that the exception holds.
        assert_eq!(tracked.len(), 1003, "dead ones are still followed, on .NET {}", runtime.version);
    });
}

/// Output of the profiler `slow_hooks` about the fixture.
fn slow_hooks(runtime: &testkit::Runtime, fixture: &str) -> String {
    let folder = testkit::scratch();
    let output = folder.path().join("lines");
    let mut command =
        common::profiled(runtime, fixture, &common::profiler("slow_hooks"), "{6F0E8E6B-2C8E-4B6B-9A55-5D1E3B1F7C0B}");
    command.env("SLOW_HOOKS_OUTPUT", &output).env("SLOW_HOOKS_ASSEMBLY", fixture);
    testkit::run(command).expect_success();
    std::fs::read_to_string(&output).expect("the profiler writes at the end")
}

#[test]
fn hooks_with_information_tell_instantiations_that_share_their_code_apart() {
    testkit::each_runtime(|runtime| {
        let lines = slow_hooks(runtime, "Generics");
        let instantiations: BTreeSet<&str> =
            lines.lines().filter_map(|line| line.strip_prefix("instantiation Generics.")).collect();
        for expected in [
            "Program::Echo in Generics.Program of <string>",
            "Program::Echo in Generics.Program of <object>",
            "Box::Get in Generics.Box<string> of <>",
            "Box::Map in Generics.Box<string> of <string>",
            "Box+Inner::Pair in Generics.Box<string>.Inner<Generics.Big> of <>",
        ] {
            assert!(instantiations.contains(expected), "{expected} on .NET {}: {instantiations:#?}", runtime.version);
        }
        assert!(!instantiations.iter().any(|line| line.contains("__Canon")), "{instantiations:#?}");
    });
}

#[test]
fn hooks_with_information_see_arguments_and_results() {
    testkit::each_runtime(|runtime| {
        let lines = slow_hooks(runtime, "Objects");
        let events = || lines.lines().filter(|line| !line.starts_with("instantiation"));
        let of = |name: &str| events().filter(|line| line.contains(name)).collect::<Vec<_>>();
        let answer = "Objects.Program::Answer";
        let calls = (0..3).flat_map(|x| [format!("enter {answer} {x}"), format!("leave {answer} {}", 42 + x)]);
        assert_eq!(of(answer), calls.collect::<Vec<_>>(), "on .NET {}", runtime.version);
        // `this`, then the number; no result.
        let made = of("Objects.Tracked::.ctor");
        assert!(made.iter().any(|line| line.starts_with("enter") && line.ends_with(" 1999")), "{made:?}");
        assert!(made.contains(&"leave Objects.Tracked::.ctor "), "{made:?}");
        assert!(
            !lines.contains("failed") && !lines.contains("arguments in leave"),
            "on .NET {}:\n{lines}",
            runtime.version
        );
    });
}
