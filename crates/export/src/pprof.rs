//! `pprof`: a profile of any metric for pprof and the many programs that read its format.
//!
//! The file is the message `Profile` of `profile.proto`, compressed by gzip as its readers expect.
//! Samples of `cpu` and `wall` have their count and their time; allocations have their objects and
//! bytes. The default sample type is the metric. All labels of a sample are texts: its thread, its
//! process if there are several, and the method and route of its request. Functions are frames,
//! identified by name. Mappings are the assemblies and libraries that contain the code; the first
//! is the assembly of the program's entry point. Inlined methods are lines in the location of the
//! method that contains the code. Comments describe the recording.
//!
//! A profile of the heap, and one with `--limit` (which counts the parts of a tree), has no labels
//! and no mappings, and inlined methods have locations of their own.

use std::collections::HashMap;
use std::io::{self, Write};

use clrscope_analysis::{
    BYTES, FunctionRef, Metric, OBJECTS, Query, Resource, SAMPLED_CPU, SAMPLED_WALL, StackLog, Unit, observed_unix_ns,
    one_line,
};
use clrscope_recording::layout::instrument;
use clrscope_recording::model::{Module, Process, Recording, Thread};
use flate2::Compression;
use flate2::write::GzEncoder;

use crate::locations::Locations;
use crate::protobuf::Message;
use crate::stacks::{MAX_FRAMES, Step, forest, places, push_frame, walk};
use crate::threads::plain_thread_name;
use crate::weighed::{weighed_stacks, weight_of};
use crate::{ExportError, ExportOptions, Exporter};

/// The format `pprof`; its module describes the output.
pub(crate) struct Pprof;

/// Numbers of the fields of `Profile`.
mod field {
    pub(super) const SAMPLE_TYPE: u64 = 1;
    pub(super) const SAMPLE: u64 = 2;
    pub(super) const MAPPING: u64 = 3;
    pub(super) const LOCATION: u64 = 4;
    pub(super) const FUNCTION: u64 = 5;
    pub(super) const STRING_TABLE: u64 = 6;
    pub(super) const TIME_NANOS: u64 = 9;
    pub(super) const DURATION_NANOS: u64 = 10;
    pub(super) const PERIOD_TYPE: u64 = 11;
    pub(super) const PERIOD: u64 = 12;
    pub(super) const COMMENT: u64 = 13;
    pub(super) const DEFAULT_SAMPLE_TYPE: u64 = 14;
}

impl Exporter for Pprof {
    fn name(&self) -> &'static str {
        "pprof"
    }

    fn description(&self) -> &'static str {
        "a profile for pprof and the programs that read its format, compressed by gzip"
    }

    fn extension(&self) -> &'static str {
        "pb.gz"
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
        let mut out = GzEncoder::new(out, Compression::default());
        let mut tables = Tables::new(recording);
        let min_share = options.min_share.unwrap_or(0.0);
        let mut samples = Samples { out: &mut out, written: Message::default() };
        let plan = match plan(recording, options, self.name())? {
            Source::Events(plan) => {
                let mut paths = Paths::default();
                let mut first = 0;
                for columns in plan.columns.chunk_by(|a, b| std::ptr::eq(a.metric, b.metric)) {
                    let query = Query { metric: Some(columns[0].metric), ..options.query.clone() };
                    paths.read(recording, &query, (first, columns), &mut tables)?;
                    first += columns.len();
                }
                paths.write(min_share, plan.shown, plan.columns.len(), &mut tables, &mut samples)?;
                plan
            }
            Source::Tree(metric) => {
                of_tree(recording, &options.query, &mut tables, &mut samples)?;
                Plan::of_metric(metric)
            }
            Source::Weights => {
                let weight = weighed_stacks(recording, options, (self.name(), min_share), |stack, weight| {
                    if weight > 0 {
                        let function = |name: &str| tables.functions.number(&mut tables.strings, name, NO_MAPPING);
                        let locations: Vec<u64> = stack.split(';').map(function).collect();
                        let of = locations.into_iter().map(|function| (function, false));
                        samples.sample(&tables.locations.path(of), &[weight], &[])?;
                    }
                    Ok(())
                })?;
                let metric = Metric::for_query(recording, &options.query).ok();
                let metric = metric.filter(|metric| metric.name == weight.name);
                metric.map_or_else(|| Plan::of(weight.name, weight.unit), Plan::of_metric)
            }
        };
        let rest = rest(recording, options, &plan, tables);
        out.write_all(rest.encoded())?;
        out.finish()?;
        Ok(())
    }
}

