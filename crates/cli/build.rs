//! Builds the agent and embeds its bytes into the tool, so that a single installed file works.
//!
//! The agent is a separate library (a `cdylib`), and Cargo can't give such a file to another
//! crate's build. So this script builds the agent, in release, into a target directory of its own:
//! in the outer target directory the inner build would wait for ever on the lock. Builds of the
//! tool for tests, for lints and for use share the agent's directory if they share their target
//! directory.
//!
//! `CLRSCOPE_PREBUILT_AGENT=FILE:FILE` embeds agents that were built before, at most one for each C
//! library, for instance with another linker (`cargo xtask dist`), because the inner build does not
//! inherit the outer build's linker. If a file is not an agent of this version and processor, the
//! build fails.

use std::collections::BTreeMap;
use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use sha2::{Digest, Sha256};

#[path = "build/prebuilt.rs"]
mod prebuilt;

/// Environment variable with the directory for builds of the agent; the test kit sets it.
const AGENT_TARGET: &str = "CLRSCOPE_AGENT_TARGET";
/// Environment variable with the paths of prebuilt agents.
const PREBUILT_AGENT: &str = "CLRSCOPE_PREBUILT_AGENT";
const LIBRARY: &str = "libclrscope_agent.so";
/// The crates that make up the agent: a change in one of them is a change of the agent.
const CRATES: [&str; 11] = [
    "agent",
    "agent-base",
    "agent-values",
    "agent-stacks",
    "clr-il",
    "clr-profiler",
    "clr-profiler-sys",
    "contract",
    "coverage",
    "metadata",
    "recording",
];

fn main() {
    let crates = PathBuf::from(variable("CARGO_MANIFEST_DIR")).join("..");
    let out = PathBuf::from(variable("OUT_DIR"));
    for part in CRATES.iter().flat_map(|name| ["src", "Cargo.toml"].map(|part| crates.join(name).join(part))) {
        rerun_if_changed(&part);
    }
    println!("cargo::rerun-if-env-changed={PREBUILT_AGENT}");
    for part in ["agent/build.rs", "../Cargo.toml", "../Cargo.lock"] {
        rerun_if_changed(&crates.join(part));
    }
    let files = match env::var_os(PREBUILT_AGENT) {
        Some(files) => env::split_paths(&files).inspect(|file| rerun_if_changed(file)).collect(),
        None => vec![build(&crates.join("agent/Cargo.toml"), &agent_target(&out))],
    };
    let mut agents = BTreeMap::new();
    for file in files {
        let read = read_agent(&file).and_then(|(c_library, bytes)| match agents.insert(c_library, bytes) {
            None => Ok(()),
            Some(_) => Err("it is a second agent for the same C library".to_owned()),
        });
        if let Err(why) = read {
            println!("cargo::error={PREBUILT_AGENT}={}: {why}", file.display());
            return;
        }
    }
    let write = |name: &str, bytes: &[u8]| {
        fs::write(out.join(name), bytes).unwrap_or_else(|e| panic!("cannot write {name}: {e}"));
    };
    let mut list = String::from("&[\n");
    for (c_library, bytes) in agents {
        let file = format!("{c_library}-{LIBRARY}");
        write(&file, &bytes);
        let hash: String = Sha256::digest(&bytes).iter().take(8).map(|b| format!("{b:02x}")).collect();
        list += &format!(
            "    Agent {{ c_library: CLibrary::{c_library}, hash: {hash:?}, \
             bytes: include_bytes!(concat!(env!(\"OUT_DIR\"), \"/{file}\")) }},\n"
        );
    }
    write("agents.rs", (list + "]\n").as_bytes());
}

fn rerun_if_changed(file: &Path) {
    println!("cargo::rerun-if-changed={}", file.display());
}

/// Reads an agent. Returns the C library that it is for, and the bytes.
fn read_agent(file: &Path) -> Result<(&'static str, Vec<u8>), String> {
    let bytes = fs::read(file).map_err(|e| format!("cannot read it: {e}"))?;
    let c_library = prebuilt::check(&bytes, &variable("CARGO_PKG_VERSION"), &variable("CARGO_CFG_TARGET_ARCH"))?;
    Ok((c_library, bytes))
}

/// The directory for builds of the agent: the directory that the variable names, or `agent-target`
/// in the outer target directory. The outer target directory is found from `OUT_DIR`, above the
/// folders `build` and the profile's.
fn agent_target(out: &Path) -> PathBuf {
    println!("cargo::rerun-if-env-changed={AGENT_TARGET}");
    if let Some(named) = env::var_os(AGENT_TARGET) {
        return PathBuf::from(named);
    }
    let build = out.ancestors().find(|folder| folder.file_name().is_some_and(|name| name == "build"));
    build.and_then(|build| build.ancestors().nth(2)).unwrap_or(out).join("agent-target")
}

/// Builds the agent for the target of the outer build and returns the library.
fn build(manifest: &Path, target_dir: &Path) -> PathBuf {
    let (host, target) = (variable("HOST"), variable("TARGET"));
    let mut command = Command::new(variable("CARGO"));
    command.args(["build", "--release", "--quiet", "--manifest-path"]).arg(manifest);
    command.arg("--target-dir").arg(target_dir);
    let mut folder = target_dir.to_owned();
    if host != target {
        command.arg("--target").arg(&target);
        folder.push(&target);
    }
    for (name, _) in env::vars_os().filter(|(name, _)| disturbs(name)) {
        command.env_remove(name);
    }
    // Line tables help only to debug the agent; inside the tool they would only add size.
    command.env("CARGO_PROFILE_RELEASE_STRIP", "debuginfo");
    let status = command.status().unwrap_or_else(|e| panic!("cannot start cargo: {e}"));
    assert!(status.success(), "the agent could not be built: {status}");
    folder.join("release").join(LIBRARY)
}

/// Whether a variable must not reach the inner build: flags that the outer build has for the tool
/// (coverage, sanitizers, clippy as the compiler) would produce a different agent.
fn disturbs(name: &OsString) -> bool {
    let Some(name) = name.to_str() else { return false };
    let kept = ["CARGO_HOME", "CARGO_NET_", "CARGO_HTTP_", "CARGO_REGISTR", "CARGO_SOURCE_"];
    let cargo = name.starts_with("CARGO_") && !kept.iter().any(|k| name.starts_with(k));
    cargo || name.ends_with("RUSTFLAGS") || name == "RUSTC_WORKSPACE_WRAPPER" || name == "LD_LIBRARY_PATH"
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| panic!("Cargo sets {name} for build scripts"))
}
