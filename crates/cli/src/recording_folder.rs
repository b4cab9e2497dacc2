//! The recordings in a folder.

use std::fs;
use std::path::{Path, PathBuf};

use crate::output::file_of;

/// File extension of recordings.
const ENDING: &str = "clrs";

/// Recordings in a folder, ordered by name: files `NAME.clrs`, and directories `NAME.clrs.d`
/// without such a file. `None` if the folder is a recording itself, or has no recordings.
pub(crate) fn recordings_in(folder: &Path) -> Option<Vec<PathBuf>> {
    if !folder.is_dir() || is_recording(folder) {
        return None;
    }
    let entries = fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
    let mut found: Vec<PathBuf> = entries
        .filter(|path| match file_of(path) {
            // The packed file is the same recording.
            Some(file) => path.is_dir() && file.extension().is_some_and(|ending| ending == ENDING) && !file.is_file(),
            None => path.extension().is_some_and(|ending| ending == ENDING) && path.is_file(),
        })
        .collect();
    found.sort();
    (!found.is_empty()).then_some(found)
}

/// Whether a directory is a recording.
fn is_recording(folder: &Path) -> bool {
    let has_process =
        || fs::read_dir(folder).is_ok_and(|entries| entries.flatten().any(|of| of.path().join("process.log").exists()));
    // A recording with a launcher has its log; a recording without one has only processes.
    folder.join("run.log").exists() || file_of(folder).is_some() && has_process()
}
