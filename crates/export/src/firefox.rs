//! `firefox`: a profile for the Firefox Profiler (profiler.firefox.com), in its processed format.
//!
//! Each thread has its samples with their times. The category of a frame is its kind of code.
//! Recorded exceptions and collections are markers. A `wall` sample that represents a period of an
//! unchanged thread becomes two samples: one at the start of the period with all the weight, and
//! one at its end.

use std::collections::HashMap;
use std::io::{self, Write};
use std::time::Duration;

use clrscope_analysis::{
    AttributeValue, ExceptionLog, ExceptionQuery, FunctionRef, Metric, Query, QueryProblem, Resource, SAMPLED_CPU,
    StackLog, StackMoment, ThreadStacks, Unit, collections, kind_of_code, one_line,
};
use clrscope_recording::model::{Process, Recording, Thread};
use fxprof_processed_profile::{
    CategoryColor, CategoryHandle, CpuDelta, Frame, FrameFlags, FrameInfo, MarkerFieldFlags, MarkerFieldFormat,
    MarkerTiming, ProcessHandle, Profile, ReferenceTimestamp, SamplingInterval, StackHandle, StaticSchemaMarker,
    StaticSchemaMarkerField, StringHandle, ThreadHandle, Timestamp, WeightType,
};

use crate::json::quoted;
use crate::threads::{command, command_of, plain_thread_name};
use crate::{ExportError, ExportOptions, Exporter};

/// The format `firefox`; its module describes the output.
pub(crate) struct Firefox;

/// Categories of frames by the kinds of their code; frames of no kind get the last one.
const CATEGORIES: [(&str, CategoryColor, &[&str]); 8] = [
    ("Own code", CategoryColor::Yellow, &["own"]),
    ("Framework", CategoryColor::Blue, &["framework"]),
    ("Runtime", CategoryColor::Green, &["jit", "type_loading", "runtime", "exceptions", "suspension"]),
    ("Garbage collection", CategoryColor::Orange, &["gc"]),
    ("Native", CategoryColor::Purple, &["native"]),
    ("Kernel", CategoryColor::Gray, &["kernel"]),
    ("Waiting", CategoryColor::Transparent, &["waiting"]),
    ("Unknown", CategoryColor::DarkGray, &["profiler", "unknown"]),
];
/// Place of the category of collections.
const COLLECTIONS: usize = 3;
/// Interval between two samples if unknown: a millisecond.
const INTERVAL_NS: u64 = 1_000_000;

impl Exporter for Firefox {
    fn name(&self) -> &'static str {
        "firefox"
    }

    fn description(&self) -> &'static str {
        "samples with their times for the Firefox Profiler (profiler.firefox.com), with exceptions and collections"
    }

    fn extension(&self) -> &'static str {
        "firefox.json"
    }

    fn shows_native_code(&self) -> bool {
        true
    }

    fn write(&self, recording: &Recording, options: &ExportOptions, out: &mut dyn Write) -> Result<(), ExportError> {
        let log = StackLog::open(recording, &options.query, "firefox")?;
        let mut export = Export::new(recording, log.metric());
        for thread in log.threads() {
            export.samples(&thread)?;
        }
        if export.threads.is_empty() {
            return Err(ExportError::Empty("no samples are left to show"));
        }
        let query = Query { metric: None, sort: None, ..options.query.clone() };
        export.collections(recording, &query)?;
        export.exceptions(recording, &query)?;
        let mut out = WithExtra { out, start: START, extra: extra(recording) };
        serde_json::to_writer(&mut out, &export.profile).map_err(io::Error::from)?;
        Ok(())
    }
}

/// The start of a profile, as the library writes it.
const START: &[u8] = b"{\"meta\":{";

/// The profile's information about processes for the format's `meta.extra`, which the library can't
/// write.
fn extra(recording: &Recording) -> String {
    let of_process = |process: &Process| {
        let resource = Resource::from_process(recording, process);
        let entry = |(key, value): (&str, &AttributeValue<'_>)| {
            let [key, value] = [one_line(key), one_line(value.to_text())].map(|text| quoted(&text));
            format!("{{\"label\":{key},\"format\":\"string\",\"value\":{value}}}")
        };
        let entries: Vec<String> = resource.attributes().map(entry).collect();
        format!("{{\"label\":\"Process {}\",\"entries\":[{}]}}", process.pid, entries.join(","))
    };
    let sections: Vec<String> = recording.processes.iter().map(of_process).collect();
    format!("\"extra\":[{}],", sections.join(","))
}

