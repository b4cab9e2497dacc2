//! `speedscope`: a file for speedscope.app, as its JSON schema describes it.
//!
//! Calls of `flow` are event profiles, one for each thread: each call has its start and its end.
//! Samples, exceptions and allocations are sample profiles: first one of all threads together that
//! has each path once, then one for each thread with its samples in the order of time. The trees of
//! `calls` and the heap have no times: their paths are ordered by weight.

use std::io::Write;

use clrscope_analysis::{FlowKind, FlowLog, Metric, Query, Sort, StackLog, Unit};
use clrscope_recording::layout::instrument;
use clrscope_recording::model::{Process, Recording, Thread};

use crate::frames::Frames;
use crate::json::quoted;
use crate::refusals::refuse_min_share;
use crate::resource::resources_as_json;
use crate::stacks::{Step, forest, places, walk};
use crate::threads::{command, thread_title};
use crate::weighed::weighed_stacks;
use crate::{ExportError, ExportOptions, Exporter};

/// The format `speedscope`; its module describes the output.
pub(crate) struct Speedscope;

/// Schema address in every file.
const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";
/// Name of the profile of all threads.
const ALL_THREADS: &str = "all threads";

impl Exporter for Speedscope {
    fn name(&self) -> &'static str {
        "speedscope"
    }

    fn description(&self) -> &'static str {
        "profiles for speedscope.app: calls of flow, samples by thread and time, or paths with their weights"
    }

    fn extension(&self) -> &'static str {
        "speedscope.json"
    }

    fn shows_heap(&self) -> bool {
        true
    }

    fn takes_min_share(&self) -> bool {
        true
    }

    fn shows_native_code(&self) -> bool {
        true
    }

    fn write(&self, recording: &Recording, options: &ExportOptions, out: &mut dyn Write) -> Result<(), ExportError> {
        let mut file = File {
            out,
            frames: Frames::default(),
            name: command(recording),
            resources: resources_as_json(recording),
            is_begun: false,
        };
        let has_calls = recording.processes.iter().any(|process| process.arenas(instrument::FLOW).next().is_some());
        if has_calls && options.query.metric.is_none() && options.snapshot.is_none() {
            refuse_min_share(options, self.name(), "each call is written with its times; --metric chooses paths")?;
            write_calls(&mut file, recording, &options.query)?;
        } else if options.is_of_heap(recording, self.name())? {
            write_heap(&mut file, recording, options)?;
        } else {
            write_paths(&mut file, recording, options)?;
        }
        file.end()
    }
}

/// The file; the first profile writes its start.
struct File<'o> {
    out: &'o mut dyn Write,
    frames: Frames,
    name: String,
    /// Processes as OpenTelemetry resources; readers ignore this.
    resources: String,
    is_begun: bool,
}

impl File<'_> {
    /// Begins a profile, up to the list of its events.
    fn profile(&mut self, kind: &str, name: &str, unit: &str, start: u64, list: &str) -> Result<(), ExportError> {
        if std::mem::replace(&mut self.is_begun, true) {
            writeln!(self.out, ",")?;
        } else {
            write!(self.out, "{{\"$schema\":\"{SCHEMA}\",\"exporter\":\"clrscope {}\",", env!("CARGO_PKG_VERSION"))?;
            write!(self.out, "\"name\":{},\"resources\":{},", quoted(&self.name), self.resources)?;
            writeln!(self.out, "\"activeProfileIndex\":0,\"profiles\":[")?;
        }
        write!(self.out, "{{\"type\":\"{kind}\",\"name\":{},\"unit\":\"{unit}\",", quoted(name))?;
        write!(self.out, "\"startValue\":{start},\"{list}\":[")?;
        Ok(())
    }

    fn end(self) -> Result<(), ExportError> {
        if !self.is_begun {
            return Err(ExportError::Empty("nothing was recorded that speedscope could show"));
        }
        write!(self.out, "],\n\"shared\":{{\"frames\":[")?;
        for (at, frame) in self.frames.all().iter().enumerate() {
            let separator = if at == 0 { "" } else { "," };
            write!(self.out, "{separator}\n{{\"name\":{}", quoted(&frame.name))?;
            if !frame.module.is_empty() {
                write!(self.out, ",\"file\":{}", quoted(&frame.module))?;
            }
            write!(self.out, "}}")?;
        }
        writeln!(self.out, "]}}}}")?;
        Ok(())
    }
}