/// Metrics of call paths that a recording has, one for each profile. The profiles together have
/// every value: the profile of a time also has the number of samples, and the profile of bytes also
/// has the number of objects.
#[must_use]
pub fn metrics_of_profiles(recording: &Recording) -> Vec<&'static Metric> {
    let is_profile = |metric: &&'static Metric| {
        let is_second = metric.counts_samples() || std::ptr::eq(*metric, &OBJECTS);
        let query = Query { metric: Some(metric), ..Query::default() };
        // Another metric of the same name may answer.
        let answers = || Metric::for_query(recording, &query).is_ok_and(|found| std::ptr::eq(found, *metric));
        !is_second && metric.is_recorded(recording) && answers()
    };
    Metric::each().filter(is_profile).collect()
}

/// Where samples come from.
enum Source {
    /// Events with stacks, whose methods have their inlined methods.
    Events(Plan),
    /// The trees of `calls`, thread by thread.
    Tree(&'static Metric),
    /// Paths with only a weight: for the heap, and if only the largest parts or parts above a share
    /// are requested.
    Weights,
}

/// Sample types of a profile, and its period.
struct Plan {
    /// Name and unit of each type, and the source of its values.
    types: Vec<(&'static str, &'static str)>,
    columns: Vec<Column>,
    /// Index of the type that is shown by default, and that decides which parts are large or small.
    shown: usize,
    /// Name and unit of the period, and its metric.
    period: Option<(&'static str, &'static str, &'static Metric)>,
}

/// Values of a sample type.
struct Column {
    metric: &'static Metric,
    /// Use the number of samples, not the amount.
    counts_samples: bool,
}

impl Plan {
    fn of(name: &'static str, unit: &'static str) -> Self {
        Self { types: vec![(name, unit)], columns: Vec::new(), shown: 0, period: None }
    }

    /// The plan for a single metric.
    fn of_metric(metric: &'static Metric) -> Self {
        let weight = weight_of(metric);
        let period = (metric.unit == Unit::Nanoseconds).then_some((weight.name, weight.unit, metric));
        Self { period, ..Self::of(weight.name, weight.unit) }
    }

