//! Running fixtures under the example profilers of this crate.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use clrscope_testkit as testkit;
use testkit::Runtime;

/// The example profilers, built from the sources as they are now. `cargo test --test NAME` alone
/// would not.
pub(crate) fn profiler(name: &str) -> PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        // A target folder of its own: cargo holds a lock on the usual one while it builds.
        let target = testkit::target_folder().join("framework");
        let mut command = Command::new(env!("CARGO"));
        command.current_dir(testkit::workspace_root()).args(["build", "--quiet", "--package", "clr-profiler"]);
        command.args(["--examples", "--target-dir"]).arg(&target);
        let output = command.output().expect("cargo starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        target.join("debug/examples")
    });
    folder.join(format!("lib{name}.so"))
}

/// The program on this runtime, with a profiler.
pub(crate) fn profiled(runtime: &Runtime, fixture: &str, library: &Path, class: &str) -> Command {
    let mut command = runtime.command(&testkit::fixture(fixture));
    testkit::load_profiler(&mut command, library, class);
    command
}