/// A sample profile; the first sample with a weight starts it.
struct Sampled {
    name: String,
    unit: &'static str,
    weights: Vec<u64>,
}

impl Sampled {
    fn new(name: impl Into<String>, unit: &'static str) -> Self {
        Self { name: name.into(), unit, weights: Vec::new() }
    }

    fn sample(&mut self, file: &mut File<'_>, path: &[usize], weight: u64) -> Result<(), ExportError> {
        if weight == 0 {
            return Ok(());
        }
        match self.weights.is_empty() {
            true => file.profile("sampled", &self.name, self.unit, 0, "samples")?,
            false => write!(file.out, ",")?,
        }
        self.weights.push(weight);
        write_list(file.out, path)
    }

    fn end(self, file: &mut File<'_>) -> Result<(), ExportError> {
        if self.weights.is_empty() {
            return Ok(());
        }
        let end = self.weights.iter().fold(0_u64, |sum, weight| sum.saturating_add(*weight));
        write!(file.out, "],\"weights\":")?;
        write_list(file.out, &self.weights)?;
        write!(file.out, ",\"endValue\":{end}}}")?;
        Ok(())
    }
}

fn write_list(out: &mut dyn Write, numbers: &[impl std::fmt::Display]) -> Result<(), ExportError> {
    write!(out, "[")?;
    for (at, number) in numbers.iter().enumerate() {
        let separator = if at == 0 { "" } else { "," };
        write!(out, "{separator}{number}")?;
    }
    write!(out, "]")?;
    Ok(())
}

/// Unit of a metric's values in the schema's terms.
fn unit(metric: &Metric) -> &'static str {
    match metric.unit {
        Unit::Nanoseconds => "nanoseconds",
        Unit::Bytes => "bytes",
        Unit::Count => "none",
    }
}

/// All threads together, then each alone.
fn write_paths(file: &mut File<'_>, recording: &Recording, options: &ExportOptions) -> Result<(), ExportError> {
    let query = Query { per_thread: false, ..options.query.clone() };
    let metric = Metric::for_query(recording, &query)?;
    if metric.is_of_calls() {
        write_merged(file, recording, options, &query)?;
        return write_merged(file, recording, options, &Query { per_thread: true, ..query });
    }
    let log = StackLog::open(recording, &Query { type_leaves: true, ..query.clone() }, "speedscope")?;
    if log.threads().nth(1).is_some() {
        write_merged(file, recording, options, &query)?;
    }
    for thread in log.threads() {
        let mut profile = Sampled::new(thread_title(recording, thread.process, thread.thread), unit(metric));
        let mut path = Vec::new();
        thread.walk(|event| {
            path.clear();
            path.extend(event.path.iter().map(|function| file.frames.function(function)));
            profile.sample(file, &path, event.amount)
        })?;
        profile.end(file)?;
    }
    Ok(())
}

/// The paths of all threads as one profile or, if the query separates threads, as one for each
/// thread.
fn write_merged(
    file: &mut File<'_>,
    recording: &Recording,
    options: &ExportOptions,
    query: &Query,
) -> Result<(), ExportError> {
    let forest = forest(recording, &Query { sort: query.sort.or(Some(Sort::Inclusive)), ..query.clone() })?;
    let (metric, several) = (forest.conditions().metric, forest.conditions().processes.len() > 1);
    let mut profile = Sampled::new(ALL_THREADS, unit(metric));
    let mut thread: Option<(u32, &Thread)> = None;
    let mut path = Vec::new();
    // Length of the path before each of its functions.
    let mut before = Vec::new();
    walk(&forest, options.min_share.unwrap_or(0.0), |step| {
        match step {
            Step::Enter(at) => {
                let of = at.thread.map(|thread| (at.function.pid, thread));
                let is_same = |(pid, known): &(u32, &Thread)| {
                    of.is_some_and(|(other, thread)| other == *pid && std::ptr::eq(*known, thread))
                };
                if let Some((pid, of)) = of.filter(|_| at.depth == 0 && !thread.as_ref().is_some_and(is_same)) {
                    thread = Some((pid, of));
                    let process = recording.processes.iter().find(|process| process.pid == pid);
                    let title = process.map_or_else(String::new, |process| thread_title(recording, process, of));
                    std::mem::replace(&mut profile, Sampled::new(title, unit(metric))).end(file)?;
                }
                before.push(path.len());
                if at.thread.is_none() && at.depth == 0 {
                    let places = places(at.function.pid, None, several);
                    path.extend(places.map(|place| file.frames.named(&place)));
                }
                path.push(file.frames.function(&at.function));
            }
            Step::Leave(weight) => {
                profile.sample(file, &path, weight)?;
                path.truncate(before.pop().unwrap_or(0));
            }
        }
        Ok(())
    })?;
    profile.end(file)
}