    /// The plan for a metric of events, with its companion type.
    fn of_events(metric: &'static Metric) -> Self {
        let amount = |metric| Column { metric, counts_samples: false };
        if metric.is_sampled() {
            let time = if metric.instrument == instrument::WALL { &SAMPLED_WALL } else { &SAMPLED_CPU };
            return Self {
                types: vec![("samples", "count"), (time.name, "nanoseconds")],
                columns: vec![Column { metric: time, counts_samples: true }, amount(time)],
                shown: usize::from(metric.unit == Unit::Nanoseconds),
                period: Some((time.name, "nanoseconds", time)),
            };
        }
        if metric.instrument == instrument::ALLOC {
            return Self {
                types: vec![("alloc_objects", "count"), ("alloc_space", "bytes")],
                columns: vec![amount(&OBJECTS), amount(&BYTES)],
                shown: usize::from(metric.unit == Unit::Bytes),
                period: Some(("space", "bytes", metric)),
            };
        }
        Self { columns: vec![amount(metric)], ..Self::of_metric(metric) }
    }
}

/// The source of the requested samples.
fn plan(recording: &Recording, options: &ExportOptions, format: &'static str) -> Result<Source, ExportError> {
    if options.is_of_heap(recording, format)? || options.query.limit.is_some() {
        return Ok(Source::Weights);
    }
    let metric = Metric::for_query(recording, &options.query)?;
    Ok(match metric.is_of_calls() {
        false => Source::Events(Plan::of_events(metric)),
        // Shares refer to the paths of all threads together.
        true if options.min_share.is_some() => Source::Weights,
        true => Source::Tree(metric),
    })
}

/// Writes a sample for each path of each thread.
fn of_tree(
    recording: &Recording,
    query: &Query,
    tables: &mut Tables,
    samples: &mut Samples<'_>,
) -> Result<(), ExportError> {
    let forest = forest(recording, &Query { per_thread: true, ..query.clone() })?;
    let several = forest.conditions().processes.len() > 1;
    let mut path: Vec<u64> = Vec::new();
    // Length of the path before each node.
    let mut before: Vec<usize> = Vec::new();
    let mut labels: Vec<Label> = Vec::new();
    walk(&forest, 0.0, |step| {
        match step {
            Step::Enter(at) => {
                before.push(path.len());
                if at.depth == 0 {
                    let process = recording.processes.iter().find(|process| process.pid == at.function.pid);
                    let process = process.filter(|_| several);
                    labels = tables.labels_of_thread(process, at.thread);
                    for place in places(at.function.pid, at.thread.filter(|_| query.per_thread), several) {
                        let function = tables.named(&place);
                        path.push(tables.locations.number(&[function]));
                    }
                }
                let function = tables.function(&at.function);
                path.push(tables.locations.number(&[function]));
            }
            Step::Leave(weight) => {
                if weight > 0 {
                    samples.sample(&path, &[weight], &labels)?;
                }
                path.truncate(before.pop().unwrap_or(0));
            }
        }
        Ok(())
    })
}

/// The profile without its samples.
fn rest(recording: &Recording, options: &ExportOptions, plan: &Plan, tables: Tables) -> Message {
    let Tables { mut strings, functions, locations, mappings, .. } = tables;
    let mut rest = Message::default();
    let mut value_type = |rest: &mut Message, field: u64, name: &str, unit: &str| {
        let [name, unit] = [name, unit].map(|text| strings.number(text));
        rest.message(field, |of| {
            of.number(1, name);
            of.number(2, unit);
        });
    };
    for (name, unit) in &plan.types {
        value_type(&mut rest, field::SAMPLE_TYPE, name, unit);
    }
    if let Some((name, unit, metric)) = plan.period {
        let chosen = |process: &&Process| options.query.pid.is_none_or(|pid| pid == process.pid);
        let period = recording.processes.iter().filter(chosen).find_map(|process| period_of(process, metric));
        value_type(&mut rest, field::PERIOD_TYPE, name, unit);
        rest.number(field::PERIOD, period.unwrap_or(0));
    }
    for (number, mapping) in (1..).zip(&mappings.all) {
        rest.message(field::MAPPING, |of| {
            of.number(1, number);
            of.number(5, strings.number(&mapping.file));
            of.number(6, strings.number(&mapping.build_id));
            // The mapping has function names.
            of.number(7, 1);
        });
    }
    for (number, (name, _)) in (1..).zip(&functions.all) {
        rest.message(field::FUNCTION, |function| {
            function.number(1, number);
            function.number(2, *name);
            function.number(3, *name);
        });
    }
    for (number, lines) in (1..).zip(locations.all()) {
        // The last function is the method that contains the code.
        let code = lines.last().and_then(|function| functions.all.get(*function as usize - 1));
        rest.message(field::LOCATION, |location| {
            location.number(1, number);
            if let Some((_, mapping)) = code.filter(|(_, mapping)| *mapping != NO_MAPPING) {
                location.number(2, *mapping);
            }
            lines.iter().for_each(|function| location.message(4, |line| line.number(1, *function)));
        });
    }
    let observed = observed_unix_ns(recording);
    rest.number(field::TIME_NANOS, observed.start);
    rest.number(field::DURATION_NANOS, observed.end - observed.start);
    let shown = plan.types.get(plan.shown).map_or(0, |(name, _)| strings.number(name));
    rest.number(field::DEFAULT_SAMPLE_TYPE, shown);
    let mut comments: Vec<u64> = Vec::new();
    for process in &recording.processes {
        for (key, value) in Resource::from_process(recording, process).attributes() {
            let comment = strings.number(&one_line(format!("{key}={}", value.to_text())));
            if !comments.contains(&comment) {
                comments.push(comment);
            }
        }
    }
    comments.iter().for_each(|comment| rest.number(field::COMMENT, *comment));
    strings.all.iter().for_each(|text| rest.bytes(field::STRING_TABLE, text.as_bytes()));
    rest
}

/// Period of a metric in a process: nanoseconds between two samples of a thread, bytes between two
/// sampled objects, 1 if every object is recorded.
fn period_of(process: &Process, metric: &Metric) -> Option<u64> {
    match metric.instrument == instrument::ALLOC {
        true => process.allocation_sampling.as_ref().map(|sampling| sampling.mean_bytes.max(1)),
        false => metric.sampling_period_ns(process),
    }
}

/// Writes samples one by one.
struct Samples<'o> {
    out: &'o mut dyn Write,
    written: Message,
}

impl Samples<'_> {
    /// Writes a sample with locations, outermost first, with values by sample type, and labels.
    fn sample(&mut self, locations: &[u64], values: &[u64], labels: &[Label]) -> io::Result<()> {
        self.written.clear();
        self.written.message(field::SAMPLE, |sample| {
            // In the format the innermost location is first.
            sample.packed(1, locations.iter().rev());
            sample.packed(2, values);
            for label in labels {
                sample.message(3, |written| {
                    written.number(1, label.key);
                    written.number(2, label.text);
                });
            }
        });
        self.out.write_all(self.written.encoded())
    }
}

