//! `otlp`: profiles in OpenTelemetry's format, the message `ProfilesData` of
//! `profiles/v1development` (version 1.10 of the protocol, which calls this signal alpha).
//! Collectors and their file exporters read it.
//!
//! Each process and metric is a profile with its own identifier, in a resource that names the
//! process. A sampled metric has two profiles: one with the numbers of samples (`samples:count`,
//! with a period) and one with the time that the samples represent. Samples with times are grouped
//! into one sample per thread and stack, with all times. Sample counts and the trees of `calls` are
//! one sample per thread and path. The file can also be sent to a receiver as the body of a gRPC or
//! HTTP request: `ExportProfilesServiceRequest` has the same fields. The attributes of a sample
//! name its thread and the route of its request. The link of a sample is the span of its request,
//! if the program has activities.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::io::{self, Write};

use clrscope_analysis::{KnownRequest, METRICS, Metric, Query, StackLog, TraceIds, Unit, observed_unix_ns, one_line};
use clrscope_recording::model::{Process, Recording, Thread};

use crate::frames::Frames;
use crate::locations::Locations;
use crate::protobuf::{LongList, Message};
use crate::refusals::refuse_min_share;
use crate::resource::{put_resource, put_scope};
use crate::stacks::{Step, forest, walk};
use crate::threads::thread_name;
use crate::{ExportError, ExportOptions, Exporter};

/// The format `otlp`; its module describes the output.
pub(crate) struct Otlp;

impl Exporter for Otlp {
    fn name(&self) -> &'static str {
        "otlp"
    }

    fn description(&self) -> &'static str {
        "OpenTelemetry profiles (v1development), every metric of call paths by thread"
    }

    fn extension(&self) -> &'static str {
        "otlp"
    }

    fn takes_min_share(&self) -> bool {
        true
    }

    fn shows_native_code(&self) -> bool {
        true
    }

    fn write(&self, recording: &Recording, options: &ExportOptions, out: &mut dyn Write) -> Result<(), ExportError> {
        let kinds = kinds(recording, &options.query)?;
        let mut dictionary = Dictionary::default();
        let mut is_empty = true;
        for process in &recording.processes {
            let query = Query { pid: Some(process.pid), ..options.query.clone() };
            if options.query.pid.is_some_and(|pid| pid != process.pid) {
                continue;
            }
            for kind in &kinds {
                let query = Query { metric: Some(kind.metric), ..query.clone() };
                let samples = match kind.metric.is_of_calls() {
                    true => of_paths(recording, &query, options.min_share.unwrap_or(0.0), &mut dictionary)?,
                    false => {
                        refuse_min_share(options, self.name(), "each sample is written with its time")?;
                        of_events(recording, &query, kind, &mut dictionary)?
                    }
                };
                if !samples.pieces().is_empty() {
                    is_empty = false;
                    let rest = rest_of_profile(recording, process, kind, &mut dictionary);
                    write_resource(out, (recording, process), &rest, &samples)?;
                }
            }
        }
        if is_empty {
            return Err(ExportError::Empty("no metric of call paths has anything"));
        }
        let (tables, stacks) = dictionary.encoded();
        Ok(write_parts(out, 2, || [&tables].into_iter().chain(stacks.pieces()))?)
    }
}

/// Kind of profile.
struct Kind {
    metric: &'static Metric,
    /// Numbers of samples, without their times: engines recognise CPU time by the sample count and
    /// the period.
    counts_samples: bool,
}

impl Kind {
    fn new(metric: &'static Metric) -> Self {
        Self { metric, counts_samples: metric.counts_samples() }
    }

    /// Name and unit of values.
    fn sample_type(&self) -> [&'static str; 2] {
        if self.counts_samples { ["samples", Unit::Count.name()] } else { [self.metric.name, self.metric.unit.name()] }
    }
}

/// The requested metric, or otherwise all recorded metrics. Sampled metrics have two kinds: the
/// number of samples, and the time that they represent.
fn kinds(recording: &Recording, query: &Query) -> Result<Vec<Kind>, ExportError> {
    if query.metric.is_some() {
        return Ok(vec![Kind::new(Metric::for_query(recording, query)?)]);
    }
    let of =
        |metric: &'static Metric| Metric::for_query(recording, &Query { metric: Some(metric), ..query.clone() }).ok();
    let mut kinds = Vec::new();
    for metric in METRICS.into_iter().filter_map(of) {
        if !metric.is_sampled() {
            kinds.push(Kind::new(metric));
        } else if metric.unit == Unit::Nanoseconds {
            // For each instrument, not only the first.
            kinds.push(Kind { metric, counts_samples: true });
            kinds.push(Kind { metric, counts_samples: false });
        }
    }
    Ok(kinds)
}

