//! Marks on recordings that are still to be pushed, so that a later launcher pushes what a killed
//! one could not.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use clrscope_recording::writer::lock_at;

use super::names::is_recording;

/// End of a mark's name, behind that of the recording.
const MARK: &str = ".unpushed";

/// A recording that is to be pushed. Its mark is an empty file, locked by the process that pushes
/// the recording: the lock ends with that process.
#[derive(Debug)]
pub(crate) struct Unpushed {
    recording: PathBuf,
    /// `None` where the mark could not be made, as on a full disk.
    mark: Option<Mark>,
}

#[derive(Debug)]
struct Mark {
    path: PathBuf,
    _lock: File,
}

impl Unpushed {
    /// Marks a recording before it is written.
    pub(super) fn new(recording: &Path) -> Self {
        let mut path = recording.as_os_str().to_owned();
        path.push(MARK);
        let path = PathBuf::from(path);
        let lock = lock(&path, true).ok();
        Self { recording: recording.to_owned(), mark: lock.map(|lock| Mark { path, _lock: lock }) }
    }

    /// The marked recordings in `folder` that no process is about to push.
    pub(super) fn left_in(folder: &Path) -> Vec<Self> {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut found: Vec<Self> = entries
            .filter_map(|entry| {
                let name = entry.file_name().into_string().ok()?;
                let recording = name.strip_suffix(MARK).filter(|name| is_recording(name))?;
                let lock = lock(&entry.path(), false).ok()?;
                let mark = Mark { path: entry.path(), _lock: lock };
                Some(Self { recording: folder.join(recording), mark: Some(mark) })
            })
            .collect();
        found.sort_by(|a, b| a.recording.cmp(&b.recording));
        found
    }

    /// The recording.
    pub(super) fn recording(&self) -> &Path {
        &self.recording
    }

    /// Removes the mark: the recording is pushed, or there is none.
    pub(super) fn done(self) {
        if let Some(mark) = self.mark {
            // Still locked, so that no other process has taken it.
            let _ = fs::remove_file(mark.path);
        }
    }
}

/// Opens a mark and locks it.
///
/// # Errors
/// When another process has it, or it is gone.
fn lock(path: &Path, is_new: bool) -> io::Result<File> {
    let file = File::options().read(true).write(true).create(is_new).truncate(false).open(path)?;
    lock_at(file, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_is_left_until_it_is_pushed_and_only_when_its_process_has_ended() {
        let folder = tempfile::tempdir().expect("a folder");
        let recording = folder.path().join("shop-20261130T083804Z.clrs");
        let left = || Unpushed::left_in(folder.path());
        let mark = Unpushed::new(&recording);
        assert!(left().is_empty(), "this process is about to push it");
        drop(mark);
        let again = left();
        assert_eq!(again.iter().map(Unpushed::recording).collect::<Vec<_>>(), [recording]);
        assert!(left().is_empty(), "taken");
        again.into_iter().for_each(Unpushed::done);
        assert!(left().is_empty());
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0);
    }

    #[test]
    fn marks_of_others_are_left_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("mine.unpushed"), "").expect("a file");
        assert!(Unpushed::left_in(folder.path()).is_empty());
    }
}
