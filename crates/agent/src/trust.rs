//! Who could change what we load and write: an agent in somebody's process is a way in, so its file,
//! the folders above it and the recording directory must be safe from others.

use std::ffi::CStr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Checks the library this code was loaded from and every folder above it.
///
/// # Errors
/// A sentence that names what others can write.
pub(crate) fn check_own_file() -> Result<(), String> {
    let Some(file) = own_file() else { return Ok(()) };
    let mut path = Some(file.as_path());
    while let Some(here) = path {
        check(here)?;
        path = here.parent();
    }
    Ok(())
}

/// Checks the recording directory, if it is there already, and the folder it lies in.
///
/// # Errors
/// A sentence that names what others can write.
pub(crate) fn check_folder(folder: &Path) -> Result<(), String> {
    if folder.exists() {
        check(folder)?;
    }
    match folder.parent() {
        Some(parent) if parent.exists() => check(parent),
        _ => Ok(()),
    }
}

/// One file or folder: it must be ours or root's, and nobody else may write it. A sticky folder such
/// as `/tmp` is fine: others can't replace what is ours there.
fn check(path: &Path) -> Result<(), String> {
    let Ok(meta) = std::fs::metadata(path) else { return Ok(()) };
    // SAFETY: no arguments.
    let me = unsafe { libc::geteuid() };
    let sticky = meta.is_dir() && meta.mode() & libc::S_ISVTX != 0;
    if meta.uid() != me && meta.uid() != 0 && !sticky {
        return Err(format!("{} belongs to another user", path.display()));
    }
    if meta.mode() & 0o022 != 0 && !sticky && !group_is_own(&meta) {
        return Err(format!("{} can be written by others", path.display()));
    }
    Ok(())
}

/// A group write bit is harmless where the group is the user's own or root's.
fn group_is_own(meta: &std::fs::Metadata) -> bool {
    let only_group = meta.mode() & 0o002 == 0;
    only_group && (meta.gid() == 0 || meta.gid() == meta.uid())
}

fn own_file() -> Option<PathBuf> {
    // SAFETY: asks the loader about an address of this library; the name lives as long as the library.
    unsafe {
        let mut info: libc::Dl_info = std::mem::zeroed();
        if libc::dladdr(own_file as *const libc::c_void, &mut info) == 0 || info.dli_fname.is_null() {
            return None;
        }
        let name = CStr::from_ptr(info.dli_fname).to_str().ok()?;
        std::fs::canonicalize(name).ok()
    }
}