/// Total length of the parts in bytes.
fn length<'m>(parts: impl Iterator<Item = &'m Message>) -> usize {
    parts.map(|part| part.encoded().len()).sum()
}

/// Writes a message that consists of parts, one after another, without copying them.
fn write_parts<'m, P: Iterator<Item = &'m Message>>(
    out: &mut dyn Write,
    field: u64,
    parts: impl Fn() -> P,
) -> io::Result<()> {
    out.write_all(Message::head(field, length(parts())).encoded())?;
    parts().try_for_each(|part| out.write_all(part.encoded()))
}

/// Writes the process and its profiles.
fn write_resource(
    out: &mut dyn Write,
    (recording, process): (&Recording, &Process),
    rest_of_profile: &Message,
    samples: &LongList,
) -> io::Result<()> {
    let mut resource = Message::default();
    put_resource(&mut resource, recording, process);
    let mut scope = Message::default();
    put_scope(&mut scope, "clrscope", Some(env!("CARGO_PKG_VERSION")));
    let in_profile = || samples.pieces().iter().chain([rest_of_profile]);
    let of_profile = Message::head(2, length(in_profile()));
    let in_scope = || [&scope, &of_profile].into_iter().chain(in_profile());
    let of_scope = Message::head(2, length(in_scope()));
    write_parts(out, 1, || [&resource, &of_scope].into_iter().chain(in_scope()))
}

/// The fields of a profile after its samples.
fn rest_of_profile(recording: &Recording, process: &Process, kind: &Kind, dictionary: &mut Dictionary) -> Message {
    let mut profile = Message::default();
    let mut value_type = |profile: &mut Message, field: u64, texts: [&str; 2]| {
        let [kind, unit] = texts.map(|text| dictionary.text(text));
        profile.message(field, |of| {
            of.number(1, kind);
            of.number(2, unit);
        });
    };
    value_type(&mut profile, 1, kind.sample_type());
    let observed = observed_unix_ns(recording);
    profile.fixed64(3, observed.start);
    profile.number(4, observed.end - observed.start);
    if let Some(period) = kind.metric.sampling_period_ns(process) {
        // A profile is named after its instrument, also for sample counts.
        let name = if kind.metric.is_of_calls() { kind.metric.name } else { kind.metric.instrument };
        value_type(&mut profile, 5, [name, "nanoseconds"]);
        profile.number(6, period);
    }
    if let Some(id) = profile_id(&recording.run.id, process.pid, kind) {
        profile.bytes(7, &id);
    }
    profile
}