/// Mapping number of code that is not in a file.
const NO_MAPPING: u64 = 0;

/// Tables of the profile.
struct Tables {
    strings: Strings,
    functions: Functions,
    locations: Locations,
    mappings: Mappings,
    /// Sets of labels, without duplicates, by number.
    labels: Vec<Vec<Label>>,
    of_labels: HashMap<Vec<Label>, u32>,
}

impl Tables {
    fn new(recording: &Recording) -> Self {
        let mut mappings = Mappings::default();
        // Readers take the first mapping for the program.
        for process in &recording.processes {
            let name = &process.entry_assembly.name;
            let entry = process.modules.iter().find(|module| !name.is_empty() && module.name == *name);
            entry.into_iter().for_each(|module| _ = mappings.number(module));
        }
        Self {
            strings: Strings::default(),
            functions: Functions::default(),
            locations: Locations::default(),
            mappings,
            labels: Vec::new(),
            of_labels: HashMap::new(),
        }
    }

    /// Number of a frame that is not a function: a process or a thread, in front of the functions.
    fn named(&mut self, name: &str) -> u64 {
        let mut text = String::new();
        push_frame(&mut text, name);
        self.functions.number(&mut self.strings, &text, NO_MAPPING)
    }

    fn function(&mut self, function: &FunctionRef<'_>) -> u64 {
        let mut text = String::new();
        push_frame(&mut text, &function.label());
        let mapping = self.mappings.number(function.module);
        self.functions.number(&mut self.strings, &text, mapping)
    }

    fn label(&mut self, key: &str, text: &str) -> Label {
        Label { key: self.strings.number(key), text: self.strings.number(&one_line(text)) }
    }

    /// The labels for samples of a thread, including its process if there are several.
    fn labels_of_thread(&mut self, process: Option<&Process>, thread: Option<&Thread>) -> Vec<Label> {
        let mut labels = Vec::new();
        labels.extend(process.map(|process| self.label(PROCESS, &process.pid.to_string())));
        if let Some(thread) = thread {
            labels.push(self.label(THREAD, &plain_thread_name(thread)));
            if thread.id != 0 {
                labels.push(self.label(THREAD_ID, &thread.os_id.to_string()));
            }
        }
        labels
    }

    /// Number of a set of labels.
    fn labels(&mut self, labels: Vec<Label>) -> u32 {
        let next = self.labels.len() as u32;
        *self.of_labels.entry(labels).or_insert_with_key(|labels| {
            self.labels.push(labels.clone());
            next
        })
    }
}

/// A label of a sample: the numbers of its key and of its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Label {
    key: u64,
    text: u64,
}

/// Keys of labels: the process, the thread by name and by the system's number, and the request of a
/// sample.
const PROCESS: &str = "process_id";
const THREAD: &str = "thread";
const THREAD_ID: &str = "thread_id";
const REQUEST: &str = "request";

