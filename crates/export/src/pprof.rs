//! `pprof`: a profile for pprof and the many programs that read its format, of any metric.
//!
//! The message `Profile` of `profile.proto`, not compressed. Functions are frames by their names.
//! Methods that the compiler put into others are lines of the location of the method that has the
//! code, wherever events are written one by one: not with `--limit`, which counts the parts of a
//! tree. Where requests were recorded, samples that were taken for one have the label `request`,
//! its method and route.

use std::collections::HashMap;
use std::io::{self, Write};

use clrscope_analysis::{Metric, Query, StackLog, one_line};
use clrscope_recording::model::Recording;

use crate::locations::Locations;
use crate::protobuf::Message;
use crate::stacks::{MAX_FRAMES, places, push_frame};
use crate::weighed::{weighed_stacks, weight_of};
use crate::{ExportError, ExportOptions, Exporter};

/// See the module's page.
pub(crate) struct Pprof;

/// Numbers of the fields of `Profile`.
mod field {
    pub(super) const SAMPLE_TYPE: u64 = 1;
    pub(super) const SAMPLE: u64 = 2;
    pub(super) const LOCATION: u64 = 4;
    pub(super) const FUNCTION: u64 = 5;
    pub(super) const STRING_TABLE: u64 = 6;
    pub(super) const DURATION_NANOS: u64 = 10;
}

impl Exporter for Pprof {
    fn name(&self) -> &'static str {
        "pprof"
    }

    fn description(&self) -> &'static str {
        "a profile for pprof and the programs that read its format"
    }

    fn extension(&self) -> &'static str {
        "pb"
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
        let mut tables = Tables::default();
        let min_share = options.min_share.unwrap_or(0.0);
        let mut written = Message::default();
        let mut sample = |locations: &[u64], weight: u64, labels: &[Label]| {
            written.clear();
            written.message(field::SAMPLE, |sample| {
                // The innermost comes first in the format.
                sample.packed(1, locations.iter().rev());
                sample.packed(2, &[weight]);
                for label in labels {
                    sample.message(3, |written| {
                        written.number(1, label.key);
                        written.number(2, label.text);
                    });
                }
            });
            out.write_all(written.encoded())
        };
        let weight = match metric_of_events(recording, options, self.name())? {
            Some(metric) => {
                let query = Query { metric: Some(metric), ..options.query.clone() };
                let paths = Paths::read(recording, &query, &mut tables)?;
                paths.write(min_share, &mut tables.locations, &mut sample)?;
                weight_of(metric)
            }
            None => weighed_stacks(recording, options, (self.name(), min_share), |stack, weight| {
                if weight > 0 {
                    let function = |name| tables.frames.number(name);
                    let locations: Vec<u64> = stack.split(';').map(function).collect();
                    let of = locations.into_iter().map(|function| (function, false));
                    sample(&tables.locations.path(of), weight, &[])?;
                }
                Ok(())
            })?,
        };
        let Tables { mut frames, locations } = tables;
        let functions = frames.names.len() as u64;
        let [kind, unit] = [weight.name, weight.unit].map(|text| frames.string(text));
        let mut rest = Message::default();
        rest.message(field::SAMPLE_TYPE, |of| {
            of.number(1, kind);
            of.number(2, unit);
        });
        // Function and name have one number.
        for number in 1..functions {
            rest.message(field::FUNCTION, |function| {
                function.number(1, number);
                function.number(2, number);
                function.number(3, number);
            });
        }
        for (number, functions) in (1..).zip(locations.all()) {
            rest.message(field::LOCATION, |location| {
                location.number(1, number);
                functions.iter().for_each(|function| location.message(4, |line| line.number(1, *function)));
            });
        }
        frames.names.iter().for_each(|name| rest.bytes(field::STRING_TABLE, name.as_bytes()));
        rest.number(field::DURATION_NANOS, recording.run.duration_ns);
        out.write_all(rest.encoded())?;
        Ok(())
    }
}

/// The metric whose events say which methods were put into others; `None` where stacks are those of a tree: of the heap, of calls, and where
/// only the largest parts of each node are wanted.
fn metric_of_events(
    recording: &Recording,
    options: &ExportOptions,
    format: &'static str,
) -> Result<Option<&'static Metric>, ExportError> {
    if options.is_of_heap(recording, format)? || options.query.limit.is_some() {
        return Ok(None);
    }
    let metric = Metric::for_query(recording, &options.query)?;
    Ok(Some(metric).filter(|metric| !metric.is_of_calls()))
}

/// Tables of the profile.
#[derive(Default)]
struct Tables {
    frames: Frames,
    locations: Locations,
}

/// A label of a sample: the numbers of its key and of its text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Label {
    key: u64,
    text: u64,
}

/// Key of the label with the request that a sample is of.
const REQUEST: &str = "request";

/// A frame of a path: number of the function, and whether it was put into the one before.
type PathFrame = (u64, bool);

