//! Two methods that share a processor as 3 to 1 are sampled so, beside a thread that sleeps, on every runtime at hand.

use clrscope_testkit as testkit;

#[test]
fn known_shares_are_sampled_and_the_program_is_unchanged() {
    let library = testkit::example("sampler");
    testkit::each_runtime(|runtime| {
        let folder = testkit::scratch();
        let output = folder.path().join("stacks.txt");
        let mut command = runtime.command(&testkit::fixture("Amounts"));
        testkit::load_profiler(&mut command, &library, "{9A36C0D4-57E8-4F1B-8B02-61D7E94A3C5D}");
        command.args(["compute", "3000"]).env("SAMPLER_PROFILER_OUTPUT", &output);
        let finished = testkit::run(command).expect_success();
        assert_eq!((finished.stdout_text().as_str(), finished.stderr_text().as_str()), ("computed\n", ""));

        let text = std::fs::read_to_string(&output).expect("the profiler writes at the end");
        let stacks: Vec<(&str, u64)> = text
            .lines()
            .filter(|line| !line.starts_with('#'))
            .map(|line| line.rsplit_once(' ').map(|(stack, count)| (stack, count.parse().expect("a number"))))
            .collect::<Option<_>>()
            .expect("stacks and counts");
        let count = |with: &str| stacks.iter().filter(|(stack, _)| stack.contains(with)).map(|(_, n)| n).sum::<u64>();
        let compute = "Amounts.Program::Main;Amounts.Program::Compute";
        let three = count(&format!("{compute};Amounts.Program::Three"));
        let one = count(&format!("{compute};Amounts.Program::One"));
        let asleep = count("sleeper;");
        let version = &runtime.version;
        assert!(three + one > 40 && asleep > 40, "on .NET {version}:\n{text}");
        let ratio = three as f64 / one as f64;
        assert!((2.0..4.5).contains(&ratio), "{three} to {one} on .NET {version}:\n{text}");
        assert_eq!(count("sleeper;Amounts.Program::Three"), 0, "on .NET {version}:\n{text}");
    });
}
