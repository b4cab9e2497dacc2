//! Builds the agent, the tool and the examples, once per state of the sources.

use std::env;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::workspace::{target_folder, workspace_root};

/// The agent as a release build: `libclrscope_agent.so`.
///
/// # Panics
/// With cargo's messages, when the build fails.
pub fn agent() -> &'static Path {
    static AGENT: OnceLock<PathBuf> = OnceLock::new();
    AGENT.get_or_init(|| {
        // With the same options as the tool's build script, so that the agent is built once for
        // both.
        let manifest = workspace_root().join("crates/agent/Cargo.toml");
        let arguments = [OsStr::new("--release"), "--manifest-path".as_ref(), manifest.as_ref()];
        cargo_build_in(&agent_target(), &arguments).join("release/libclrscope_agent.so")
    })
}

/// The agent as a debug build with features for tests. The environment variable
/// `CLRSCOPE_TEST_PANIC` makes it panic in a `callback`, in a `hook`, or on the `helper` thread. If
/// [`STOPS_VARIABLE`](crate::STOPS_VARIABLE) is set, it suspends the runtime and compares stacks.
/// It treats the framework field named by `CLRSCOPE_TEST_RENAMED` as missing.
///
/// # Panics
/// With cargo's messages, when the build fails.
pub fn hooked_agent() -> &'static Path {
    static AGENT: OnceLock<PathBuf> = OnceLock::new();
    AGENT.get_or_init(|| {
        // In another profile than `agent`, so that neither takes the other's place.
        let arguments =
            ["--package", "clrscope-agent", "--features", "panic-on-demand,stops-on-demand,renames-on-demand"];
        cargo_build(&arguments).join("debug/libclrscope_agent.so")
    })
}

/// The tool as a release build: `clrscope`, with the agent inside.
///
/// # Panics
/// With cargo's messages, when the build fails.
pub fn cli() -> &'static Path {
    static CLI: OnceLock<PathBuf> = OnceLock::new();
    CLI.get_or_init(|| build("clrscope").join("clrscope"))
}

/// An example profiler of this repository as a release build, needed because a test does not build
/// its package's `cdylib`.
///
/// # Panics
/// With cargo's messages, when the build fails.
pub fn example(package: &str) -> PathBuf {
    build(package).join(format!("lib{}.so", package.replace('-', "_")))
}

/// An example profiler of the framework itself as a release build.
///
/// # Panics
/// With cargo's messages, when the build fails.
pub fn framework_example(name: &str) -> PathBuf {
    let target = cargo_build(&["--release", "--package", "clr-profiler", "--example", name]);
    target.join("release/examples").join(format!("lib{name}.so"))
}

/// The native library built from a fixture's C source, such as `Sampled/storage.c`.
///
/// # Panics
/// With the compiler's messages, when the build fails; also without a C compiler.
pub fn native_library(source: &str) -> PathBuf {
    let source = workspace_root().join("dotnet/fixtures").join(source);
    let folder = target_folder().join("native");
    fs::create_dir_all(&folder).expect("a folder can be made");
    let name = source.file_stem().expect("a name").to_string_lossy().into_owned();
    // Tests that run at the same time as this one find the whole library or none.
    static MADE: AtomicU32 = AtomicU32::new(0);
    let own = format!("{name}.{}-{}", std::process::id(), MADE.fetch_add(1, Ordering::Relaxed));
    let (library, made) = (folder.join(format!("{name}.so")), folder.join(own));
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-Wall", "-Werror", "-shared", "-fPIC", "-o"]).args([&made, &source]);
    crate::run(compiler).expect_success();
    fs::rename(&made, &library).expect("a file can be renamed");
    library
}

/// Builds `library` from C code, and moves its symbols into the file `symbols`, as distributions
/// ship them. The source is written next to the library. The library has a build id, and only the
/// names that it exports.
///
/// # Panics
/// With the tools' messages, when the build fails; also without a C compiler.
pub fn stripped_library(code: &str, library: &Path, symbols: &Path) {
    let source = library.with_extension("c");
    fs::write(&source, code).expect("a file can be written");
    let run = |program: &str, options: &[&str], files: [&Path; 2]| {
        let mut command = Command::new(program);
        command.args(options).args(files);
        crate::run(command).expect_success();
    };
    run("cc", &["-shared", "-fPIC", "-O1", "-fno-ipa-cp", "-g", "-Wl,--build-id", "-o"], [library, &source]);
    run("objcopy", &["--only-keep-debug"], [library, symbols]);
    run("objcopy", &["--strip-all"], [library, library]);
}

/// Makes the runtime that `command` starts load the profiler `library`, whose class is `clsid`.
pub fn load_profiler(command: &mut Command, library: &Path, clsid: &str) {
    command.env("CORECLR_ENABLE_PROFILING", "1").env("CORECLR_PROFILER", clsid).env("CORECLR_PROFILER_PATH", library);
}

/// Builds a package in release mode, and returns the folder of the results.
fn build(package: &str) -> PathBuf {
    cargo_build(&["--release", "--package", package]).join("release")
}

/// Builds in a separate target folder and returns the folder. Cargo holds a lock on the usual one
/// while it runs tests.
fn cargo_build(arguments: &[&str]) -> PathBuf {
    let arguments: Vec<&OsStr> = arguments.iter().map(OsStr::new).collect();
    cargo_build_in(&target_folder().join("testkit"), &arguments)
}

/// The directory in which the tool's build script builds the agent.
fn agent_target() -> PathBuf {
    target_folder().join("agent-target")
}

fn cargo_build_in(target: &Path, arguments: &[&OsStr]) -> PathBuf {
    fs::create_dir_all(target).unwrap_or_else(|error| panic!("{}: {error}", target.display()));
    // Test binaries run at the same time; cargo would wait too, but says so on stderr.
    let lock = File::create(target.join("lock")).expect("the target folder can be written");
    lock.lock().expect("a file can be locked");
    let cargo = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(workspace_root()).args(["build", "--quiet"]).args(arguments);
    command.arg("--target-dir").arg(target);
    command.env("CLRSCOPE_AGENT_TARGET", agent_target()).env("CARGO_PROFILE_RELEASE_STRIP", "debuginfo");
    let output = command.output().expect("cargo starts");
    assert!(output.status.success(), "cargo build {arguments:?} failed:\n{}", String::from_utf8_lossy(&output.stderr));
    target.to_owned()
}
