//! Threads of known lives and collections are reported, on every runtime at hand.

use clrscope_testkit as testkit;

#[test]
fn known_threads_and_collections_are_reported_and_the_program_is_unchanged() {
    let library = testkit::example("threads");
    testkit::each_runtime(|runtime| {
        let folder = testkit::scratch();
        let output = folder.path().join("threads.txt");
        let mut command = runtime.command(&testkit::fixture("Amounts"));
        testkit::load_profiler(&mut command, &library, "{1256BFA0-BB2F-40C6-BA1D-B74528EB6024}");
        command.arg("threads").env("THREADS_PROFILER_OUTPUT", &output);
        let finished = testkit::run(command).expect_success();
        assert_eq!((finished.stdout_text().as_str(), finished.stderr_text().as_str()), ("lived\n", ""));

        let text = std::fs::read_to_string(&output).expect("the profiler writes at the end");
        let on = format!("on .NET {}:\n{text}", runtime.version);
        let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split('\t').collect()).collect();
        let number = |text: &str| text.parse::<f64>().ok();
        for n in 0..5 {
            let name = format!("worker-{n}");
            let worker: Vec<_> = rows.iter().filter(|row| row[1] == name).collect();
            assert_eq!(worker.len(), 1, "{name} {on}");
            let lived = number(worker[0][3]).unwrap_or_default();
            // A busy machine makes lives longer.
            let least = f64::from(100 + 50 * n);
            assert!(lived >= least - 1.0 && lived < least + 5_000.0, "{name} lived for {lived} {on}");
        }
        assert_eq!(rows.iter().filter(|row| row[1] == "late-name").count(), 1, "{on}");
        let collections = rows.iter().filter(|row| row[0] == "suspension" && row[1].starts_with("GC"));
        // The runtime may collect once more of its own accord.
        let stood: Vec<_> = collections.map(|row| number(row[4])).collect();
        assert!(stood.len() >= 3 && stood.iter().all(Option::is_some), "{stood:?} {on}");
    });
}
