//! A program that allocates known amounts is counted right, on every runtime at hand.

use std::collections::BTreeMap;

use clrscope_testkit as testkit;

#[test]
fn known_amounts_are_told_and_the_program_is_unchanged() {
    let library = testkit::example("allocations");
    testkit::each_runtime(|runtime| {
        let folder = testkit::scratch();
        let output = folder.path().join("allocations.txt");
        let mut command = runtime.command(&testkit::fixture("Amounts"));
        testkit::load_profiler(&mut command, &library, "{4B7D2E91-6C1F-4A58-9E37-2D0A8C5F1B66}");
        command.arg("allocate").env("ALLOCATIONS_PROFILER_OUTPUT", &output);
        let finished = testkit::run(command).expect_success();
        assert_eq!((finished.stdout_text().as_str(), finished.stderr_text().as_str()), ("kept 5000\n", ""));

        let text = std::fs::read_to_string(&output).expect("the profiler writes at the end");
        let row = |line: &str| {
            let [bytes, objects, class] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
            (class.to_owned(), (objects.parse::<u64>().expect("a number"), bytes.parse::<u64>().expect("a number")))
        };
        let rows: BTreeMap<_, _> = text.lines().map(row).collect();
        let version = &runtime.version;
        assert_eq!(rows.get("Amounts.Link"), Some(&(100_000, 3_200_000)), "on .NET {version}:\n{text}");
        assert_eq!(rows.get("Amounts.Leaf[,]").map(|row| row.0), Some(333), "on .NET {version}:\n{text}");
        assert_eq!(rows.get("long[]"), Some(&(10, 10 * 160_024)), "on .NET {version}:\n{text}");
        assert!(text.starts_with("3200000\t100000\tAmounts.Link\n"), "the largest is first on .NET {version}:\n{text}");
    });
}
