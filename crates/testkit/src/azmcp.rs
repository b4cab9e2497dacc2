//! A real single-file program on .NET 10: `azmcp`, from an npm package.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use clrscope_dotnet::find::cache_folder;
use sha2::{Digest, Sha256};

use crate::manifest::hex;
use crate::program::clean_environment;
use crate::workspace::scratch;

const PACKAGE: &str = "@azure/mcp-linux-x64@2.0.5";
const FOLDER: &str = "azmcp-2.0.5";
const SHA256: &str = "59e49713045a8c78c4915a6368bfc7688e7e9032a74d1fdf6caaa24d05a4dbdb";

/// `azmcp` in this user's cache; npm fetches it the first time. `None` if npm is missing.
///
/// # Panics
/// When npm is present and does not fetch the expected package.
pub fn azmcp() -> Option<PathBuf> {
    let cache = cache_folder().expect("HOME or XDG_CACHE_HOME is set");
    let program = cache.join(FOLDER).join("package/dist/azmcp");
    if program.is_file() {
        return Some(program);
    }
    if !has_npm() {
        return None;
    }
    fs::create_dir_all(&cache).unwrap_or_else(|error| panic!("{}: {error}", cache.display()));
    let lock = File::create(cache.join("azmcp.lock")).expect("the cache can be written");
    lock.lock().expect("a file can be locked");
    if !program.is_file() {
        fetch(&cache);
    }
    Some(program)
}

/// `azmcp` with these arguments, without a profiler and without telemetry.
pub fn azmcp_command(program: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(program);
    clean_environment(&mut command);
    command.args(arguments).env("AZURE_MCP_COLLECT_TELEMETRY", "false");
    command
}

fn has_npm() -> bool {
    Command::new("npm").arg("--version").output().is_ok_and(|output| output.status.success())
}

fn fetch(cache: &Path) {
    let download = scratch();
    run(Command::new("npm").current_dir(download.path()).args(["pack", "--silent", PACKAGE]));
    let package =
        fs::read_dir(download.path()).expect("it is there").flatten().next().expect("npm packs a file").path();
    let found = hex(&Sha256::digest(fs::read(&package).expect("readable")));
    assert_eq!(found, SHA256, "{PACKAGE} is not the expected package");
    // Fetched next to its final place, so that a rename moves the complete program there at once.
    let unpacked = tempfile::tempdir_in(cache).expect("the cache can be written");
    run(Command::new("tar").arg("-xzf").arg(&package).arg("-C").arg(unpacked.path()));
    fs::rename(unpacked.keep(), cache.join(FOLDER)).expect("the place is free");
}

fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}