/// Paths of events as trees, in which callers come first: one for each label, and one for events
/// without any.
#[derive(Default)]
struct Paths {
    nodes: Vec<PathNode>,
    numbers: HashMap<(Option<usize>, Option<Label>, PathFrame), usize>,
}

struct PathNode {
    caller: Option<usize>,
    label: Option<Label>,
    frame: PathFrame,
    own: u64,
}

impl Paths {
    /// Reads the paths of all events that a query wants.
    fn read(recording: &Recording, query: &Query, tables: &mut Tables) -> Result<Self, ExportError> {
        let log = StackLog::open(recording, query, "pprof")?;
        let several = log.processes() > 1;
        let mut paths = Self::default();
        for thread in log.threads() {
            let shown = query.per_thread.then_some(thread.thread);
            let places: Vec<u64> =
                places(thread.process.pid, shown, several).map(|place| tables.frames.named(&place)).collect();
            let mut nodes: HashMap<(u32, Option<Label>), Option<usize>> = HashMap::new();
            thread.walk(|event| -> Result<(), ExportError> {
                let label = event.request.map(|request| tables.frames.label(REQUEST, &request.route));
                let node = *nodes.entry((event.stack, label)).or_insert_with(|| {
                    let names = event.path.iter().map(|function| tables.frames.named(&function.label()));
                    let functions = names.zip(event.inlined.iter().copied()).take(MAX_FRAMES as usize);
                    let places = places.iter().map(|place| (*place, false));
                    places.chain(functions).fold(None, |caller, frame| Some(paths.node(caller, label, frame)))
                });
                if let Some(node) = node.and_then(|node| paths.nodes.get_mut(node)) {
                    node.own = node.own.saturating_add(event.amount);
                }
                Ok(())
            })?;
        }
        Ok(paths)
    }

    fn node(&mut self, caller: Option<usize>, label: Option<Label>, frame: PathFrame) -> usize {
        let next = self.nodes.len();
        let number = *self.numbers.entry((caller, label, frame)).or_insert(next);
        if number == next {
            self.nodes.push(PathNode { caller, label, frame, own: 0 });
        }
        number
    }

    /// Shows each path that has at least a share of the whole: its locations, the outermost first, and its own amount with that of smaller
    /// paths below it.
    fn write(
        self,
        min_share: f64,
        locations: &mut Locations,
        mut sample: impl FnMut(&[u64], u64, &[Label]) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut totals: Vec<u64> = self.nodes.iter().map(|node| node.own).collect();
        let mut whole = 0_u64;
        for (at, node) in self.nodes.iter().enumerate().rev() {
            let total = totals[at];
            let sum = node.caller.map_or(&mut whole, |caller| &mut totals[caller]);
            *sum = sum.saturating_add(total);
        }
        let is_shown = |at: usize| min_share <= 0.0 || totals[at] as f64 >= whole as f64 * min_share;
        // Callers come first, and have no less than what they call.
        let mut own: Vec<u64> = vec![0; self.nodes.len()];
        for (at, node) in self.nodes.iter().enumerate() {
            let mut shown = Some(at);
            while let Some(path) = shown.filter(|path| !is_shown(*path)) {
                shown = self.nodes[path].caller;
            }
            if let Some(shown) = shown {
                own[shown] = own[shown].saturating_add(node.own);
            }
        }
        for (at, weight) in own.into_iter().enumerate().filter(|(_, weight)| *weight > 0) {
            let callers = std::iter::successors(Some(at), |at| self.nodes[*at].caller);
            let mut frames: Vec<PathFrame> = callers.map(|at| self.nodes[at].frame).collect();
            frames.reverse();
            sample(&locations.path(frames.into_iter()), weight, self.nodes[at].label.as_slice())?;
        }
        Ok(())
    }
}

/// Names of frames, by number from 1, and other strings behind them.
struct Frames {
    numbers: HashMap<String, u64>,
    names: Vec<String>,
}

impl Default for Frames {
    fn default() -> Self {
        // The first string is empty by the format.
        Self { numbers: HashMap::new(), names: vec![String::new()] }
    }
}

impl Frames {
    /// Number of a frame by its name, of which nothing was replaced yet.
    fn named(&mut self, name: &str) -> u64 {
        let mut text = String::new();
        push_frame(&mut text, name);
        self.number(&text)
    }

    fn number(&mut self, frame: &str) -> u64 {
        if let Some(&number) = self.numbers.get(frame) {
            return number;
        }
        let number = self.string(frame);
        self.numbers.insert(frame.to_owned(), number);
        number
    }

    /// A label. Its texts are in the same table as the names of frames, each once.
    fn label(&mut self, key: &str, text: &str) -> Label {
        Label { key: self.number(key), text: self.number(&one_line(text)) }
    }

    fn string(&mut self, text: &str) -> u64 {
        self.names.push(text.to_owned());
        self.names.len() as u64 - 1
    }
}
