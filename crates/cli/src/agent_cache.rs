//! The folders of agents in the cache: each version of clrscope has its own, and folders that were
//! not used for a long time are removed.
//!
//! A folder that may still be needed stays. A launcher holds a lock on the folder of its agent
//! while it runs, because its program may start other programs at any time. `clrscope env` marks
//! the folder whose path it prints, because it is unknown how long the path is used. A library that
//! a process has loaded stays mapped even if its file is removed.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime};

/// Prefix of the names of all folders of agents, before the hash.
const PREFIX: &str = "agent-";
/// A folder with this file is never removed.
const KEEP: &str = "named-by-env";
/// A folder that was not used for this time is removed.
const LONG: Duration = Duration::from_secs(60 * 24 * 60 * 60);
/// Attempts to lock a folder, which another process may remove between its creation and the lock.
const ATTEMPTS: u32 = 5;

/// Locks that last as long as this process.
static HELD: Mutex<Vec<File>> = Mutex::new(Vec::new());

/// Creates the folder of the agent with this hash, and prevents its removal by other processes
/// while this process lives.
///
/// # Errors
/// When it can't be made.
pub(crate) fn folder_in_use(root: &Path, hash: &str) -> io::Result<PathBuf> {
    let folder = root.join(format!("{PREFIX}{hash}"));
    for _ in 0..ATTEMPTS {
        DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        let file = File::open(&folder)?;
        // On file systems without locks only its age protects the folder.
        let _ = file.lock_shared();
        let inode = file.metadata()?.ino();
        if fs::metadata(&folder).is_ok_and(|now| now.ino() == inode) {
            // If the time can't be set, the folder belongs to another user and is refused soon
            // after.
            let _ = file.set_modified(SystemTime::now());
            HELD.lock().unwrap_or_else(PoisonError::into_inner).push(file);
            break;
        }
    }
    fs::canonicalize(&folder)
}

/// Keeps the folder for ever.
///
/// # Errors
/// When the mark can't be written.
pub(crate) fn keep(folder: &Path) -> io::Result<()> {
    File::options().append(true).create(true).open(folder.join(KEEP)).map(drop)
}

/// Removes the folders of other agents that were not used for a long time and that no process has
/// locked. Folders that can't be removed stay.
pub(crate) fn remove_unused(root: &Path, library: &str) {
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        if entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes()) {
            let _ = remove_if_unused(&entry.path(), library);
        }
    }
}

fn remove_if_unused(folder: &Path, library: &str) -> io::Result<()> {
    let found = fs::symlink_metadata(folder)?;
    let old = found.modified()?.elapsed().is_ok_and(|age| age > LONG);
    if !found.is_dir() || !old || folder.join(KEEP).exists() {
        return Ok(());
    }
    let file = File::open(folder)?;
    // Without the lock a process uses the folder, or it is unknown whether one does.
    if file.try_lock().is_err() {
        return Ok(());
    }
    // Removes only our own files; if the folder has other files, it stays.
    for entry in fs::read_dir(folder)?.flatten() {
        if entry.file_name().to_string_lossy().contains(library) {
            fs::remove_file(entry.path())?;
        }
    }
    fs::remove_dir(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn old(root: &Path, name: &str) -> PathBuf {
        let folder = root.join(name);
        fs::create_dir(&folder).expect("a folder");
        fs::write(folder.join("agent.so"), "a library").expect("a file");
        age(&folder);
        folder
    }

    fn age(folder: &Path) {
        let long_ago = SystemTime::now() - 2 * LONG;
        File::open(folder).expect("the folder").set_modified(long_ago).expect("its time");
    }

    #[test]
    fn only_folders_that_nobody_can_need_are_removed() {
        let temp = tempfile::tempdir().expect("a folder");
        let root = temp.path();
        let folders = ["agent-old", "agent-kept", "agent-held", "agent-new", "agent-other", "dotnet-8"];
        let [unused, kept, held, new, other, dotnet] = folders.map(|name| old(root, name));
        keep(&kept).expect("a mark");
        fs::write(other.join("thesis.txt"), "years of work").expect("a file");
        [&kept, &other].into_iter().for_each(|folder| age(folder));
        fs::write(new.join("x"), "").expect("a file");
        File::open(&new).expect("the folder").set_modified(SystemTime::now()).expect("its time");
        let lock = File::open(&held).expect("the folder");
        lock.lock_shared().expect("a lock");
        remove_unused(root, "agent.so");
        assert!(!unused.exists(), "nobody needs it");
        assert!([&kept, &held, &new, &dotnet].iter().all(|folder| folder.join("agent.so").exists()));
        assert!(other.join("thesis.txt").exists());
        drop(lock);
        remove_unused(root, "agent.so");
        assert!(!held.exists(), "its launcher has ended");
    }

    #[test]
    fn a_folder_in_use_is_new_again_and_held() {
        let temp = tempfile::tempdir().expect("a folder");
        let folder = old(temp.path(), "agent-1");
        folder_in_use(temp.path(), "1").expect("the folder");
        age(&folder);
        remove_unused(temp.path(), "agent.so");
        assert!(folder.join("agent.so").exists());
    }
}