/// A frame of a path: the number of the function, and whether it was inlined into the one before.
type PathFrame = (u64, bool);

/// Values of a path, by sample type.
type Values = [u64; 2];

/// Paths of events as trees, with callers before callees: one tree for each set of labels.
#[derive(Default)]
struct Paths {
    nodes: Vec<PathNode>,
    numbers: HashMap<(Option<usize>, u32, PathFrame), usize>,
}

struct PathNode {
    caller: Option<usize>,
    labels: u32,
    frame: PathFrame,
    own: Values,
}

impl Paths {
    /// Reads the paths of all events that match a query, for the sample types with its metric: the
    /// index of the first one, and their columns.
    fn read(
        &mut self,
        recording: &Recording,
        query: &Query,
        (first, columns): (usize, &[Column]),
        tables: &mut Tables,
    ) -> Result<(), ExportError> {
        let log = StackLog::open(recording, &Query { type_leaves: true, ..query.clone() }, "pprof")?;
        let several = log.processes() > 1;
        for thread in log.threads() {
            let shown = query.per_thread.then_some(thread.thread);
            let places: Vec<u64> =
                places(thread.process.pid, shown, several).map(|place| tables.named(&place)).collect();
            let of_thread = tables.labels_of_thread(Some(thread.process).filter(|_| several), Some(thread.thread));
            let without = tables.labels(of_thread.clone());
            let mut nodes: HashMap<(u32, u32), Option<usize>> = HashMap::new();
            let mut routes: HashMap<Box<str>, u32> = HashMap::new();
            thread.walk(|event| -> Result<(), ExportError> {
                let labels = match event.request {
                    None => without,
                    Some(request) => match routes.get(&*request.route) {
                        Some(known) => *known,
                        None => {
                            let label = tables.label(REQUEST, &request.route);
                            let number = tables.labels([&of_thread[..], &[label]].concat());
                            routes.insert((*request.route).into(), number);
                            number
                        }
                    },
                };
                let node = *nodes.entry((event.stack, labels)).or_insert_with(|| {
                    let names = event.path.iter().map(|function| tables.function(function));
                    let functions = names.zip(event.inlined.iter().copied()).take(MAX_FRAMES as usize);
                    let places = places.iter().map(|place| (*place, false));
                    places.chain(functions).fold(None, |caller, frame| Some(self.node(caller, labels, frame)))
                });
                if let Some(node) = node.and_then(|node| self.nodes.get_mut(node)) {
                    for (own, column) in node.own[first..].iter_mut().zip(columns) {
                        let amount = if column.counts_samples { event.samples } else { event.amount };
                        *own = own.saturating_add(amount);
                    }
                }
                Ok(())
            })?;
        }
        Ok(())
    }

    fn node(&mut self, caller: Option<usize>, labels: u32, frame: PathFrame) -> usize {
        let next = self.nodes.len();
        let number = *self.numbers.entry((caller, labels, frame)).or_insert(next);
        if number == next {
            self.nodes.push(PathNode { caller, labels, frame, own: [0; 2] });
        }
        number
    }

    /// Writes each path that has at least a share of the whole, measured by the shown sample type.
    /// Its values include those of smaller paths below it. Paths of several threads and requests
    /// are added up.
    fn write(
        self,
        min_share: f64,
        shown: usize,
        types: usize,
        tables: &mut Tables,
        samples: &mut Samples<'_>,
    ) -> io::Result<()> {
        let shown_paths = self.shown_paths(min_share, shown);
        // Callers precede their callees and weigh at least as much.
        let mut own: Vec<Values> = vec![[0; 2]; self.nodes.len()];
        for (at, node) in self.nodes.iter().enumerate() {
            let mut place = Some(at);
            while let Some(path) = place.filter(|path| !shown_paths[*path]) {
                place = self.nodes[path].caller;
            }
            if let Some(place) = place {
                own[place].iter_mut().zip(node.own).for_each(|(sum, more)| *sum = sum.saturating_add(more));
            }
        }
        for (at, values) in own.into_iter().enumerate().filter(|(_, values)| *values != [0; 2]) {
            let callers = std::iter::successors(Some(at), |at| self.nodes[*at].caller);
            let mut frames: Vec<PathFrame> = callers.map(|at| self.nodes[at].frame).collect();
            frames.reverse();
            let locations = tables.locations.path(frames.into_iter());
            let labels = &tables.labels[self.nodes[at].labels as usize];
            samples.sample(&locations, &values[..types], labels)?;
        }
        Ok(())
    }

