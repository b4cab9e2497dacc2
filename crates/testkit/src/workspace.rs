//! Places: the workspace, its target folder, the fixtures, the kit.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The root of the workspace.
pub fn workspace_root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).expect("crates/testkit lies two folders below the root").to_path_buf()
}

/// Cargo's target folder for this workspace.
pub fn target_folder() -> PathBuf {
    let folder = env::var_os("CARGO_TARGET_DIR").map_or_else(|| PathBuf::from("target"), PathBuf::from);
    workspace_root().join(folder)
}

/// A committed program: `dotnet/fixtures/bin/NAME.dll`. Its `.runtimeconfig.json` stands next to
/// it.
///
/// # Panics
/// When there is no program of this name.
pub fn fixture(name: &str) -> PathBuf {
    let dll = workspace_root().join("dotnet/fixtures/bin").join(format!("{name}.dll"));
    assert!(dll.is_file(), "no fixture {name}: {} is missing; `cargo xtask fixtures` builds them", dll.display());
    dll
}

/// A fresh folder that is removed when the value is dropped.
///
/// # Panics
/// When it cannot be made.
pub fn scratch() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("clrscope-test-").tempdir().expect("a temporary folder can be made")
}

/// The unpacked .NET kit (an SDK and runtimes 8, 9 and 10); `None` if there is no
/// `../shared/dotnet-kit` next to the workspace. Unpacking takes a minute the first time.
///
/// # Panics
/// When the kit is present and does not unpack.
pub fn kit() -> Option<&'static Path> {
    static KIT: OnceLock<Option<PathBuf>> = OnceLock::new();
    KIT.get_or_init(unpack_kit).as_deref()
}

fn unpack_kit() -> Option<PathBuf> {
    let install = workspace_root().join("../shared/dotnet-kit/install");
    if !install.is_file() {
        return None;
    }
    let output = Command::new(&install).output().expect("the kit's install script starts");
    assert!(output.status.success(), "{}: {}", install.display(), String::from_utf8_lossy(&output.stderr));
    Some(PathBuf::from(String::from_utf8(output.stdout).expect("a path in UTF-8").trim()))
}
