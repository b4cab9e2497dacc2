//! `clrscope report --view flow`: every call with its begin and its end.

use std::io::{self, Write};
use std::path::PathBuf;

use clrscope_analysis::{FlowLog, FlowRow, Query};
use clrscope_recording::model::Recording;
use clrscope_report::{csv, json, text};
use serde_json::json;

use super::follow::{Look, Seen, ThreadKey, follow};
use super::report::Format;
use crate::errors::Failure;
use crate::recording_file::{open, query_failure};
use crate::summary::say_unmatched;
use crate::terminal;

/// Rows of text when nobody asked for a number.
const TEXT_ROWS: usize = 10_000;

/// Where no call is left.
const NOTHING: &str = "No calls to show: nothing was called, or the filters leave nothing.";

/// What to show and how.
#[derive(Debug)]
pub(crate) struct Options {
    /// The recording.
    pub(crate) recording: PathBuf,
    /// The format.
    pub(crate) format: Format,
    /// Which part of it.
    pub(crate) query: Query,
    /// Leaves deeper calls out.
    pub(crate) max_depth: Option<u32>,
    /// Goes on with what is called until the program ends; in text.
    pub(crate) follow: bool,
}

/// Shows it.
///
/// # Errors
/// When the recording can't be opened, the query not be answered, or the result not be written.
pub(crate) fn perform(options: &Options) -> Result<(), Failure> {
    if options.follow {
        return follow_rows(options);
    }
    let recording = open(&options.recording)?;
    if matches!(options.format, Format::Text) {
        say_unmatched(&recording);
    }
    let mut query = options.query.clone();
    if options.format == Format::Text {
        query.limit = query.limit.or(Some(TEXT_ROWS));
    }
    let log = log(&recording, &query, options)?;
    let several = recording.processes.len() > 1;
    let written = terminal::stream(|out| match options.format {
        Format::Text => as_text(out, &log, several, options.query.limit),
        Format::Json => as_json(out, &log, several, &recording),
        Format::Csv => as_csv(out, &log, several),
    });
    written.map_err(|error| super::cannot_print(&error))
}

fn log<'a>(recording: &'a Recording, query: &Query, options: &Options) -> Result<FlowLog<'a>, Failure> {
    FlowLog::open(recording, query, options.max_depth).map_err(|problem| query_failure(&problem))
}

fn as_text(out: &mut dyn Write, log: &FlowLog<'_>, several: bool, limit: Option<usize>) -> io::Result<()> {
    let mut thread = None;
    let (functions, left_out) = log.walk(|row| {
        let this = thread_of(row);
        if thread.replace(this) != Some(this) {
            out.write_all(terminal::plain_or_styled(&text::flow_heading(row, several)).as_bytes())?;
        }
        out.write_all(terminal::plain_or_styled(&text::flow_line(row)).as_bytes())
    })?;
    if thread.is_none() && left_out == 0 {
        return writeln!(out, "{NOTHING}");
    }
    if left_out > 0 {
        writeln!(out, "... and {left_out} more rows (--limit shows more)")?;
    }
    out.write_all(terminal::plain_or_styled(&text::flow_functions(&functions, limit, terminal::width())).as_bytes())
}

/// Row by row: there may be a hundred million.
fn as_json(out: &mut dyn Write, log: &FlowLog<'_>, several: bool, recording: &Recording) -> io::Result<()> {
    let about = json::recording(recording);
    write!(out, "{{\"schema\":{},\"recording\":{},\"rows\":[", json!(json::schema("flow")), json!(about))?;
    let mut first = true;
    let (functions, _) = log.walk(|row| {
        let comma = if std::mem::take(&mut first) { "" } else { "," };
        write!(out, "{comma}\n{}", json!(json::flow(row, several)))
    })?;
    let summary = json::array(functions.iter().map(|row| json::flow_function(row, several)));
    writeln!(out, "],\n\"functions\":{summary}}}")
}

fn as_csv(out: &mut dyn Write, log: &FlowLog<'_>, several: bool) -> io::Result<()> {
    let mut rows = Vec::new();
    let mut first = true;
    log.walk(|row| -> io::Result<()> {
        rows.push(json::flow(row, several));
        if rows.len() == 10_000 {
            write_csv(out, &mut rows, std::mem::take(&mut first))?;
        }
        Ok(())
    })?;
    write_csv(out, &mut rows, first)
}

/// Writes some rows, with the line of names only the first time.
fn write_csv(out: &mut dyn Write, rows: &mut Vec<json::Object>, with_head: bool) -> io::Result<()> {
    let table = csv::table(rows);
    rows.clear();
    let from = if with_head { 0 } else { table.find('\n').map_or(table.len(), |at| at + 1) };
    out.write_all(&table.as_bytes()[from..])
}

fn thread_of(row: &FlowRow<'_>) -> ThreadKey {
    (row.function.pid, row.thread.id)
}

/// Prints rows as they come, thread after thread within each look, until every process has ended.
fn follow_rows(options: &Options) -> Result<(), Failure> {
    let mut seen = Seen::default();
    let mut heading = None;
    follow(&options.recording, "flow", |recording| {
        let log = match FlowLog::open(recording, &options.query, options.max_depth) {
            Ok(log) => log,
            Err(problem) => return Look::unanswered(&problem),
        };
        let several = recording.processes.len() > 1;
        let shown = terminal::stream_on(|out| print_new(out, &log, several, &mut seen, &mut heading));
        let is_read = shown.map_err(|error| super::cannot_print(&error))?;
        Ok(if is_read { Look::Shown } else { Look::Unread })
    })
}

fn print_new(
    out: &mut dyn Write,
    log: &FlowLog<'_>,
    several: bool,
    seen: &mut Seen,
    heading: &mut Option<ThreadKey>,
) -> io::Result<()> {
    seen.look();
    log.walk(|row| {
        let this = thread_of(row);
        if !seen.is_new(this, row.ticks) {
            return Ok(());
        }
        if heading.replace(this) != Some(this) {
            out.write_all(terminal::plain_or_styled(&text::flow_heading(row, several)).as_bytes())?;
        }
        out.write_all(terminal::plain_or_styled(&text::flow_line(row)).as_bytes())
    })?;
    Ok(())
}
