//! What a recording adds to a data set: its processes, their amounts by stack, and the stacks and
//! functions of these amounts.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::rc::Rc;

use clrscope_analysis::{FunctionRef, Metric, Query, StackLog, kind_of_code, observed_unix_ns};
use clrscope_recording::model::{Process, Recording, Thread};

use super::day;
use super::identify::Hash;
use crate::ExportError;
use crate::origin::Origin;
use crate::parquet::metrics;
use crate::stacks::{MAX_FRAMES, Step, forest, push_frame, walk};
use crate::threads::{command, plain_thread_name};

/// Key of an amount: metric, thread, request and stack.
type Key = (&'static str, Rc<str>, Rc<str>, u64);

/// Identifies a process among all others: the identifier of its recording, and its number there.
pub(super) type ProcessKey = (String, u32);
/// A day in UTC, and the name of a service.
pub(super) type Partition = (String, String);

/// A process of a recording, with its measured amounts.
#[derive(Debug)]
pub(super) struct OfProcess {
    pub(super) recording_id: String,
    pub(super) pid: u32,
    pub(super) started_unix_ns: u64,
    pub(super) duration_ns: u64,
    pub(super) command: String,
    pub(super) origin: Origin,
    pub(super) labels: Vec<(String, String)>,
    pub(super) processors: u64,
    pub(super) runtime: String,
    pub(super) instruments: String,
    pub(super) lost: u64,
    pub(super) amounts: Vec<Amount>,
}

/// An amount of one metric.
#[derive(Debug)]
pub(super) struct Amount {
    pub(super) metric: &'static str,
    pub(super) unit: &'static str,
    pub(super) period_ns: u64,
    pub(super) thread: Rc<str>,
    pub(super) request: Rc<str>,
    pub(super) stack: u64,
    pub(super) amount: u64,
}

/// A stack.
#[derive(Debug)]
pub(super) struct Stack {
    /// Number of the innermost function.
    pub(super) symbol: u64,
    pub(super) depth: u64,
    pub(super) path: String,
}

/// A function.
#[derive(Debug)]
pub(super) struct Symbol {
    pub(super) name: String,
    pub(super) signature: String,
    pub(super) module: String,
    pub(super) code: &'static str,
}

/// What a recording adds.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    pub(super) processes: Vec<OfProcess>,
    pub(super) stacks: HashMap<u64, Stack>,
    pub(super) symbols: HashMap<u64, Symbol>,
}

impl OfProcess {
    /// The key that identifies the process among all others.
    pub(super) fn key(&self) -> ProcessKey {
        (self.recording_id.clone(), self.pid)
    }

    /// The day on which the process began, in UTC, and its service.
    pub(super) fn partition(&self) -> Partition {
        (day::of_unix_ns(self.started_unix_ns), self.origin.service.clone())
    }

    fn new(recording: &Recording, process: &Process, observed: &Range<u64>) -> Self {
        let labels = process.identity.labels.iter().map(|label| (label.key.clone(), label.value.clone()));
        Self {
            recording_id: identifier(recording),
            pid: process.pid,
            started_unix_ns: observed.start,
            duration_ns: observed.end - observed.start,
            command: command(recording),
            origin: Origin::of(recording, process),
            labels: labels.collect(),
            processors: process.processors.into(),
            runtime: process.runtime.clone(),
            instruments: recording.run.filled.text().to_owned(),
            lost: process.lost(),
            amounts: Vec::new(),
        }
    }
}

/// The identifier of a recording; of one from before there were identifiers it is made of its
/// command and its start.
fn identifier(recording: &Recording) -> String {
    if !recording.run.id.is_empty() {
        return recording.run.id.clone();
    }
    let start = recording.run.started_unix_ns;
    format!("{:016x}", Hash::new().text(&command(recording)).number(start).finish())
}

/// The processes of a recording, without their amounts.
pub(super) fn processes(recording: &Recording) -> Vec<OfProcess> {
    let observed = observed_unix_ns(recording);
    recording.processes.iter().map(|process| OfProcess::new(recording, process, &observed)).collect()
}

