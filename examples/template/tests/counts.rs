//! The template runs on real programs and counts right, on every runtime at hand.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use clrscope_testkit as testkit;

/// The template as a library, built from the sources as they are now: a test does not build its
/// package's `cdylib`.
fn template() -> &'static Path {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    LIBRARY.get_or_init(|| {
        let target = testkit::target_folder().join("framework");
        let mut command = Command::new(env!("CARGO"));
        command.current_dir(testkit::workspace_root()).args(["build", "--quiet", "--package", "template"]);
        command.arg("--target-dir").arg(&target);
        let output = command.output().expect("cargo starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        target.join("debug/libtemplate.so")
    })
}

#[test]
fn recursion_is_counted_and_the_program_is_unchanged() {
    testkit::each_runtime(|runtime| {
        let fixture = testkit::fixture("Recursion");
        let bare = testkit::run(runtime.command(&fixture)).expect_success();

        let folder = testkit::scratch();
        let output = folder.path().join("calls.txt");
        let mut command = runtime.command(&fixture);
        command.env("CORECLR_ENABLE_PROFILING", "1").env("CORECLR_PROFILER", "{6F0E8E6B-2C8E-4B6B-9A55-5D1E3B1F7C01}");
        command.env("CORECLR_PROFILER_PATH", template()).env("TEMPLATE_PROFILER_OUTPUT", &output);
        let profiled = testkit::run(command).expect_success();
        assert_eq!((profiled.stdout, profiled.stderr), (bare.stdout.clone(), bare.stderr.clone()));

        let mut seen = BTreeMap::<String, u64>::new();
        for line in std::fs::read_to_string(&output).expect("the profiler writes at the end").lines() {
            let (calls, signature) = line.split_once('\t').expect("a count, a tab, a name");
            let name = signature.split('(').next().unwrap_or_default().to_owned();
            *seen.entry(name).or_default() += calls.parse::<u64>().expect("a number");
        }
        for (name, calls) in &testkit::Expectations::parse(&bare.stdout_text()).calls {
            assert_eq!(seen.get(&name.replace("::", ".")), Some(calls), "{name} on .NET {}", runtime.version);
        }
    });
}
