//! Ten waits for a lock are counted, with their time and their method, on every runtime at hand.

use clrscope_testkit as testkit;

#[test]
fn known_waits_are_counted_and_the_program_is_unchanged() {
    let library = testkit::example("locks");
    testkit::each_runtime(|runtime| {
        let folder = testkit::scratch();
        let output = folder.path().join("locks.txt");
        let mut command = runtime.command(&testkit::fixture("Amounts"));
        testkit::load_profiler(&mut command, &library, "{9754FACF-377E-48AB-AF30-AD3E50437A82}");
        // The program waits for the file: then the waits are counted.
        command.arg("wait").arg(&output).env("LOCKS_PROFILER_OUTPUT", &output);
        let finished = testkit::run(command).expect_success();
        assert_eq!((finished.stdout_text().as_str(), finished.stderr_text().as_str()), ("waited\n", ""));

        let text = std::fs::read_to_string(&output).expect("the profiler writes at the end");
        let row = |line: &str| {
            let [waits, time, method] = line.split('\t').collect::<Vec<_>>()[..] else { panic!("{line}") };
            (method.to_owned(), waits.parse::<u64>().expect("a number"), time.parse::<f64>().expect("a number"))
        };
        let rows: Vec<_> = text.lines().map(row).collect();
        let gate = rows.iter().find(|(method, ..)| method == "Amounts.Program::WaitForGate");
        let Some((_, waits, time)) = gate else { panic!("on .NET {}:\n{text}", runtime.version) };
        assert_eq!(*waits, 10, "on .NET {}:\n{text}", runtime.version);
        // Each is held for 50 ms after the waiter has come; timers are a little early or late.
        assert!((480.0..5_000.0).contains(time), "on .NET {}:\n{text}", runtime.version);
    });
}
