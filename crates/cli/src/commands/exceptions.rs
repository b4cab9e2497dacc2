//! `clrscope report --view exceptions`: by type and place, or the whole story of each.

use std::io::{self, Write};
use std::path::PathBuf;

use clrscope_analysis::{ExceptionQuery, Exceptions, Query, conditions, exceptions};
use clrscope_recording::model::Recording;
use clrscope_report::json::Object;
use clrscope_report::{csv, json, text};
use clrscope_symbols::Lines;

use super::report::Format;
use crate::errors::Failure;
use crate::recording_file::{open, query_failure};
use crate::terminal;

/// Rows in text when nobody asked for a number.
const TEXT_ROWS: usize = 50;

/// What to show and how.
#[derive(Debug)]
pub(crate) struct Options {
    /// The recording.
    pub(crate) recording: PathBuf,
    /// The format.
    pub(crate) format: Format,
    /// Which exceptions.
    pub(crate) query: ExceptionQuery,
    /// Each of them, rather than by type and place.
    pub(crate) each: bool,
}

/// Shows it.
///
/// # Errors
/// When the recording can't be opened, the query not be answered, or the result not be written.
pub(crate) fn perform(options: &Options) -> Result<(), Failure> {
    let recording = open(&options.recording)?;
    let is_text = matches!(options.format, Format::Text);
    let limit = options.query.query.limit.or((is_text && !options.each).then_some(TEXT_ROWS));
    let query =
        ExceptionQuery { query: Query { limit, ..options.query.query.clone() }, types: options.query.types.clone() };
    let found = exceptions(&recording, &query).map_err(|problem| query_failure(&problem))?;
    if is_text {
        let width = terminal::width();
        let about = conditions(&recording, &query.query).map_err(|problem| query_failure(&problem))?;
        return super::print(&(text::head(&recording, &about, width) + &as_text(options, &recording, &found, width)));
    }
    terminal::stream(|out| write_rows(out, options, &recording, &found)).map_err(|error| super::cannot_print(&error))
}

fn as_text(options: &Options, recording: &Recording, found: &Exceptions<'_>, width: usize) -> String {
    if options.each {
        text::exception_stories(found, &mut Lines::default(), recording.processes.len() > 1, width)
    } else {
        text::exception_groups(found, width)
    }
}

fn write_rows(out: &mut dyn Write, options: &Options, recording: &Recording, found: &Exceptions<'_>) -> io::Result<()> {
    let several = recording.processes.len() > 1;
    let mut lines = Lines::default();
    let rows: Box<dyn Iterator<Item = Object>> = if options.each {
        Box::new(found.each.iter().map(|exception| json::exception(found, exception, &mut lines, several)))
    } else {
        Box::new(found.groups.iter().map(|group| json::exception_group(group, several)))
    };
    match options.format {
        Format::Json => json::stream_rows(out, "exceptions", json::recording(recording), rows),
        _ => out.write_all(csv::table(&rows.collect::<Vec<_>>()).as_bytes()),
    }
}
