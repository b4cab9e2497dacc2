//! Checks who can change the files that we load and write. Users who can change the agent's file
//! can run code in the process, so that file, the folders above it and the recording directory must
//! not be writable by other users.

use std::ffi::CStr;
use std::path::{Path, PathBuf};

use clrscope_contract::trust::{Weakness, check, check_with_folders};

/// Checks the library that this code was loaded from, and every folder above it.
///
/// # Errors
/// A sentence that names the file or folder that others can write.
pub(crate) fn check_own_file() -> Result<(), String> {
    own_file().map_or(Ok(()), |file| check_with_folders(&file).map_err(in_words))
}

/// Checks the recording directory, if it exists already, and its parent folder.
///
/// # Errors
/// A sentence that names the file or folder that others can write.
pub(crate) fn check_folder(folder: &Path) -> Result<(), String> {
    if folder.exists() {
        check(folder).map_err(in_words)?;
    }
    match folder.parent() {
        Some(parent) if parent.exists() => check(parent).map_err(in_words),
        _ => Ok(()),
    }
}

fn in_words(weakness: Weakness) -> String {
    weakness.to_string()
}

fn own_file() -> Option<PathBuf> {
    // SAFETY: asks the loader about an address of this library; the name lives as long as the
    // library.
    unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        if libc::dladdr(own_file as *const libc::c_void, &mut info) == 0 || info.dli_fname.is_null() {
            return None;
        }
        let name = CStr::from_ptr(info.dli_fname).to_str().ok()?;
        std::fs::canonicalize(name).ok()
    }
}
