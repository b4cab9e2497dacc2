//! `chrome`: trace events as JSON, for Perfetto (ui.perfetto.dev) and chrome://tracing.
//!
//! Each thread has a track with its calls if `flow` recorded them, otherwise with its activities
//! according to the samples; exceptions are instants. Other data are on separate tracks below,
//! because times from different sources would overlap: samples of threads that have calls, the
//! runtime's events with a duration (compilations, loads, suspensions), and collections; background
//! collections have a track of their own. Times are microseconds since the start of the run.

use std::collections::BTreeSet;
use std::io::Write;

use clrscope_analysis::{
    Collection, CollectionKind, EventLog, EventQuery, EventRow, ExceptionLog, ExceptionQuery, FlowKind, FlowLog, Query,
    QueryProblem, collections, one_line, spans,
};
use clrscope_recording::layout::instrument;
use clrscope_recording::model::Recording;

use crate::json::quoted;
use crate::resource::resources_as_json;
use crate::threads::{command, command_of, thread_name};
use crate::{ExportError, ExportOptions, Exporter};

/// The format `chrome`; its module describes the output.
pub(crate) struct Chrome;

/// Tracks of a thread, or of a process for tracks that belong to no thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Track {
    /// Calls, or samples if there are no calls.
    Thread,
    /// Samples alongside calls.
    Samples,
    /// Events of the runtime.
    Runtime,
    /// Collections that suspended the program.
    Collections,
    /// Collections in the background.
    Background,
}

impl Track {
    /// Number of the track. Viewers accept thread numbers of 31 bits; a program starts fewer than
    /// 2^24 threads.
    fn number(self, thread: u32) -> u32 {
        (self as u32) << 24 | (thread & 0xFF_FFFF)
    }

    /// Words that follow the thread's name.
    const fn title(self) -> &'static str {
        match self {
            Self::Thread => "",
            Self::Samples => ": samples",
            Self::Runtime => ": the runtime",
            Self::Collections => "garbage collections",
            Self::Background => "garbage collections in the background",
        }
    }
}

impl Exporter for Chrome {
    fn name(&self) -> &'static str {
        "chrome"
    }

    fn description(&self) -> &'static str {
        "a timeline for Perfetto and chrome://tracing: threads, calls of flow, collections, compilations, exceptions"
    }

    fn extension(&self) -> &'static str {
        "trace.json"
    }

    fn write(&self, recording: &Recording, options: &ExportOptions, out: &mut dyn Write) -> Result<(), ExportError> {
        let query = &Query { metric: None, sort: None, ..options.query.clone() };
        let mut trace = Trace { out, is_first: true, tracks: BTreeSet::new() };
        let (program, version) = (quoted(&command(recording)), env!("CARGO_PKG_VERSION"));
        let resources = resources_as_json(recording);
        let other = format!("{{\"command\":{program},\"exporter\":\"clrscope {version}\",\"resources\":{resources}}}");
        write!(trace.out, "{{\"displayTimeUnit\":\"ms\",\"otherData\":{other},\"traceEvents\":[")?;
        let has_calls = write_calls(&mut trace, recording, query)?;
        let samples = if has_calls { Track::Samples } else { Track::Thread };
        for part in [
            write_samples(&mut trace, recording, query, samples),
            write_collections(&mut trace, recording, query),
            write_exceptions(&mut trace, recording, query),
            write_runtime(&mut trace, recording, query),
        ] {
            part.or_else(unless_recorded)?;
        }
        if trace.is_first {
            return Err(ExportError::Query(QueryProblem::NotRecorded { view: "chrome", instrument: instrument::CPU }));
        }
        trace.name_tracks(recording)?;
        writeln!(trace.out, "\n]}}")?;
        Ok(())
    }
}

/// Success if an instrument was not recorded: its part is left out.
fn unless_recorded(error: ExportError) -> Result<(), ExportError> {
    match error {
        ExportError::Query(QueryProblem::NotRecorded { .. }) => Ok(()),
        other => Err(other),
    }
}

/// The list of events.
struct Trace<'o> {
    out: &'o mut dyn Write,
    is_first: bool,
    /// Tracks with events, by process and thread.
    tracks: BTreeSet<(u32, u32, Track)>,
}

/// An event in the format's terms.
struct Event<'e> {
    /// `B` and `E` for begin and end, `X` for both, `i` for an instant.
    phase: char,
    name: &'e str,
    category: &'e str,
    pid: u32,
    /// Number of the thread, 0 for none.
    thread: u32,
    track: Track,
    time_ns: u64,
    duration_ns: Option<u64>,
    /// Names and values, the values in JSON.
    arguments: &'e [(&'e str, String)],
}

