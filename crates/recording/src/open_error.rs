//! Reasons why a recording could not be opened.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::model::{Problem, Recording};

/// Reason why a recording can't be read at all.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// There is neither a file nor a directory.
    NotFound(PathBuf),
    /// The system reported an error.
    Io(PathBuf, io::Error),
    /// The path exists, but is not a recording.
    NotARecording(PathBuf, &'static str),
    /// The path is a recording, but nothing in it can be read. The problem is that of its first
    /// part.
    Unreadable(PathBuf, Problem),
    /// The path is a recording in a version of the format that this clrscope can't read.
    Version {
        /// The file.
        path: PathBuf,
        /// Version of the recording.
        found: u32,
        /// The newest version that this clrscope can read.
        newest: u32,
    },
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound(path) => write!(f, "{} does not exist", path.display()),
            Self::Io(path, error) => write!(f, "{} can't be read: {error}", path.display()),
            Self::NotARecording(path, why) => write!(f, "{} is not a recording: {why}", path.display()),
            Self::Unreadable(path, Problem { place, what }) => {
                write!(f, "nothing of {} can be read: {place} {what}", path.display())
            }
            Self::Version { path, found, newest } => {
                let (which, reads) = if found > newest { ("a newer", "up to ") } else { ("an older", "") };
                let path = path.display();
                write!(f, "{path} was made by {which} clrscope: its format is {found}, this one reads {reads}{newest}")
            }
        }
    }
}

impl std::error::Error for OpenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io(_, error) => Some(error),
            _ => None,
        }
    }
}

/// Refuses a recording if nothing in it could be read: otherwise its report would look like that of
/// an empty run.
pub(crate) fn not_empty(path: &Path, recording: Recording) -> Result<Recording, OpenError> {
    let nothing = recording.processes.is_empty() && recording.run.started_unix_ns == 0;
    match recording.problems.first() {
        Some(problem) if nothing => Err(OpenError::Unreadable(path.to_owned(), problem.clone())),
        _ => Ok(recording),
    }
}
