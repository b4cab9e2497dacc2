//! `clrscope cover`: the coverage of a program, or of several recordings together.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clrscope_analysis::{Query, coverage};
use clrscope_contract::request::Request;
use clrscope_export::{ExportError, ExportOptions, exporter};
use clrscope_recording::model::Recording;
use clrscope_report::first_coverage;

use super::print;
use super::run::say_slot;
use crate::errors::{Failure, reason, shell_word, shown};
use crate::launch::{Slot, Stdout, resolve};
use crate::recording_file::{OpenRecording, open, open_together, query_failure};
use crate::session::{FinishedRecording, Plan, record};
use crate::terminal::{message_width, messages_on_terminal, say};
use crate::{programs, result_file, runtime, summary};

/// Exit code if the coverage is below the requested share.
const UNDER: u8 = 1;
/// Width of the printed result, in columns.
const WIDTH: usize = 120;

/// Options of `cover`.
#[derive(Debug)]
pub(crate) struct CoverOptions {
    /// The program to run, or the recordings to read.
    pub(crate) measured: CoverageSubject,
    /// File to write the coverage to as Cobertura XML, if any.
    pub(crate) cobertura: Option<PathBuf>,
    /// Minimum share of covered lines in percent, below which the command fails.
    pub(crate) fail_under: Option<f64>,
    /// Whether to overwrite existing files.
    pub(crate) force: bool,
}

/// Subject of the coverage.
#[derive(Debug)]
pub(crate) enum CoverageSubject {
    /// A program to run.
    Program {
        /// The recording request, without a path.
        request: Box<Request>,
        /// The instruments as the user gave them.
        given: String,
        /// The program and its arguments.
        command: Vec<OsString>,
        /// Name of the recording; taken from the program when `None`.
        output: Option<PathBuf>,
        /// Whether to print nothing but errors.
        quiet: bool,
    },
    /// Existing recordings, taken together.
    Recordings(Vec<PathBuf>),
}

/// Performs the command. Returns the program's exit code, or the code for too little coverage.
///
/// # Errors
/// When the program did not start, or recordings or files can't be read or written.
pub(crate) fn perform(options: CoverOptions) -> Result<u8, Failure> {
    let CoverOptions { measured, cobertura, fail_under, force } = options;
    // Fail now rather than after a long run.
    if let Some(file) = &cobertura {
        result_file::check(file, Path::new(""), force)?;
    }
    match measured {
        CoverageSubject::Recordings(files) => {
            let recording = open_together(&files)?;
            print(&table(&recording, WIDTH)?)?;
            judge(&recording, cobertura.as_deref(), fail_under, force)
        }
        CoverageSubject::Program { request, given, command, output, quiet } => {
            let has_probes = !request.probes.is_empty() || !request.probe_lines.is_empty();
            let recorded = run(*request, &given, &command, output, force, quiet)?;
            let Some(recording) = recorded_coverage(&recorded, quiet)? else {
                let is_judged = fail_under.is_some() && recorded.ended.code() == 0;
                return Ok(if is_judged { UNDER } else { recorded.ended.code() });
            };
            if !quiet {
                say_result(&recording, recorded.path.as_deref(), has_probes)?;
            }
            let verdict = judge(&recording, cobertura.as_deref(), fail_under, force)?;
            Ok(if recorded.ended.code() == 0 { verdict } else { recorded.ended.code() })
        }
    }
}

fn run(
    request: Request,
    given: &str,
    command: &[OsString],
    output: Option<PathBuf>,
    force: bool,
    quiet: bool,
) -> Result<FinishedRecording, Failure> {
    let program = resolve(command, runtime::host)?;
    programs::check(&request.programs, request.trust_writable)?;
    let (slot, other) = Slot::choose(&request)?;
    if !quiet {
        say_slot(other.as_ref());
    }
    record(Plan {
        program: &program,
        command,
        request,
        slot,
        periods: None,
        instruments_given: given,
        output,
        force,
        progress: !quiet && messages_on_terminal(),
        live: false,
        announce: !quiet && messages_on_terminal(),
        stdout: Stdout::Ours,
        debugger: None,
        view: false,
    })
}

/// The recording, if one of its processes has coverage; otherwise prints why there is none.
fn recorded_coverage(recorded: &FinishedRecording, quiet: bool) -> Result<Option<OpenRecording>, Failure> {
    let Some(path) = &recorded.path else {
        summary::after_run(recorded, quiet);
        return Ok(None);
    };
    let recording = open(path)?;
    if coverage(&recording, &Query::default()).is_err() {
        summary::after_run(recorded, quiet);
        return Ok(None);
    }
    Ok(Some(recording))
}

fn say_result(recording: &Recording, path: Option<&Path>, has_probes: bool) -> Result<(), Failure> {
    summary::say_unmatched(recording);
    say(table(recording, message_width())?.trim_end());
    if let Some(path) = path {
        let file = shell_word(&path.to_string_lossy());
        let probes = if has_probes { ", or --view probes" } else { "" };
        say(&format!("clrscope: recorded {}; next: clrscope report {file} --view coverage{probes}", shown(path)));
    }
    Ok(())
}

fn table(recording: &Recording, width: usize) -> Result<String, Failure> {
    first_coverage(recording, &Query::default(), width).map_err(|problem| query_failure(&problem))
}

/// Writes the requested file. Returns the exit code by the share of lines.
fn judge(recording: &Recording, cobertura: Option<&Path>, fail_under: Option<f64>, force: bool) -> Result<u8, Failure> {
    if let Some(file) = cobertura {
        write_cobertura(recording, file, force)?;
    }
    let Some(least) = fail_under else { return Ok(0) };
    let sums = coverage(recording, &Query::default()).map_err(|problem| query_failure(&problem))?.sums();
    let reached = sums.line_share() * 100.0;
    if sums.lines > 0 && reached >= least {
        return Ok(0);
    }
    say(&match sums.lines {
        0 => "clrscope: there was no line to cover, so --fail-under is not reached".to_owned(),
        _ => format!("clrscope: {reached:.2} % of the lines were run, but --fail-under asks for {least} %"),
    });
    Ok(UNDER)
}

fn write_cobertura(recording: &Recording, file: &Path, force: bool) -> Result<(), Failure> {
    let failed = |error: &ExportError| {
        let why = match error {
            ExportError::Io(error) => reason(error),
            other => other.to_string(),
        };
        Failure::new(format!("cannot write {}", shown(file)), why, "choose another file with --cobertura")
    };
    let format = exporter("cobertura").map_err(|error| {
        Failure::new("cannot write Cobertura's XML", error.to_string(), "see 'clrscope export --help'")
    })?;
    // The file has names of files and methods, but no values, and is often read by another user.
    result_file::write(file, force, result_file::PLAIN, |out| format.write(recording, &ExportOptions::default(), out))
        .map_err(|error| failed(&error))
}
