//! `clrscope export`: a recording in the format of another program.

use std::fs;
use std::io::{self, BufWriter, ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use clrscope_analysis::QueryProblem;
use clrscope_export::{ExportError, ExportOptions, Exporter};
use clrscope_recording::model::Recording;
use clrscope_report::exporters;

use crate::errors::{Failure, quoted, reason, shown};
use crate::recording_file::{open_parts, query_failure, resolved};

/// Options of `export`.
#[derive(Debug)]
pub(crate) struct ExportTask {
    /// The recording.
    pub(crate) recording: PathBuf,
    /// Name of the format.
    pub(crate) format: String,
    /// The file; stdout when `None`.
    pub(crate) output: Option<PathBuf>,
    /// Overwrite the file if it exists.
    pub(crate) force: bool,
    /// Selection of the recording's data, and options of the format.
    pub(crate) export: ExportOptions,
}

/// Writes it.
///
/// # Errors
/// When the recording can't be opened, the query not be answered, or the result not be written.
pub(crate) fn perform(options: &ExportTask) -> Result<(), Failure> {
    let format = exporters().find(|format| format.name() == options.format).ok_or_else(|| {
        let what = format!("cannot export to {}", quoted(&options.format));
        Failure::usage(what, "there is no such format", "see 'clrscope export --help'")
    })?;
    let recording = open_parts(&options.recording, &options.export.query.parts)?;
    let export = &ExportOptions { query: resolved(&recording, &options.export.query)?, ..options.export.clone() };
    let result = match &options.output {
        Some(file) => {
            refuse_the_recording(file, &options.recording)?;
            if !options.force && fs::symlink_metadata(file).is_ok_and(|found| !is_passed_through(file, &found)) {
                return Err(taken(file));
            }
            write_file(format, &recording, export, file, options.force)
        }
        None => write_stdout(format, &recording, export),
    };
    result.map_err(|error| failure(options, &error))
}

/// A device, a pipe or a link to one, such as `/dev/stdout`, is written to and keeps its name.
fn is_passed_through(file: &Path, found: &fs::Metadata) -> bool {
    !found.is_file() && fs::metadata(file).is_ok_and(|behind| !behind.is_file())
}

/// As `run` and `pack` do: what is there may be anything.
fn taken(file: &Path) -> Failure {
    let what = format!("cannot write {}", shown(file));
    Failure::new(what, format!("{} exists", shown(file)), "choose another name with -o, or overwrite it with --force")
}

/// A slip of the finger must not cost the recording.
fn refuse_the_recording(file: &Path, recording: &Path) -> Result<(), Failure> {
    let same = fs::canonicalize(file).is_ok_and(|file| fs::canonicalize(recording).is_ok_and(|rec| rec == file));
    match same {
        true => Err(Failure::usage(
            format!("will not write to {}", shown(file)),
            "it is the recording itself",
            "choose another name with -o",
        )),
        false => Ok(()),
    }
}

fn write_stdout(format: &dyn Exporter, recording: &Recording, export: &ExportOptions) -> Result<(), ExportError> {
    let mut out = BufWriter::new(io::stdout().lock());
    match format.write(recording, export, &mut out).and_then(|()| Ok(out.flush()?)) {
        // A reader who has seen enough (`| head`) is no error.
        Err(ExportError::Io(error)) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// A file appears under its name when it is complete. What is no plain file, such as `/dev/stdout`,
/// is written to as it is.
fn write_file(
    format: &dyn Exporter,
    recording: &Recording,
    export: &ExportOptions,
    file: &Path,
    force: bool,
) -> Result<(), ExportError> {
    if fs::metadata(file).is_ok_and(|metadata| !metadata.is_file()) {
        let mut out = BufWriter::new(fs::OpenOptions::new().write(true).open(file)?);
        return format.write(recording, export, &mut out).and_then(|()| Ok(out.flush()?));
    }
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // As any other new file: what it holds was chosen to be passed on.
    let plain = fs::Permissions::from_mode(0o666);
    let draft = tempfile::Builder::new().permissions(plain).tempfile_in(folder)?;
    let mut out = BufWriter::new(draft);
    format.write(recording, export, &mut out)?;
    let draft = out.into_inner().map_err(|error| error.into_error())?;
    let kept = if force { draft.persist(file) } else { draft.persist_noclobber(file) };
    kept.map_err(|error| error.error)?;
    Ok(())
}

fn failure(options: &ExportTask, error: &ExportError) -> Failure {
    let what = format!("cannot export {} to {}", shown(&options.recording), options.format);
    match error {
        ExportError::Query(QueryProblem::NotRecorded { instrument, .. }) => Failure::new(
            what,
            format!("that format needs the instrument '{instrument}', which was not recorded"),
            format!("record it: clrscope run -i {instrument} -- PROGRAM"),
        ),
        ExportError::Query(problem) => query_failure(problem),
        ExportError::Io(error) => Failure::new(what, reason(error), "choose another file with -o"),
        other => Failure::new(what, other.to_string(), "leave filters out, or choose another --metric"),
    }
}
