//! `clrscope report --view events`: what the runtime told, as a log.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clrscope_analysis::{EventQuery, EventRow, Events, events};
use clrscope_recording::model::{LossReason, Recording};

use super::report::Format;
use crate::errors::{Failure, reason, shown};
use crate::json;
use crate::recording_file::{open, query_failure};
use crate::{csv, terminal, text};

/// Between two looks at a program that is followed.
const PAUSE: Duration = Duration::from_millis(200);

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
        return follow(options);
    }
    let recording = open(&options.recording)?;
    let found = select(&recording, &options.query)?;
    match &options.folder {
        Some(folder) => write_files(folder, &recording, &found),
        None => terminal::stream(|out| write(out, options, &recording, &found)).map_err(|e| super::cannot_print(&e)),
    }
}

/// The events; refuses where the instrument did not run.
fn select<'a>(recording: &'a Recording, query: &EventQuery) -> Result<Events<'a>, Failure> {
    let found = events(recording, query).map_err(|problem| query_failure(&problem))?;
    if found.recorded {
        return Ok(found);
    }
    let why = format!("it was made with '{}'", recording.run.instruments);
    Err(Failure::new("the recording has no events", why, "record them with 'clrscope run -i events -- PROGRAM'"))
}

fn write(out: &mut dyn Write, options: &Options, recording: &Recording, found: &Events<'_>) -> io::Result<()> {
    let several = recording.processes.len() > 1;
    let rows = || found.rows.iter().map(|row| json::event(found, row, several));
    match options.format {
        Format::Json => json::stream_rows(out, "events", json::recording(recording), rows()),
        Format::Csv => out.write_all(csv::table(&rows().collect::<Vec<_>>()).as_bytes()),
        Format::Text => {
            let mut log = Log { several, interleave: options.query.interleave, last: None };
            found.rows.iter().try_for_each(|row| log.line(out, found, row))?;
            let left_out = found.left_out;
            if left_out > 0 { writeln!(out, "... and {left_out} more events (--limit shows more)") } else { Ok(()) }
        }
    }
}

/// Writes lines, with a heading where the thread changes.
struct Log {
    several: bool,
    interleave: bool,
    last: Option<(u32, u32)>,
}

impl Log {
    fn line<'a>(&mut self, out: &mut dyn Write, found: &Events<'a>, row: &EventRow<'a>) -> io::Result<()> {
        let this = thread_of(row);
        if !self.interleave && self.last.replace(this) != Some(this) {
            let heading = text::thread_heading(self.several.then_some(row.process.pid), row.thread);
            out.write_all(anstream::adapter::strip_str(&heading).to_string().as_bytes())?;
        }
        out.write_all(text::event_line(found, row, self.interleave).as_bytes())
    }
}

fn thread_of(row: &EventRow<'_>) -> (u32, u32) {
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
    let several = recording.processes.len() > 1;
    for rows in found.rows.chunk_by(|a, b| thread_of(a) == thread_of(b)) {
        let Some(first) = rows.first() else { continue };
        let (pid, id) = thread_of(first);
        let path =
            folder.join(if several { format!("process-{pid}-thread-{id}.log") } else { format!("thread-{id}.log") });
        let written = std::fs::File::create(&path).and_then(|file| {
            let mut out = io::BufWriter::new(file);
            writeln!(out, "{}", text::thread_title(several.then_some(pid), first.thread))?;
            rows.iter().try_for_each(|row| out.write_all(text::event_line(found, row, false).as_bytes()))?;
            out.flush()
        });
        written.map_err(|error| failed(&path, &error))?;
    }
    Ok(())
}

/// Prints events as they come, by time within each look, until every process has ended.
fn follow(options: &Options) -> Result<(), Failure> {
    let query = EventQuery { interleave: true, ..options.query.clone() };
    let mut printed: HashMap<(u32, u32), usize> = HashMap::new();
    let mut seen_any = false;
    loop {
        let recording = match open(&options.recording) {
            Ok(recording) => recording,
            // The directory became a file when the program ended.
            Err(failure) if seen_any => {
                return open(&packed_name(&options.recording))
                    .map_or(Err(failure), |recording| print_new(&recording, &query, &mut printed).map(|_| ()));
            }
            Err(failure) => return Err(failure),
        };
        seen_any = true;
        let wanted_more = print_new(&recording, &query, &mut printed)?;
        if !wanted_more || has_ended(&recording) {
            return Ok(());
        }
        std::thread::sleep(PAUSE);
    }
}

fn packed_name(directory: &Path) -> PathBuf {
    let name = directory.to_string_lossy();
    PathBuf::from(name.trim_end_matches('/').trim_end_matches(".d"))
}

/// Prints what was not printed yet; whether somebody still reads.
fn print_new(
    recording: &Recording,
    query: &EventQuery,
    printed: &mut HashMap<(u32, u32), usize>,
) -> Result<bool, Failure> {
    let found = select(recording, query)?;
    let mut counts: HashMap<(u32, u32), usize> = HashMap::new();
    let mut lines = String::new();
    for row in &found.rows {
        let count = counts.entry(thread_of(row)).or_default();
        *count += 1;
        if *count > printed.get(&thread_of(row)).copied().unwrap_or(0) {
            lines.push_str(&text::event_line(&found, row, true));
        }
    }
    *printed = counts;
    let mut out = io::stdout().lock();
    match out.write_all(lines.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(super::cannot_print(&error)),
    }
}

fn has_ended(recording: &Recording) -> bool {
    let ended = |process: &clrscope_recording::model::Process| {
        process.complete
            || process.exit.is_some()
            || process.losses.iter().any(|loss| matches!(loss.reason, LossReason::AbruptEnd | LossReason::Stopped))
    };
    recording.run.exit.is_some() || (!recording.processes.is_empty() && recording.processes.iter().all(ended))
}