impl Trace<'_> {
    fn event(&mut self, event: &Event<'_>) -> Result<(), ExportError> {
        let Event { phase, name, category, pid, thread, track, time_ns, duration_ns, arguments } = event;
        self.tracks.insert((*pid, *thread, *track));
        let separator = if std::mem::take(&mut self.is_first) { "" } else { "," };
        write!(self.out, "{separator}\n{{\"ph\":\"{phase}\",\"name\":{},\"cat\":\"{category}\",", quoted(name))?;
        write!(self.out, "\"pid\":{pid},\"tid\":{},\"ts\":{}", track.number(*thread), microseconds(*time_ns))?;
        if let Some(duration) = duration_ns {
            write!(self.out, ",\"dur\":{}", microseconds(*duration))?;
        }
        if *phase == 'i' {
            write!(self.out, ",\"s\":\"t\"")?;
        }
        for (at, (name, value)) in arguments.iter().enumerate() {
            write!(self.out, "{}\"{name}\":{value}", if at == 0 { ",\"args\":{" } else { "," })?;
        }
        write!(self.out, "{}", if arguments.is_empty() { "}" } else { "}}" })?;
        Ok(())
    }

    /// Writes the names of processes and tracks, and the order of the tracks.
    fn name_tracks(&mut self, recording: &Recording) -> Result<(), ExportError> {
        for process in &recording.processes {
            let of_process: Vec<_> = self.tracks.iter().filter(|(pid, ..)| *pid == process.pid).copied().collect();
            if of_process.is_empty() {
                continue;
            }
            let pid = process.pid;
            let command = command_of(process);
            // Perfetto does not accept an empty name.
            if !command.is_empty() {
                self.name(pid, 0, "process_name", &format!("\"name\":{}", quoted(&command)))?;
            }
            for (_, id, track) in of_process {
                let thread = process.threads.iter().find(|thread| thread.id == id);
                let name = thread.map_or_else(String::new, thread_name) + track.title();
                self.name(pid, track.number(id), "thread_name", &format!("\"name\":{}", quoted(&name)))?;
                // Collections first, then thread by thread.
                let order = u64::from(id) * 8 + track as u64;
                self.name(pid, track.number(id), "thread_sort_index", &format!("\"sort_index\":{order}"))?;
            }
        }
        Ok(())
    }

    fn name(&mut self, pid: u32, track: u32, what: &str, argument: &str) -> Result<(), ExportError> {
        write!(
            self.out,
            ",\n{{\"ph\":\"M\",\"name\":\"{what}\",\"pid\":{pid},\"tid\":{track},\"args\":{{{argument}}}}}"
        )?;
        Ok(())
    }
}

/// Nanoseconds as microseconds, exactly.
fn microseconds(ns: u64) -> String {
    format!("{}.{:03}", ns / 1000, ns % 1000)
}

/// Calls of a thread that have not ended yet, by their depths.
#[derive(Default)]
struct Open {
    thread: (u32, u32),
    depths: Vec<u32>,
    at: u64,
}

impl Open {
    /// Ends the calls at this depth and below.
    fn close(&mut self, trace: &mut Trace<'_>, depth: u32) -> Result<(), ExportError> {
        while self.depths.pop_if(|open| *open >= depth).is_some() {
            self.end(trace)?;
        }
        Ok(())
    }

    fn end(&self, trace: &mut Trace<'_>) -> Result<(), ExportError> {
        let (pid, thread) = self.thread;
        let (time_ns, track) = (self.at, Track::Thread);
        let (name, category) = ("", "call");
        trace.event(&Event {
            phase: 'E',
            name,
            category,
            pid,
            thread,
            track,
            time_ns,
            duration_ns: None,
            arguments: &[],
        })
    }
}

/// Writes each call of `flow` with its start and end. Returns whether there were any.
fn write_calls(trace: &mut Trace<'_>, recording: &Recording, query: &Query) -> Result<bool, ExportError> {
    let log = match FlowLog::open(recording, query, None) {
        Ok(log) => log,
        Err(QueryProblem::NotRecorded { .. }) => return Ok(false),
        Err(problem) => return Err(problem.into()),
    };
    let mut open = Open::default();
    log.walk(|row| -> Result<(), ExportError> {
        let thread = (row.function.pid, row.thread.id);
        if open.thread != thread {
            open.close(trace, 0)?;
            open = Open { thread, depths: Vec::new(), at: 0 };
        }
        open.at = open.at.max(row.time_ns);
        let is_begin = row.kind == FlowKind::Enter;
        open.close(trace, if is_begin { row.depth } else { row.depth.saturating_add(1) })?;
        if is_begin {
            open.depths.push(row.depth);
            return trace.event(&Event {
                phase: 'B',
                name: &one_line(row.function.label()),
                category: "call",
                pid: thread.0,
                thread: thread.1,
                track: Track::Thread,
                time_ns: open.at,
                duration_ns: None,
                arguments: &[],
            });
        }
        match open.depths.pop_if(|depth| *depth == row.depth) {
            Some(_) => open.end(trace),
            // An end whose begin was not recorded.
            None => Ok(()),
        }
    })?;
    open.close(trace, 0)?;
    Ok(!trace.is_first)
}