    /// Whether each node's path, summed over all labels, has at least a share of the whole.
    fn shown_paths(&self, min_share: f64, shown: usize) -> Vec<bool> {
        if min_share <= 0.0 {
            return vec![true; self.nodes.len()];
        }
        // The same path has one number, independent of labels.
        let mut numbers: HashMap<(Option<usize>, PathFrame), usize> = HashMap::new();
        let mut of_nodes: Vec<usize> = Vec::with_capacity(self.nodes.len());
        let mut callers: Vec<Option<usize>> = Vec::new();
        for node in &self.nodes {
            let caller = node.caller.map(|caller| of_nodes[caller]);
            let next = callers.len();
            let number = *numbers.entry((caller, node.frame)).or_insert(next);
            if number == next {
                callers.push(caller);
            }
            of_nodes.push(number);
        }
        let mut totals: Vec<u64> = vec![0; callers.len()];
        for (node, number) in self.nodes.iter().zip(&of_nodes) {
            totals[*number] = totals[*number].saturating_add(node.own[shown]);
        }
        let mut whole = 0_u64;
        for (at, caller) in callers.iter().enumerate().rev() {
            let total = totals[at];
            let sum = caller.map_or(&mut whole, |caller| &mut totals[caller]);
            *sum = sum.saturating_add(total);
        }
        let least = whole as f64 * min_share;
        of_nodes.into_iter().map(|number| totals[number] as f64 >= least).collect()
    }
}

/// Functions by name and mapping, numbered from 1.
#[derive(Default)]
struct Functions {
    numbers: HashMap<(u64, u64), u64>,
    /// Numbers of the name and of the mapping of each.
    all: Vec<(u64, u64)>,
}

impl Functions {
    fn number(&mut self, strings: &mut Strings, name: &str, mapping: u64) -> u64 {
        let key = (strings.number(name), mapping);
        let next = self.all.len() as u64 + 1;
        let number = *self.numbers.entry(key).or_insert(next);
        if number == next {
            self.all.push(key);
        }
        number
    }
}

/// Files with code, numbered from 1.
#[derive(Default)]
struct Mappings {
    /// By the position of modules in the recording.
    numbers: HashMap<usize, u64>,
    of_files: HashMap<Mapping, u64>,
    all: Vec<Mapping>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Mapping {
    file: String,
    build_id: String,
}

impl Mappings {
    fn number(&mut self, module: &Module) -> u64 {
        let place = std::ptr::from_ref(module).addr();
        if let Some(known) = self.numbers.get(&place) {
            return *known;
        }
        let file = one_line(if module.path.is_empty() { module.name.as_str() } else { &module.path });
        let number = if file.is_empty() {
            NO_MAPPING
        } else {
            let mapping = Mapping { file, build_id: one_line(module.build_id.as_str()) };
            let next = self.all.len() as u64 + 1;
            let number = *self.of_files.entry(mapping.clone()).or_insert(next);
            if number == next {
                self.all.push(mapping);
            }
            number
        };
        self.numbers.insert(place, number);
        number
    }
}

/// Texts, without duplicates, by number; the format requires the first to be empty.
struct Strings {
    numbers: HashMap<String, u64>,
    all: Vec<String>,
}

impl Default for Strings {
    fn default() -> Self {
        Self { numbers: HashMap::from([(String::new(), 0)]), all: vec![String::new()] }
    }
}

impl Strings {
    fn number(&mut self, text: &str) -> u64 {
        if let Some(&known) = self.numbers.get(text) {
            return known;
        }
        let number = self.all.len() as u64;
        self.all.push(text.to_owned());
        self.numbers.insert(text.to_owned(), number);
        number
    }
}
