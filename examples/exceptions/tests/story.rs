//! Each exception of a program that throws in known ways is listed right, on every runtime at hand.

use clrscope_testkit as testkit;

/// Output for one round of the fixture's first two scenarios, by its sources: thrown two frames
/// down through a finally block; then two filters (the inner one refuses), and the finally block
/// between thrower and both.
const SIMPLE: &str = r#"System.InvalidOperationException: "simple 0"
    at Exceptions.Program+Simple::Throw
    at Exceptions.Program+Simple::Through
    at Exceptions.Program+Simple::Start
    at Exceptions.Program::Main
  will be caught by Exceptions.Program+Simple::Start
  finally of Exceptions.Program+Simple::Through
  caught by Exceptions.Program+Simple::Start
System.ArgumentException: "filter 0"
    at Exceptions.Program+Filters::Throw
    at Exceptions.Program+Filters::Inner
    at Exceptions.Program+Filters::Middle
    at Exceptions.Program+Filters::Start
    at Exceptions.Program::Main
  filter of Exceptions.Program+Filters::Middle
  filter of Exceptions.Program+Filters::Start
  will be caught by Exceptions.Program+Filters::Start
  finally of Exceptions.Program+Filters::Inner
  caught by Exceptions.Program+Filters::Start
"#;

#[test]
fn each_exception_has_its_stack_and_its_story() {
    let library = testkit::example("exceptions");
    testkit::each_runtime(|runtime| {
        let fixture = testkit::fixture("Exceptions");
        let bare = testkit::run(runtime.command(&fixture)).expect_success();
        let folder = testkit::scratch();
        let output = folder.path().join("exceptions.txt");
        let mut command = runtime.command(&fixture);
        testkit::load_profiler(&mut command, &library, "{0C8B5F0A-5B8B-4C57-9E0B-5C6E4C0B8A21}");
        command.env("EXCEPTIONS_PROFILER_OUTPUT", &output);
        let profiled = testkit::run(command).expect_success();
        assert_eq!((profiled.stdout, profiled.stderr), (bare.stdout.clone(), bare.stderr));

        let text = std::fs::read_to_string(&output).expect("the profiler wrote");
        let lines: Vec<_> = text.lines().map(|line| line.split_once('\t').expect("a thread, a tab, text").1).collect();
        let first: String = lines.iter().take(SIMPLE.lines().count()).map(|line| format!("{line}\n")).collect();
        assert_eq!(first, SIMPLE, "on .NET {}", runtime.version);

        let expected = testkit::Expectations::parse(&String::from_utf8_lossy(&bare.stdout));
        for thrower in ["Exceptions.Program+Nested::Throw", "Exceptions.Program+Nested::ThrowOther"] {
            let calls = expected.calls(thrower).expect("the fixture counts it");
            let throws =
                lines.windows(2).filter(|pair| !pair[0].starts_with(' ') && pair[1].trim() == format!("at {thrower}"));
            assert_eq!(throws.count() as u64, calls, "{thrower} on .NET {}", runtime.version);
        }
        let of = |what: &str| lines.iter().filter(|line| line.starts_with(what)).count() as u64;
        let asked = expected.calls("Exceptions.Program+Nested::BadFilter");
        assert_eq!(Some(of("  filter of Exceptions.Program+Nested::FromFilter")), asked, "on .NET {}", runtime.version);
        let closed = expected.edge("Exceptions.Program+Simple::Through", "Exceptions.Program+Simple::InFinally");
        assert_eq!(
            Some(of("  finally of Exceptions.Program+Simple::Through") * 2),
            closed,
            "on .NET {}",
            runtime.version
        );
    });
}