/// Writes spans of a thread's activities.
fn write_samples(trace: &mut Trace<'_>, recording: &Recording, query: &Query, track: Track) -> Result<(), ExportError> {
    for span in spans(recording, query)? {
        trace.event(&Event {
            phase: 'X',
            name: span.kind,
            category: "samples",
            pid: span.process.pid,
            thread: span.thread.id,
            track,
            time_ns: span.start_ns,
            duration_ns: Some(span.end_ns - span.start_ns),
            arguments: &[],
        })?;
    }
    Ok(())
}

fn write_collections(trace: &mut Trace<'_>, recording: &Recording, query: &Query) -> Result<(), ExportError> {
    for collection in collections(recording, query)? {
        let Collection { process, generation, kind, start_ns, pause_ns, suspend_ns, reason, .. } = collection;
        let end_ns = collection.end_ns.unwrap_or(start_ns.saturating_add(pause_ns));
        let number = collection.number.map_or_else(|| "null".to_owned(), |number| number.to_string());
        let arguments = [
            ("number", number),
            ("generation", generation.to_string()),
            ("kind", quoted(kind.name())),
            ("reason", quoted(reason.words())),
            ("pause_ns", pause_ns.to_string()),
            ("suspend_ns", suspend_ns.to_string()),
        ];
        let is_background = kind == CollectionKind::Background;
        trace.event(&Event {
            phase: 'X',
            name: &format!("generation {generation}"),
            category: "gc",
            pid: process.pid,
            thread: 0,
            track: if is_background { Track::Background } else { Track::Collections },
            time_ns: start_ns,
            duration_ns: Some(end_ns.saturating_sub(start_ns)),
            arguments: &arguments,
        })?;
    }
    Ok(())
}

fn write_exceptions(trace: &mut Trace<'_>, recording: &Recording, query: &Query) -> Result<(), ExportError> {
    let asked = ExceptionQuery { query: query.clone(), ..ExceptionQuery::default() };
    let log = ExceptionLog::open(recording, &asked)?;
    log.walk(|thrown| {
        let text = |text: Option<&str>| text.map_or_else(|| "null".to_owned(), |text| quoted(&one_line(text)));
        let arguments = [
            ("message", text(thrown.message.as_deref())),
            ("thrown_by", text(thrown.thrower().map(|function| function.label()).as_deref())),
            ("caught_by", text(thrown.catcher.map(|function| function.label()).as_deref())),
        ];
        trace.event(&Event {
            phase: 'i',
            name: &one_line(thrown.type_name),
            category: "exception",
            pid: thrown.process.pid,
            thread: thrown.thread.map_or(0, |thread| thread.id),
            track: Track::Thread,
            time_ns: thrown.time_ns,
            duration_ns: None,
            arguments: &arguments,
        })
    })?;
    Ok(())
}

/// Writes events with a duration: the start event, with the duration.
fn write_runtime(trace: &mut Trace<'_>, recording: &Recording, query: &Query) -> Result<(), ExportError> {
    let log = EventLog::open(recording, &EventQuery { query: query.clone(), ..EventQuery::default() })?;
    log.walk(|row: &EventRow<'_>| -> Result<(), ExportError> {
        let (Some(duration), "start") = (row.duration_ns, row.phase()) else { return Ok(()) };
        let event = row.event().trim_end_matches("Started");
        let subject = row.subjects().find_map(|subject| subject.name);
        trace.event(&Event {
            phase: 'X',
            name: &subject.map_or_else(|| event.to_owned(), |subject| format!("{event} {}", one_line(subject))),
            category: row.group(),
            pid: row.process.pid,
            thread: row.thread.map_or(0, |thread| thread.id),
            track: Track::Runtime,
            time_ns: row.time_ns,
            duration_ns: Some(duration),
            arguments: &[],
        })
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tracks_of_a_process_have_numbers_of_their_own() {
        let all = [Track::Thread, Track::Samples, Track::Runtime, Track::Collections, Track::Background];
        let numbers: BTreeSet<u32> = all.iter().flat_map(|track| [0, 1, 1 << 20].map(|id| track.number(id))).collect();
        assert_eq!(numbers.len(), 15);
        assert_eq!(Track::Thread.number(7), 7);
        assert_eq!(microseconds(1_234_567_005), "1234567.005");
    }
}
