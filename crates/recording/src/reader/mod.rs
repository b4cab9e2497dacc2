//! Reading a recording: a directory that may still grow, or one packed file.
//!
//! A recording is hostile input. Every offset is checked, every loop is bounded by the size of what
//! is there, and whatever can't be read becomes a [`Problem`](crate::model::Problem).

mod blocks;
mod directory;
mod log;
mod process;
mod segment;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use crate::model::Recording;

/// Why a recording can't be read at all.
#[derive(Debug)]
#[non_exhaustive]
pub enum OpenError {
    /// Neither a file nor a directory is there.
    NotFound(PathBuf),
    /// The system refused.
    Io(PathBuf, io::Error),
    /// It is there, but it is no recording.
    NotARecording(PathBuf, &'static str),
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound(path) => write!(f, "{} does not exist", path.display()),
            Self::Io(path, error) => write!(f, "{} can't be read: {error}", path.display()),
            Self::NotARecording(path, why) => write!(f, "{} is not a recording: {why}", path.display()),
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

/// Opens `NAME.clrs`, `NAME.clrs.d`, or `NAME.clrs` where only the directory exists.
///
/// # Errors
/// Only when nothing of it can be read; damage is in [`Recording::problems`].
pub fn open(path: &Path) -> Result<Recording, OpenError> {
    let path = locate(path)?;
    directory::read(&path)
}

/// The file or directory that `path` means.
fn locate(path: &Path) -> Result<PathBuf, OpenError> {
    let mut directory = path.as_os_str().to_owned();
    directory.push(".d");
    [path.to_owned(), PathBuf::from(directory)]
        .into_iter()
        .find(|candidate| candidate.exists())
        .ok_or_else(|| OpenError::NotFound(path.to_owned()))
}