/// Identifier of a profile: the recording's identifier, changed by process, instrument and sample
/// type, so that a receiver can detect duplicates. `None` if the recording has no identifier.
fn profile_id(recording: &str, pid: u32, kind: &Kind) -> Option<[u8; 16]> {
    let digits: String = recording.chars().filter(|c| *c != '-').collect();
    let id = u128::from_str_radix(&digits, 16).ok().filter(|_| digits.len() == 32)?;
    // FNV-1a (128 bits) of the data that distinguishes profiles of one recording.
    let of_bytes =
        |hash: u128, byte: &u8| (hash ^ u128::from(*byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013B);
    // Samples of two instruments have the same type.
    let [name, unit] = kind.sample_type().map(str::as_bytes);
    let words = [&pid.to_le_bytes()[..], kind.metric.instrument.as_bytes(), b":", name, b":", unit];
    let hash = words.concat().iter().fold(0x6C62_272E_07BB_0142_62B8_2175_6295_C58D, of_bytes);
    Some((id ^ hash).to_be_bytes())
}

/// A sample for each path of each thread.
fn of_paths(
    recording: &Recording,
    query: &Query,
    min_share: f64,
    dictionary: &mut Dictionary,
) -> Result<LongList, ExportError> {
    let forest = forest(recording, &Query { per_thread: true, ..query.clone() })?;
    let mut samples = LongList::default();
    let mut path: Vec<u64> = Vec::new();
    let mut thread: Option<&Thread> = None;
    walk(&forest, min_share, |step| {
        match step {
            Step::Enter(at) => {
                thread = at.thread;
                let function = dictionary.frames.function(&at.function) as u64 + 1;
                path.push(dictionary.locations.number(&[function]));
            }
            Step::Leave(weight) => {
                if weight > 0 {
                    let stack = dictionary.stack(&path);
                    let of_thread = thread.map(|thread| dictionary.of_thread(thread));
                    samples.message(2, |sample| {
                        sample.number(1, stack);
                        sample.packed(2, of_thread.iter().flatten());
                        sample.packed(4, &[weight]);
                    });
                }
                path.pop();
            }
        }
        Ok(())
    })?;
    Ok(samples)
}

/// A sample for each stack of each thread, with the amounts and times of all events, or with the
/// number of samples.
fn of_events(
    recording: &Recording,
    query: &Query,
    kind: &Kind,
    dictionary: &mut Dictionary,
) -> Result<LongList, ExportError> {
    let mut samples = LongList::default();
    let query = Query { type_leaves: true, ..query.clone() };
    for thread in StackLog::open(recording, &query, "otlp")?.threads() {
        let mut stacks: HashMap<(u32, OfRequest), usize> = HashMap::new();
        let mut found: Vec<(u64, OfRequest, Vec<u64>, Vec<u64>)> = Vec::new();
        thread.walk(|event| -> Result<(), ExportError> {
            let request = event.request.map_or(OfRequest::default(), |request| dictionary.of_request(request));
            let place = match stacks.entry((event.stack, request)) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(new) => {
                    let Dictionary { frames, locations, .. } = &mut *dictionary;
                    let functions = event.path.iter().map(|function| frames.function(function) as u64 + 1);
                    let path = locations.path(functions.zip(event.inlined.iter().copied()));
                    found.push((dictionary.stack(&path), request, Vec::new(), Vec::new()));
                    *new.insert(found.len() - 1)
                }
            };
            let (.., amounts, times) = &mut found[place];
            if kind.counts_samples {
                match amounts.first_mut() {
                    Some(count) => *count = count.saturating_add(event.samples),
                    None => amounts.push(event.samples),
                }
            } else {
                amounts.push(event.amount);
                times.push(recording.run.started_unix_ns.saturating_add(event.time_ns));
            }
            Ok(())
        })?;
        let of_thread = dictionary.of_thread(thread.thread);
        for (stack, request, amounts, times) in &found {
            samples.message(2, |sample| {
                sample.number(1, *stack);
                sample.packed(2, of_thread.iter().chain(&request.route));
                if request.link != 0 {
                    sample.number(3, request.link);
                }
                sample.packed(4, amounts);
                if !times.is_empty() {
                    sample.packed_fixed64(5, times);
                }
            });
        }
    }
    Ok(samples)
}

/// Tables that all profiles refer to by number. Entry 0 of each table means "none".
struct Dictionary {
    /// The frames are the format's functions.
    frames: Frames,
    locations: Locations,
    texts: Vec<String>,
    numbers: HashMap<String, u64>,
    /// The table of stacks as it is encoded, and how many there are.
    stacks: (LongList, u32),
    /// Paths as a tree: the number of each path, by the number of its parent path and its last
    /// location.
    paths: HashMap<(u32, u32), u32>,
    /// Number of the stack of each path, 0 for none.
    of_paths: Vec<u32>,
    /// Keys and values of attributes: a number, or the index of a text.
    attributes: Vec<(u64, Attribute)>,
    of_threads: HashMap<(usize, u32), [u64; 2]>,
    of_routes: HashMap<String, u64>,
    /// Traces and spans of links, numbered from 1.
    links: Vec<TraceIds>,
    of_spans: HashMap<TraceIds, u64>,
}

/// A sample's references to its request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
struct OfRequest {
    /// Number of the attribute with its route.
    route: Option<u64>,
    /// Number of the link, 0 for none.
    link: u64,
}

/// Value of an attribute.
enum Attribute {
    Text(String),
    Number(u64),
}

