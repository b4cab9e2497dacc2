//! `dotnet/sources.sha256`: the compiled programs and their sources.
//!
//! The manifest lists the SHA-256 of every source and compiled program in `dotnet/` (but not of
//! documentation), and the compiler. It reveals a stale program where there is no SDK: a source
//! that was edited without `cargo xtask fixtures` no longer matches its line.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::workspace::workspace_root;

/// The file's name within `dotnet/`.
pub const NAME: &str = "sources.sha256";
/// Folders without sources of committed programs: build leftovers, and programs that are compiled
/// when they are run.
const LEFT_OUT: [&str; 2] = ["obj", "findings"];

/// Returns the manifest for the current files in `dotnet/`, with `compiler` as the compiler that
/// built them.
///
/// # Panics
/// When a file cannot be read.
pub fn manifest_text(dotnet: &Path, compiler: &str) -> String {
    let mut files = Vec::new();
    collect(dotnet, &mut files);
    files.sort();
    let mut text = format!("# {compiler}\n");
    for file in files {
        let name = file.strip_prefix(dotnet).expect("lies within").to_str().expect("names are UTF-8");
        let bytes = fs::read(&file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        writeln!(text, "{}  {name}", hex(&Sha256::digest(bytes))).expect("a String takes all");
    }
    text
}

/// The committed manifest.
///
/// # Panics
/// When it cannot be read.
pub fn committed() -> String {
    let path = workspace_root().join("dotnet").join(NAME);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The compiler that the committed manifest names.
pub fn compiler(manifest: &str) -> &str {
    manifest.lines().next().and_then(|line| line.strip_prefix("# ")).unwrap_or_default()
}

/// Lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").expect("a String takes all");
        text
    })
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            if LEFT_OUT.iter().all(|name| entry.file_name() != *name) {
                collect(&path, files);
            }
        } else if entry.file_name() != NAME && path.extension().is_none_or(|end| end != "md") {
            files.push(path);
        }
    }
}
