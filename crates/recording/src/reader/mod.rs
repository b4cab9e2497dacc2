//! Reading a recording: a directory that may still grow, or one packed file.
//!
//! A recording is hostile input. The reader checks every offset and bounds every loop by the size
//! of the data. Data that can't be read becomes a [`Problem`](crate::model::Problem).

mod blocks;
mod dictionary;
mod directory;
mod ending;
mod events;
mod parts;
mod period;
mod process;
mod recent;
mod segment;
mod segment_file;
mod stacks;
mod state;
mod threads;
mod written_periods;

pub use period::Period;
pub use written_periods::{EndOfPeriod, WrittenPeriods, written_periods};

use std::io;
use std::path::{Path, PathBuf};

use crate::layout::VERSION;
use crate::model::Recording;
use crate::open_error::{OpenError, not_empty};
use crate::packed;
use crate::writer::id_of_period;

/// Opens the recording at `path`: `NAME.clrs` or `NAME.clrs.d`. If only the directory exists,
/// `NAME.clrs` opens it too.
///
/// # Errors
/// Only when nothing of the recording can be read. Damage is listed in [`Recording::problems`].
pub fn open(path: &Path) -> Result<Recording, OpenError> {
    open_exactly(&locate(path)?)
}

/// Opens what is at `path` and nothing else.
pub(crate) fn open_exactly(path: &Path) -> Result<Recording, OpenError> {
    match path.metadata() {
        Ok(found) if found.is_dir() => {
            let read = not_empty(path, directory::read(path, None, ending::Now::read())?);
            read.map_err(|error| match directory::other_version(path) {
                Some(found) => OpenError::Version { path: path.to_owned(), found, newest: VERSION },
                None => error,
            })
        }
        Ok(_) => packed::open(path),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(OpenError::NotFound(path.to_owned())),
        Err(error) => Err(OpenError::Io(path.to_owned(), error)),
    }
}

/// Opens one period of a recording that the launcher wrote in periods to `folder`. The period has
/// an identifier of its own, which is the same each time the period is opened.
///
/// # Errors
/// As for [`open`].
pub fn open_period(folder: &Path, period: &Period<'_>) -> Result<Recording, OpenError> {
    period.forget_over();
    let mut recording = directory::read(folder, Some(period), ending::Now::read())?;
    recording.run.id = id_of_period(&recording.run.id, period.number());
    Ok(recording)
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