/// Gathers what a recording adds; `processes` are [its processes](processes).
///
/// # Errors
/// When no metric of call paths was recorded.
pub(super) fn gathered(recording: &Recording, processes: Vec<OfProcess>) -> Result<Gathered, ExportError> {
    let all = Gathered { processes, ..Gathered::default() };
    let mut gathering = Gathering { all, sums: BTreeMap::new(), known: HashMap::new() };
    let plain = Query::default();
    for metric in metrics(recording, &plain)? {
        // Numbers of samples are amounts of time over the period.
        if metric.counts_samples() {
            continue;
        }
        let query = Query { metric: Some(metric), per_thread: true, ..plain.clone() };
        match metric.is_of_calls() {
            true => gathering.add_paths(recording, metric, &query)?,
            false => gathering.add_events(recording, metric, &query)?,
        }
    }
    let Gathering { mut all, sums, .. } = gathering;
    for ((pid, (metric, thread, request, stack)), (of, amount)) in sums {
        let Some(at) = recording.processes.iter().position(|process| process.pid == pid) else { continue };
        let period_ns = of.sampling_period_ns(&recording.processes[at]).unwrap_or(0);
        let unit = of.unit.name();
        all.processes[at].amounts.push(Amount { metric, unit, period_ns, thread, request, stack, amount });
    }
    Ok(all)
}

struct Gathering {
    all: Gathered,
    /// Sums by process and key, with their metric.
    sums: BTreeMap<(u32, Key), (&'static Metric, u64)>,
    /// Numbers of functions, by their place in the recording.
    known: HashMap<usize, u64>,
}

impl Gathering {
    /// Adds events with their stacks: samples, exceptions, allocations.
    fn add_events(&mut self, recording: &Recording, metric: &'static Metric, query: &Query) -> Result<(), ExportError> {
        for thread in StackLog::open(recording, query, super::NAME)?.threads() {
            let name: Rc<str> = plain_thread_name(thread.thread).into();
            let none: Rc<str> = "".into();
            let (mut stack, mut before) = (0, None);
            thread.walk(|event| -> Result<(), ExportError> {
                if before.replace(event.stack) != Some(event.stack) {
                    stack = self.stack(event.path);
                }
                let request = event.request.map_or_else(|| Rc::clone(&none), |request| (&*request.route).into());
                self.add(thread.process.pid, (metric.name, Rc::clone(&name), request, stack), metric, event.amount);
                Ok(())
            })?;
        }
        Ok(())
    }

    /// Adds paths with their own amounts.
    fn add_paths(&mut self, recording: &Recording, metric: &'static Metric, query: &Query) -> Result<(), ExportError> {
        let forest = forest(recording, query)?;
        let mut path: Vec<FunctionRef<'_>> = Vec::new();
        walk(&forest, 0.0, |step| {
            let Step::Enter(at) = step else {
                path.pop();
                return Ok(());
            };
            path.push(at.function);
            if at.amount.own > 0 {
                let stack = self.stack(&path);
                let thread = at.thread.map_or_else(String::new, |thread: &Thread| plain_thread_name(thread));
                self.add(at.function.pid, (metric.name, thread.into(), "".into(), stack), metric, at.amount.own);
            }
            Ok(())
        })
    }

    fn add(&mut self, pid: u32, key: Key, metric: &'static Metric, amount: u64) {
        let sum = &mut self.sums.entry((pid, key)).or_insert((metric, 0)).1;
        *sum = sum.saturating_add(amount);
    }

    /// Number of a stack, outermost function first. Of very deep ones the path names the outermost
    /// functions and the innermost one.
    fn stack(&mut self, path: &[FunctionRef<'_>]) -> u64 {
        let symbols: Vec<u64> = path.iter().map(|function| self.symbol(function)).collect();
        let number = symbols.iter().fold(Hash::new(), |hash, symbol| hash.number(*symbol)).finish();
        self.all.stacks.entry(number).or_insert_with(|| {
            let mut text = String::new();
            let outer = path.len().min(MAX_FRAMES as usize - 1);
            let inner = &path[outer.max(path.len().saturating_sub(1))..];
            for function in path[..outer].iter().chain(inner) {
                push_frame(&mut text, &function.label());
            }
            Stack { symbol: symbols.last().copied().unwrap_or(0), depth: path.len() as u64, path: text }
        });
        number
    }

    fn symbol(&mut self, function: &FunctionRef<'_>) -> u64 {
        let place = std::ptr::from_ref(function.function).addr();
        if let Some(number) = self.known.get(&place) {
            return *number;
        }
        let symbol = Symbol {
            name: function.label().into_owned(),
            signature: function.signature().to_owned(),
            module: function.module().to_owned(),
            code: kind_of_code(function),
        };
        let hash = Hash::new().text(&symbol.name).text(&symbol.signature).text(&symbol.module).text(symbol.code);
        let number = hash.finish();
        self.all.symbols.entry(number).or_insert(symbol);
        self.known.insert(place, number);
        number
    }
}