impl Default for Dictionary {
    fn default() -> Self {
        Self {
            frames: Frames::default(),
            locations: Locations::default(),
            texts: vec![String::new()],
            numbers: HashMap::from([(String::new(), 0)]),
            stacks: (LongList::default(), 0),
            paths: HashMap::new(),
            of_paths: vec![0],
            attributes: Vec::new(),
            of_threads: HashMap::new(),
            of_routes: HashMap::new(),
            links: Vec::new(),
            of_spans: HashMap::new(),
        }
    }
}

impl Dictionary {
    fn text(&mut self, text: &str) -> u64 {
        if let Some(&known) = self.numbers.get(text) {
            return known;
        }
        let number = self.texts.len() as u64;
        self.texts.push(text.to_owned());
        self.numbers.insert(text.to_owned(), number);
        number
    }

    /// Number of the stack of locations; `path` has the outermost location first.
    fn stack(&mut self, path: &[u64]) -> u64 {
        let end = path.iter().fold(0, |caller, &location| {
            let next = self.of_paths.len() as u32;
            let number = *self.paths.entry((caller, location as u32)).or_insert(next);
            if number == next {
                self.of_paths.push(0);
            }
            number
        });
        let (stacks, count) = &mut self.stacks;
        let known = &mut self.of_paths[end as usize];
        if *known == 0 {
            // In the format the innermost location is first.
            stacks.message(7, |stack| stack.packed(1, path.iter().rev()));
            *count += 1;
            *known = *count;
        }
        u64::from(*known)
    }

    /// Numbers of the attributes that name a thread.
    fn of_thread(&mut self, thread: &Thread) -> [u64; 2] {
        let key = (std::ptr::from_ref(thread).addr(), thread.id);
        if let Some(known) = self.of_threads.get(&key) {
            return *known;
        }
        let [name, id] = ["thread.name", "thread.id"].map(|key| self.text(key));
        self.attributes.push((name, Attribute::Text(thread_name(thread))));
        self.attributes.push((id, Attribute::Number(thread.os_id.into())));
        let last = self.attributes.len() as u64;
        self.of_threads.insert(key, [last - 1, last]);
        [last - 1, last]
    }

    /// Numbers of the attribute and of the link of a request.
    fn of_request(&mut self, request: &KnownRequest) -> OfRequest {
        let route = match self.of_routes.get(&*request.route) {
            Some(known) => *known,
            None => {
                let key = self.text("clrscope.request");
                self.attributes.push((key, Attribute::Text(one_line(&*request.route))));
                let number = self.attributes.len() as u64;
                self.of_routes.insert(request.route.to_string(), number);
                number
            }
        };
        let link = request.trace.map_or(0, |trace| match self.of_spans.get(&trace) {
            Some(known) => *known,
            None => {
                self.links.push(trace);
                let number = self.links.len() as u64;
                self.of_spans.insert(trace, number);
                number
            }
        });
        OfRequest { route: Some(route), link }
    }

    /// The tables, followed by the table of stacks.
    fn encoded(mut self) -> (Message, LongList) {
        let mut message = Message::default();
        let all: Vec<_> = self.frames.all().to_vec();
        let frames: Vec<[u64; 2]> =
            all.iter().map(|frame| [self.text(&frame.name), self.text(&frame.module)]).collect();
        // The first entry of each table, which means "none".
        message.message(1, |_| ());
        message.message(2, |_| ());
        message.message(3, |_| ());
        message.message(4, |_| ());
        for link in &self.links {
            let (trace, span) = link.to_bytes();
            message.message(4, |written| {
                written.bytes(1, &trace);
                written.bytes(2, &span);
            });
        }
        for functions in self.locations.all() {
            message.message(2, |location| {
                functions.iter().for_each(|function| location.message(3, |line| line.number(1, *function)));
            });
        }
        for [name, module] in frames {
            message.message(3, |function| {
                function.number(1, name);
                function.number(2, name);
                function.number(3, module);
            });
        }
        self.texts.iter().for_each(|text| message.bytes(5, text.as_bytes()));
        message.message(6, |_| ());
        for (key, value) in &self.attributes {
            message.message(6, |attribute| {
                attribute.number(1, *key);
                attribute.message(2, |any| match value {
                    Attribute::Text(text) => any.bytes(1, text.as_bytes()),
                    Attribute::Number(number) => any.number(3, *number),
                });
            });
        }
        message.message(7, |_| ());
        (message, self.stacks.0)
    }
}
