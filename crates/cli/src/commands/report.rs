//! `clrscope report`: one view of a recording in one format.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clrscope_analysis::RequestFilter;
use clrscope_report::{Format, Report, Request, View};

use super::follow::{Poll, follow};
use super::thread_files::ThreadFiles;
use crate::errors::{Failure, reason, shown};
use crate::progress::Shown;
use crate::recording_file::{newest_here, open_for, query_failure, resolved};
use crate::result_file;
use crate::summary::say_unmatched;
use crate::terminal;

/// Options of `report`.
#[derive(Debug)]
pub(crate) struct ReportOptions {
    /// The recording; the newest in the current folder when `None`.
    pub(crate) recording: Option<PathBuf>,
    /// The view.
    pub(crate) view: &'static View,
    /// The format.
    pub(crate) format: Format,
    /// Which of the recording's data to report, and with which columns.
    pub(crate) request: Request,
    /// The file for a page, or the folder for one file per thread; stdout when `None`.
    pub(crate) output: Option<PathBuf>,
    /// Whether to overwrite the page's file if it exists.
    pub(crate) force: bool,
}

/// Shows the report.
///
/// # Errors
/// When the recording can't be opened, the request can't be answered, or the result can't be
/// written.
pub(crate) fn perform(options: &ReportOptions) -> Result<(), Failure> {
    let ReportOptions { view, format, .. } = options;
    let path = match &options.recording {
        Some(path) => path.clone(),
        None => newest_here()?,
    };
    if options.request.follow {
        return follow_log(options, &path);
    }
    let reading = Shown::work("reading the recording");
    let mut reduced = options.request.query.clone();
    if view.is_of_requests() {
        reduced.requests = RequestFilter::default();
    }
    let recording = open_for(&path, &reduced)?;
    drop(reading);
    if *format == Format::Text && !view.has_head {
        say_unmatched(&recording);
    }
    let asked = Request { query: resolved(&recording, &options.request.query)?, ..options.request.clone() };
    let request = match format {
        Format::Text => Request { on_terminal: terminal::results_on_terminal(), ..view.for_people(&asked) },
        _ => asked,
    };
    let adding_up = Shown::work("adding up");
    let report = view.open(&recording, &request).map_err(|problem| query_failure(&problem))?;
    drop(adding_up);
    match &options.output {
        Some(file) if *format == Format::Html => write_page(&report, file, &path, options.force),
        Some(folder) => ThreadFiles::write(folder, &recording, result_file::mode_of([&*path]), &report),
        None => print(&report, *format),
    }
}

/// Writes the page of a report about the recording at `path`.
///
/// # Errors
/// When the file exists already, or can't be written.
pub(super) fn write_page(report: &Report<'_>, file: &Path, path: &Path, force: bool) -> Result<(), Failure> {
    result_file::check(file, path, force)?;
    let _writing = Shown::work("writing the page");
    let written: io::Result<()> =
        result_file::write(file, force, result_file::mode_of([path]), |out| report.write(Format::Html, 0, out));
    written.map_err(|error| {
        Failure::new(format!("cannot write {}", shown(file)), reason(&error), "choose another file with -o")
    })
}

/// Prints a report.
///
/// # Errors
/// When it can't be written.
pub(super) fn print(report: &Report<'_>, format: Format) -> Result<(), Failure> {
    let write = |out: &mut dyn Write| report.write(format, terminal::width(), out);
    let written = if format == Format::Text { terminal::styled(write) } else { terminal::plain(write) };
    written.map(|_| ()).map_err(|error| super::cannot_print(&error))
}

/// Prints rows as they come, until every process has ended.
fn follow_log(options: &ReportOptions, path: &Path) -> Result<(), Failure> {
    let mut state = clrscope_report::FollowState::default();
    follow(path, &options.view.instruments(), |recording| {
        let report = match options.view.open(recording, &options.request) {
            Ok(report) => report,
            Err(problem) => return Poll::unanswered(&problem),
        };
        let shown: io::Result<bool> = terminal::styled(|out| report.write_news(&mut state, out));
        Ok(if shown.map_err(|error| super::cannot_print(&error))? { Poll::Shown } else { Poll::Unread })
    })
}
