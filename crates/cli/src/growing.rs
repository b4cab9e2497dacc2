//! Recordings that still grow, and are packed into a file when their program has ended.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use clrscope_recording::model::{LossReason, Process};

use crate::errors::Failure;
use crate::output::file_of;
use crate::recording_file::{OpenRecording, open};

/// Whether there are processes, and recording has ended in all of them.
pub(crate) fn are_over(processes: &[Process]) -> bool {
    let is_over = |process: &Process| {
        process.complete
            || process.exit.is_some()
            || process.has_lost(LossReason::Stopped)
            || process.has_lost(LossReason::AbruptEnd)
    };
    !processes.is_empty() && processes.iter().all(is_over)
}

/// A recording that is packed into a file when its program has ended.
#[derive(Debug)]
pub(crate) struct Growing {
    path: PathBuf,
    file: PathBuf,
    /// Identity of an older recording at the path `file`.
    older: Option<Identity>,
}

/// Identity of a file, independent of its name.
type Identity = (u64, u64, i64, i64);

impl Growing {
    /// The recording at `path`.
    pub(crate) fn new(path: &Path) -> Self {
        let file = file_of(path).unwrap_or_else(|| path.to_owned());
        let older = if file == path { None } else { identity(&file) };
        Self { path: path.to_owned(), file, older }
    }

    /// The recording in the directory `folder` that will be packed into `file`, which may have any
    /// name.
    pub(crate) fn becoming(folder: &Path, file: &Path) -> Self {
        Self { path: folder.to_owned(), file: file.to_owned(), older: identity(file) }
    }

    /// Whether the packed file exists.
    pub(crate) fn is_packed(&self) -> bool {
        self.file != self.path && identity(&self.file).is_some_and(|now| Some(now) != self.older)
    }

    /// Opens the recording in its current form: the directory, or the packed file.
    ///
    /// # Errors
    /// When neither can be read.
    pub(crate) fn open(&self) -> Result<OpenRecording, Failure> {
        let opened = open(&self.path);
        // The directory may have been removed while it was read, because the packed file is
        // complete.
        if self.is_packed() { open(&self.file) } else { opened }
    }
}

fn identity(file: &Path) -> Option<Identity> {
    let about = file.metadata().ok().filter(std::fs::Metadata::is_file)?;
    Some((about.dev(), about.ino(), about.mtime(), about.mtime_nsec()))
}

#[cfg(test)]
mod tests {
    use clrscope_recording::model::Loss;

    use super::*;

    #[test]
    fn a_process_is_over_when_it_says_so_or_has_gone_or_was_told_to_stop() {
        let stopped = Loss::new(LossReason::Stopped, 1, 0, 0);
        let runs = Process::default();
        let complete = Process { complete: true, ..Process::default() };
        let stopped_one = Process { losses: vec![stopped], ..Process::default() };
        assert!(!are_over(&[]), "none has begun");
        assert!(are_over(&[complete.clone(), stopped_one]));
        assert!(!are_over(&[complete, runs]));
    }

    #[test]
    fn a_file_that_was_there_before_is_not_the_packed_recording() {
        let folder = tempfile::tempdir().expect("a folder");
        let (directory, file) = (folder.path().join("a.clrs.d"), folder.path().join("a.clrs"));
        std::fs::write(&file, b"older").expect("a file");
        let place = Growing::new(&directory);
        assert!(place.open().expect_err("neither is there").to_string().contains("a.clrs.d"));
        std::fs::remove_file(&file).expect("removed");
        std::fs::write(&file, b"newer").expect("a file");
        assert!(!place.open().expect_err("no recording").to_string().contains("a.clrs.d"));
    }
}
