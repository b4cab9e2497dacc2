//! Exports all recordings of a folder, each into its own file.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use clrscope_export::Exporter;

use super::{ExportTask, export_one};
use crate::errors::{Failure, reason, shown};
use crate::output::file_of;
use crate::terminal::say;

/// Writes a file for each recording. A recording that can't be exported is reported, and the others
/// are still exported.
///
/// # Errors
/// When the output folder can't be created, and, at the end, when a recording could not be
/// exported.
pub(super) fn export(options: &ExportTask, format: &dyn Exporter, recordings: &[PathBuf]) -> Result<(), Failure> {
    let what = || format!("cannot export the recordings in {}", shown(&options.recording));
    let Some(output) = &options.output else {
        let why = "each becomes a file, and no folder is named for the files";
        return Err(Failure::usage(what(), why, "write -o FOLDER"));
    };
    fs::create_dir_all(output).map_err(|error| {
        let why = format!("{}: {}", shown(output), reason(&error));
        Failure::new(what(), why, "choose another folder with -o")
    })?;
    let mut failed = 0_usize;
    for recording in recordings {
        let task = ExportTask {
            recording: recording.clone(),
            output: Some(output.join(name(recording, format.extension()))),
            ..options.clone()
        };
        if let Err(failure) = export_one(&task, format) {
            failed += 1;
            let named = shown(recording);
            // Some failures name the recording themselves.
            let what = if failure.what().contains(&named) { String::new() } else { format!("{named}: ") };
            say(&format!("clrscope: {what}{}: {}", failure.what(), failure.why()));
        }
    }
    if failed == 0 {
        return Ok(());
    }
    let what = format!("cannot export {failed} of {} recordings in {}", recordings.len(), shown(&options.recording));
    Err(Failure::new(what, "each is named above with the reason", "fix these; the others were exported"))
}

/// File name of an export: the recording's name with the extension of the format.
fn name(recording: &Path, extension: &str) -> OsString {
    let file = file_of(recording);
    let mut name = file.as_deref().unwrap_or(recording).file_stem().unwrap_or_default().to_owned();
    name.push(".");
    name.push(extension);
    name
}
