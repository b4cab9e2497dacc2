//! Adds recordings to a data set.

use std::path::{Path, PathBuf};

use clrscope_analysis::{Query, numbers};
use clrscope_export::ExportOptions;
use clrscope_export::dataset::{Dataset, DatasetError};

use super::{ExportTask, failure};
use crate::errors::{Failure, quoted, reason, shown};
use crate::progress::Shown;
use crate::recording_file::open_for;
use crate::recording_folder::recordings_in;
use crate::result_file;
use crate::terminal::say;

/// Adds a recording, or all recordings of a folder. A recording that can't be added is reported,
/// and the others are still added.
///
/// # Errors
/// When options select parts of recordings, the data set can't be written, or, at the end, when a
/// recording could not be added.
pub(super) fn export(options: &ExportTask) -> Result<(), Failure> {
    let folder = checked(options)?;
    let recordings = recordings_in(&options.recording).unwrap_or_else(|| vec![options.recording.clone()]);
    if let [only] = &recordings[..] {
        // Before anything is created.
        open_for(only, &Query::default())?;
    }
    let mode = result_file::mode_of(recordings.iter().map(|path| &**path));
    let mut dataset = Dataset::open(folder, mode).map_err(|error| cannot_write(folder, &error))?;
    let (mut failed, mut known) = (0_usize, 0_usize);
    let adding = Shown::work("adding recordings");
    for recording in &recordings {
        match add(&mut dataset, recording) {
            Ok(true) => {}
            Ok(false) => known += 1,
            Err(Trouble::Recording(failure)) => {
                failed += 1;
                say(&format!("clrscope: {} is left out: {}", shown(recording), failure.why()));
            }
            Err(Trouble::Dataset(error)) => return Err(cannot_write(folder, &error)),
        }
    }
    let size = dataset.finish().map_err(|error| cannot_write(folder, &error))?;
    drop(adding);
    let some =
        |number: usize| format!("{} recording{}", numbers::number(number as u64), if number == 1 { "" } else { "s" });
    let before = if known > 0 { format!(", {} it had already", some(known)) } else { String::new() };
    let (added, bytes) = (some(size.added as usize), numbers::bytes(size.bytes));
    say(&format!("clrscope: {added} added to {}{before}; it has {bytes} in {} files", shown(folder), size.files));
    if failed == 0 {
        return Ok(());
    }
    let what = format!("cannot add {failed} of {} to {}", some(recordings.len()), shown(folder));
    Err(Failure::new(what, "each is named above with the reason", "fix these; the others were added"))
}

/// Reason why a recording was not added.
enum Trouble {
    /// The recording.
    Recording(Failure),
    /// The data set.
    Dataset(DatasetError),
}

fn add(dataset: &mut Dataset, path: &Path) -> Result<bool, Trouble> {
    let recording = open_for(path, &Query::default()).map_err(Trouble::Recording)?;
    dataset.add(&recording).map_err(|error| match error {
        DatasetError::Recording(error) => Trouble::Recording(failure(path, clrscope_export::dataset::NAME, &error)),
        other => Trouble::Dataset(other),
    })
}

/// The folder of the data set, where the options are such as it takes.
fn checked(options: &ExportTask) -> Result<&PathBuf, Failure> {
    let Some(folder) = &options.output else {
        let why = "a data set is a folder, to which recordings are added";
        return Err(Failure::usage("cannot export to dataset", why, "write -o FOLDER"));
    };
    if options.export != ExportOptions::default() {
        let why = "a data set has whole recordings, so that all queries over it mean the same";
        return Err(Failure::usage("a data set takes no filters", why, "leave the filters out; queries select"));
    }
    if options.force {
        let why = "recordings are added to a data set, and nothing in it is overwritten";
        return Err(Failure::usage("'--force' is not for a data set", why, "leave it out"));
    }
    Ok(folder)
}

fn cannot_write(folder: &Path, error: &DatasetError) -> Failure {
    let what = format!("cannot write the data set {}", shown(folder));
    match error {
        DatasetError::Io(path, error) => {
            Failure::new(what, format!("{}: {}", shown(path), reason(error)), "choose another folder with -o")
        }
        DatasetError::NotADataset(_) => {
            let why = "the folder has files, but is not a data set of clrscope";
            Failure::new(what, why, "name a new folder, an empty one, or a data set")
        }
        DatasetError::Busy(_) => {
            Failure::new(what, "another clrscope writes to it", "try again when the other one has ended")
        }
        DatasetError::Damaged(path, why) => {
            let why = format!("{}: {why}", quoted(&path.to_string_lossy()));
            Failure::new(what, why, "move that file away; the recordings in it can be added again")
        }
        other => Failure::new(what, other.to_string(), "choose another folder with -o"),
    }
}