/// Inserts `extra` after the start of the written text.
struct WithExtra<'o> {
    out: &'o mut dyn Write,
    /// The part of the start that has not been written yet.
    start: &'static [u8],
    extra: String,
}

impl Write for WithExtra<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.start.is_empty() {
            return self.out.write(bytes);
        }
        let length = bytes.len().min(self.start.len());
        self.start = self.start.strip_prefix(&bytes[..length]).ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidData, "the profile does not start with its metadata")
        })?;
        self.out.write_all(&bytes[..length])?;
        if self.start.is_empty() {
            self.out.write_all(self.extra.as_bytes())?;
        }
        Ok(length)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// A profile that is being built.
struct Export {
    profile: Profile,
    metric: &'static Metric,
    categories: [CategoryHandle; CATEGORIES.len()],
    processes: Vec<(u32, ProcessHandle)>,
    /// By process and thread.
    threads: Vec<((u32, u32), ThreadHandle)>,
}

fn at(ns: u64) -> Timestamp {
    Timestamp::from_nanos_since_reference(ns)
}

impl Export {
    fn new(recording: &Recording, metric: &'static Metric) -> Self {
        let run = &recording.run;
        let started = ReferenceTimestamp::from_duration_since_unix_epoch(Duration::from_nanos(run.started_unix_ns));
        let samplers = recording.processes.iter().flat_map(|process| &process.samplers);
        let reached = samplers.filter(|sampler| sampler.instrument == metric.instrument).map(|of| of.reached_ns).max();
        let interval = SamplingInterval::from_nanos(reached.filter(|ns| *ns > 0).unwrap_or(INTERVAL_NS));
        let mut profile = Profile::new(&command(recording), started, interval);
        let categories = CATEGORIES.map(|(name, colour, _)| profile.add_category(name, colour));
        Self { profile, metric, categories, processes: Vec::new(), threads: Vec::new() }
    }

    fn process(&mut self, process: &Process) -> ProcessHandle {
        if let Some((_, known)) = self.processes.iter().find(|(pid, _)| *pid == process.pid) {
            return *known;
        }
        let made = self.profile.add_process(&command_of(process), process.pid, at(process.started_ns));
        self.profile.set_process_end_time(made, at(process.started_ns.saturating_add(process.duration_ns)));
        self.processes.push((process.pid, made));
        made
    }

    fn thread(&mut self, process: &Process, thread: &Thread) -> ThreadHandle {
        let key = (process.pid, thread.id);
        if let Some((_, known)) = self.threads.iter().find(|(known, _)| *known == key) {
            return *known;
        }
        let of = self.process(process);
        let is_main = thread.id != 0 && process.threads.first().is_some_and(|first| first.id == thread.id);
        let made = self.profile.add_thread(of, thread.os_id, at(thread.created_ns), is_main);
        self.profile.set_thread_name(made, &plain_thread_name(thread));
        if let Some(ended) = thread.ended_ns {
            self.profile.set_thread_end_time(made, at(ended));
        }
        let weights = if self.metric.unit == Unit::Bytes { WeightType::Bytes } else { WeightType::Samples };
        self.profile.set_thread_samples_weight_type(made, weights);
        self.threads.push((key, made));
        made
    }

    fn samples(&mut self, of: &ThreadStacks<'_, '_>) -> Result<(), ExportError> {
        let mut stacks: HashMap<u32, Option<StackHandle>> = HashMap::new();
        let mut thread = None;
        of.walk(|event: &StackMoment<'_, '_>| {
            let thread = *thread.get_or_insert_with(|| self.thread(of.process, of.thread));
            let stack = *stacks.entry(event.stack).or_insert_with(|| self.stack(thread, event.path));
            let cpu = if self.metric.name == SAMPLED_CPU.name { event.amount } else { 0 };
            let weight = if self.metric.is_sampled() { event.samples } else { event.amount };
            let weight = i32::try_from(weight).unwrap_or(i32::MAX);
            self.profile.add_sample(thread, at(event.time_ns), stack, CpuDelta::from_nanos(cpu), weight);
            // Awaits that ended on one thread may overlap, but samples of a thread must not.
            if event.lasted_ns > 0 && self.metric.is_sampled() {
                let end = at(event.time_ns.saturating_add(event.lasted_ns));
                self.profile.add_sample_same_stack_zero_cpu(thread, end, 0);
            }
            Ok(())
        })
    }

