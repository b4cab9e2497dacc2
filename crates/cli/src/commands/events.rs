//! `clrscope report --view events`: what the runtime told, as a log.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clrscope_analysis::{EventQuery, EventRow, Events, events};
use clrscope_recording::model::Recording;
use clrscope_report::text::{self, Threads};
use clrscope_report::{csv, json};

use super::follow::{Look, Seen, ThreadKey, follow};
use super::report::Format;
use crate::errors::{Failure, reason, shown};
use crate::recording_file::{open, query_failure};
use crate::summary::say_unmatched;
use crate::terminal;
use crate::terminal::say;

/// What to show and how.
#[derive(Debug)]
pub(crate) struct Options {
    /// The recording.
    pub(crate) recording: PathBuf,
    /// The format.
    pub(crate) format: Format,
    /// Which events.
    pub(crate) query: EventQuery,
    /// Goes on with what is told until the program ends.
    pub(crate) follow: bool,
    /// A file per thread in this folder.
    pub(crate) folder: Option<PathBuf>,
}

/// Shows it.
///
/// # Errors
/// When the recording can't be opened, the query not be answered, or the result not be written.
pub(crate) fn perform(options: &Options) -> Result<(), Failure> {
    if options.follow {
        return follow_log(options);
    }
    let recording = open(&options.recording)?;
    if matches!(options.format, Format::Text) {
        say_unmatched(&recording);
    }
    let found = events(&recording, &options.query).map_err(|problem| query_failure(&problem))?;
    match &options.folder {
        Some(folder) => write_files(folder, &recording, &found),
        None => terminal::stream(|out| write(out, options, &recording, &found)).map_err(|e| super::cannot_print(&e)),
    }
}

/// Where no event is left.
const NOTHING: &str = "No events to show: the runtime told nothing, or the filters leave nothing.";

fn write(out: &mut dyn Write, options: &Options, recording: &Recording, found: &Events<'_>) -> io::Result<()> {
    let several = recording.processes.len() > 1;
    let rows = || found.rows.iter().map(|row| json::event(found, row, several));
    match options.format {
        Format::Json => json::stream_rows(out, "events", json::recording(recording), rows()),
        Format::Csv => out.write_all(csv::table(&rows().collect::<Vec<_>>()).as_bytes()),
        Format::Text if found.rows.is_empty() => writeln!(out, "{NOTHING}"),
        Format::Text => {
            let threads = if options.query.interleave { Threads::mixed(several) } else { Threads::Apart };
            write_heading(out, &threads.heading())?;
            let mut log = Log { several, threads, last: None };
            found.rows.iter().try_for_each(|row| log.line(out, found, row))?;
            let left_out = found.left_out;
            if left_out > 0 { writeln!(out, "... and {left_out} more events (--limit shows more)") } else { Ok(()) }
        }
    }
}

/// Writes lines, with a heading where the thread changes.
struct Log {
    several: bool,
    threads: Threads,
    last: Option<ThreadKey>,
}

impl Log {
    fn line<'a>(&mut self, out: &mut dyn Write, found: &Events<'a>, row: &EventRow<'a>) -> io::Result<()> {
        let this = thread_of(row);
        if self.threads == Threads::Apart && self.last.replace(this) != Some(this) {
            let heading = text::thread_heading(self.several.then_some(row.process.pid), row.thread);
            write_heading(out, &heading)?;
        }
        out.write_all(text::event_line(found, row, self.threads).as_bytes())
    }
}

fn write_heading(out: &mut dyn Write, heading: &str) -> io::Result<()> {
    out.write_all(anstream::adapter::strip_str(heading).to_string().as_bytes())
}

fn thread_of(row: &EventRow<'_>) -> ThreadKey {
    (row.process.pid, row.thread.map_or(0, |thread| thread.id))
}

fn write_files(folder: &Path, recording: &Recording, found: &Events<'_>) -> Result<(), Failure> {
    let failed = |path: &Path, error: &io::Error| {
        Failure::new(
            format!("cannot write {}", shown(path)),
            reason(error),
            "name a folder that can be written with -o",
        )
    };
    std::fs::create_dir_all(folder).map_err(|error| failed(folder, &error))?;
    if found.rows.is_empty() {
        say(&format!("clrscope: no file was written. {NOTHING}"));
    }
    let several = recording.processes.len() > 1;
    for rows in found.rows.chunk_by(|a, b| thread_of(a) == thread_of(b)) {
        let Some(first) = rows.first() else { continue };
        let (pid, id) = thread_of(first);
        let path =
            folder.join(if several { format!("process-{pid}-thread-{id}.log") } else { format!("thread-{id}.log") });
        let written = std::fs::File::create(&path).and_then(|file| {
            let mut out = io::BufWriter::new(file);
            writeln!(out, "{}", text::thread_title(several.then_some(pid), first.thread))?;
            rows.iter().try_for_each(|row| out.write_all(text::event_line(found, row, Threads::Apart).as_bytes()))?;
            out.flush()
        });
        written.map_err(|error| failed(&path, &error))?;
    }
    Ok(())
}

/// Prints events as they come, by time within each look, until every process has ended.
fn follow_log(options: &Options) -> Result<(), Failure> {
    let query = EventQuery { interleave: true, ..options.query.clone() };
    let (mut seen, mut shown) = (Seen::default(), None);
    follow(&options.recording, "events", |recording| {
        let found = match events(recording, &query) {
            Ok(found) => found,
            Err(problem) => return Look::unanswered(&problem),
        };
        let threads = Threads::mixed(recording.processes.len() > 1);
        let is_read = terminal::stream_on(|out| print_new(out, &found, &mut seen, &mut shown, threads));
        Ok(if is_read.map_err(|error| super::cannot_print(&error))? { Look::Shown } else { Look::Unread })
    })
}

/// Prints what was not printed yet; a heading where the columns are `shown` for the first time.
fn print_new(
    out: &mut dyn Write,
    found: &Events<'_>,
    seen: &mut Seen,
    shown: &mut Option<Threads>,
    threads: Threads,
) -> io::Result<()> {
    seen.look();
    let mut new = found.rows.iter().filter(|row| seen.is_new(thread_of(row), row.time_ns));
    new.try_for_each(|row| {
        if shown.replace(threads) != Some(threads) {
            write_heading(out, &threads.heading())?;
        }
        out.write_all(text::event_line(found, row, threads).as_bytes())
    })
}
