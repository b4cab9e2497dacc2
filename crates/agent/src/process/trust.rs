//! Trust in the owners of what we load and write: an agent in a process is a way into it, so its
//! file, the folders above it and the recording directory must be safe from others.

use std::ffi::CStr;
use std::path::{Path, PathBuf};

use clrscope_contract::trust::{Weakness, check, check_with_folders};

/// Checks the library this code was loaded from and every folder above it.
///
/// # Errors
/// A sentence that names what others can write.
pub(crate) fn check_own_file() -> Result<(), String> {
    own_file().map_or(Ok(()), |file| check_with_folders(&file).map_err(in_words))
}

/// Checks the recording directory, if it is there already, and the folder it lies in.
///
/// # Errors
/// A sentence that names what others can write.
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