    fn stack(&mut self, thread: ThreadHandle, path: &[FunctionRef<'_>]) -> Option<StackHandle> {
        path.iter().fold(None, |caller, function| {
            let kind = kind_of_code(function);
            let place = CATEGORIES.iter().position(|(.., kinds)| kinds.contains(&kind)).unwrap_or(CATEGORIES.len() - 1);
            let label = match function.module() {
                "" => self.profile.intern_string(&one_line(function.label())),
                module => self.profile.intern_string(&one_line(format!("{}  [{module}]", function.label()))),
            };
            let frame = FrameInfo {
                frame: Frame::Label(label),
                category_pair: self.categories[place].into(),
                flags: FrameFlags::empty(),
            };
            let frame = self.profile.intern_frame(thread, frame);
            Some(self.profile.intern_stack(thread, caller, frame))
        })
    }

    /// Markers of collections, on the threads that caused them, or on the first thread of their
    /// process.
    fn collections(&mut self, recording: &Recording, query: &Query) -> Result<(), ExportError> {
        for collection in unless_recorded(collections(recording, query))?.into_iter().flatten() {
            let process = collection.process;
            let Some(thread) = collection.thread.or(process.threads.first()) else { continue };
            let thread = self.thread(process, thread);
            let end_ns = collection.end_ns.unwrap_or(collection.start_ns.saturating_add(collection.pause_ns));
            let name = format!("GC generation {}", collection.generation);
            let details = format!("{}, {}", collection.kind.name(), collection.reason.words());
            let marker = self.marker(&name, &details, COLLECTIONS);
            let timing = MarkerTiming::Interval(at(collection.start_ns), at(end_ns.max(collection.start_ns)));
            self.profile.add_marker(thread, timing, marker);
        }
        Ok(())
    }

    fn exceptions(&mut self, recording: &Recording, query: &Query) -> Result<(), ExportError> {
        let asked = ExceptionQuery { query: query.clone(), ..ExceptionQuery::default() };
        let Some(log) = unless_recorded(ExceptionLog::open(recording, &asked))? else { return Ok(()) };
        log.walk(|thrown| -> Result<(), ExportError> {
            if let Some(thread) = thrown.thread {
                let thread = self.thread(thrown.process, thread);
                let marker = self.marker(thrown.type_name, thrown.message.as_deref().unwrap_or_default(), 0);
                self.profile.add_marker(thread, MarkerTiming::Instant(at(thrown.time_ns)), marker);
            }
            Ok(())
        })?;
        Ok(())
    }

    fn marker(&mut self, name: &str, details: &str, category: usize) -> Marker {
        let [name, details] = [name, details].map(|text| self.profile.intern_string(&one_line(text)));
        Marker { name, details, category: self.categories[category] }
    }
}

/// `None` if the instrument was not recorded.
fn unless_recorded<T>(found: Result<T, QueryProblem>) -> Result<Option<T>, ExportError> {
    match found {
        Err(QueryProblem::NotRecorded { .. }) => Ok(None),
        found => Ok(Some(found?)),
    }
}

/// A marker with a text.
struct Marker {
    name: StringHandle,
    details: StringHandle,
    category: CategoryHandle,
}

impl StaticSchemaMarker for Marker {
    const UNIQUE_MARKER_TYPE_NAME: &'static str = "clrscope";
    const CHART_LABEL: Option<&'static str> = Some("{marker.data.details}");
    const TABLE_LABEL: Option<&'static str> = Some("{marker.name}: {marker.data.details}");
    const FIELDS: &'static [StaticSchemaMarkerField] = &[StaticSchemaMarkerField {
        key: "details",
        label: "Details",
        format: MarkerFieldFormat::String,
        flags: MarkerFieldFlags::SEARCHABLE,
    }];

    fn name(&self, _profile: &mut Profile) -> StringHandle {
        self.name
    }

    fn category(&self, _profile: &mut Profile) -> CategoryHandle {
        self.category
    }

    fn string_field_value(&self, _field_index: u32) -> StringHandle {
        self.details
    }

    fn number_field_value(&self, _field_index: u32) -> f64 {
        0.0
    }
}
