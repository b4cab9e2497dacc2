//! `clrscope export`: writes a recording in the format of another program.

mod dataset;
mod folder;

use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};

use clrscope_analysis::QueryProblem;
use clrscope_export::{ExportError, ExportOptions, Exporter, check};
use clrscope_recording::model::Recording;
use clrscope_report::exporters;

use crate::errors::{Failure, quoted, reason, shown};
use crate::progress::Shown;
use crate::recording_file::{open_for, query_failure, record_it, resolved};
use crate::recording_folder::recordings_in;
use crate::result_file;

/// Options of `export`.
#[derive(Debug, Clone)]
pub(crate) struct ExportTask {
    /// The recording, or a folder of recordings.
    pub(crate) recording: PathBuf,
    /// Name of the format.
    pub(crate) format: String,
    /// The file, or the output folder for a folder of recordings; stdout when `None`.
    pub(crate) output: Option<PathBuf>,
    /// Whether to overwrite the file if it exists.
    pub(crate) force: bool,
    /// Selection of the recording's data, and options of the format.
    pub(crate) export: ExportOptions,
}

/// Writes the export.
///
/// # Errors
/// When the recording can't be opened, the query can't be answered, or the result can't be written.
pub(crate) fn perform(options: &ExportTask) -> Result<(), Failure> {
    if options.format == clrscope_export::dataset::NAME {
        return dataset::export(options);
    }
    let format = exporters().find(|format| format.name() == options.format).ok_or_else(|| {
        let what = format!("cannot export to {}", quoted(&options.format));
        Failure::usage(what, "there is no such format", "see 'clrscope export --help'")
    })?;
    let failed = |error: ExportError| failure(&options.recording, &options.format, &error);
    check(format, &options.export).map_err(failed)?;
    match recordings_in(&options.recording) {
        Some(recordings) => folder::export(options, format, &recordings),
        None => export_one(options, format),
    }
}

/// Writes one recording.
fn export_one(options: &ExportTask, format: &dyn Exporter) -> Result<(), Failure> {
    let failed = |error: ExportError| failure(&options.recording, &options.format, &error);
    let reading = Shown::work("reading the recording");
    let recording = open_for(&options.recording, &options.export.query)?;
    drop(reading);
    let export = &ExportOptions { query: resolved(&recording, &options.export.query)?, ..options.export.clone() };
    let result = match &options.output {
        Some(file) => {
            result_file::check(file, &options.recording, options.force)?;
            let _writing = Shown::work("writing the export");
            let mode = result_file::mode_of([&*options.recording]);
            result_file::write(file, options.force, mode, |out| format.write(&recording, export, out))
        }
        None => write_stdout(format, &recording, export),
    };
    result.map_err(failed)
}

fn write_stdout(format: &dyn Exporter, recording: &Recording, export: &ExportOptions) -> Result<(), ExportError> {
    let mut out = BufWriter::new(io::stdout().lock());
    match format.write(recording, export, &mut out).and_then(|()| Ok(out.flush()?)) {
        // A reader that closes the pipe (`| head`) is no error.
        Err(ExportError::Io(error)) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// Failure of an export, as three lines.
pub(super) fn failure(recording: &Path, format: &str, error: &ExportError) -> Failure {
    let what = format!("cannot export {} to {format}", shown(recording));
    match error {
        ExportError::Query(QueryProblem::NotRecorded { instrument, .. }) => Failure::new(
            what,
            format!("that format needs the instrument '{instrument}', which was not recorded"),
            record_it(instrument),
        ),
        // The format itself refuses the option, not a view that it uses.
        ExportError::Query(QueryProblem::NotAvailable { option, view, why }) if *view == format => {
            Failure::usage(what, format!("{option} is not available for that format: {why}"), "leave the option out")
        }
        ExportError::Query(problem) => query_failure(problem),
        ExportError::Io(error) => Failure::new(what, reason(error), "choose another file with -o"),
        other => Failure::new(what, other.to_string(), "leave filters out, or choose another --metric"),
    }
}