/// Types of objects along the dominator tree.
fn write_heap(file: &mut File<'_>, recording: &Recording, options: &ExportOptions) -> Result<(), ExportError> {
    let mut profile = Sampled::new("heap", "bytes");
    weighed_stacks(recording, options, ("speedscope", options.min_share.unwrap_or(0.0)), |stack, weight| {
        let path: Vec<usize> = stack.split(';').map(|frame| file.frames.named(frame)).collect();
        profile.sample(file, &path, weight)
    })?;
    profile.end(file)
}

/// Open calls of one thread, outermost first: the depth and the frame of each.
struct Calls {
    thread: (u32, u32),
    open: Vec<(u32, usize)>,
    /// Time of the last event; later events are never earlier.
    at: u64,
    is_first: bool,
}

impl Calls {
    fn event(&mut self, out: &mut dyn Write, kind: char, frame: usize) -> Result<(), ExportError> {
        let separator = if std::mem::take(&mut self.is_first) { "" } else { "," };
        Ok(write!(out, "{separator}{{\"type\":\"{kind}\",\"frame\":{frame},\"at\":{}}}", self.at)?)
    }

    /// Ends the calls at this depth and below.
    fn close(&mut self, out: &mut dyn Write, depth: u32) -> Result<(), ExportError> {
        while let Some((_, frame)) = self.open.pop_if(|(open, _)| *open >= depth) {
            self.event(out, 'C', frame)?;
        }
        Ok(())
    }

    /// Ends the profile; a call without an end lasted until the last event.
    fn end(mut self, out: &mut dyn Write) -> Result<(), ExportError> {
        self.close(out, 0)?;
        Ok(write!(out, "],\"endValue\":{}}}", self.at)?)
    }
}

/// Each call of `flow`.
fn write_calls(file: &mut File<'_>, recording: &Recording, query: &Query) -> Result<(), ExportError> {
    let log = FlowLog::open(recording, query, None)?;
    let mut calls: Option<Calls> = None;
    log.walk(|row| -> Result<(), ExportError> {
        let thread = (row.function.pid, row.thread.id);
        if calls.as_ref().is_none_or(|calls| calls.thread != thread) {
            // An end without a start is not an event.
            if row.kind != FlowKind::Enter {
                return Ok(());
            }
            if let Some(before) = calls.take() {
                before.end(file.out)?;
            }
            let of_pid = |process: &&Process| process.pid == row.function.pid;
            let process = recording.processes.iter().find(of_pid);
            let title = process.map_or_else(String::new, |process| thread_title(recording, process, row.thread));
            file.profile("evented", &title, "nanoseconds", row.time_ns, "events")?;
            calls = Some(Calls { thread, open: Vec::new(), at: row.time_ns, is_first: true });
        }
        let Some(calls) = &mut calls else { return Ok(()) };
        calls.at = calls.at.max(row.time_ns);
        calls.close(file.out, if row.kind == FlowKind::Enter { row.depth } else { row.depth.saturating_add(1) })?;
        if row.kind == FlowKind::Enter {
            let frame = file.frames.function(&row.function);
            calls.open.push((row.depth, frame));
            return calls.event(file.out, 'O', frame);
        }
        match calls.open.pop_if(|(depth, _)| *depth == row.depth) {
            Some((_, frame)) => calls.event(file.out, 'C', frame),
            None => Ok(()),
        }
    })?;
    match calls {
        Some(last) => last.end(file.out),
        None => Ok(()),
    }
}
