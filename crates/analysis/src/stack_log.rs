//! Events of a metric with their stacks, thread by thread and ordered by time. Charts with a time
//! axis are drawn from these.

use std::sync::Arc;

use clrscope_recording::model::{Process, Recording, StackFrame, Stacks, Thread, Tier};

use crate::allocations::with_type_leaves;
use crate::function::FunctionRef;
use crate::metric::{Metric, Source, StackEvent, StackEvents};
use crate::paths::UNKNOWN;
use crate::query::{Query, QueryProblem};
use crate::requests::{KnownRequest, KnownRequests};
use crate::samples::{FoldedFunctions, SAMPLED_CPU};
use crate::select;
use crate::stack_trees::wanted_part;

/// The events of the processes and threads that a query selects.
pub struct StackLog<'a> {
    metric: &'static Metric,
    processes: Vec<OfProcess<'a>>,
}

/// The events of one process.
struct OfProcess<'a> {
    process: &'a Process,
    table: Arc<Stacks>,
    /// Events ordered by thread, then by time. Each has only the wanted part of its amount.
    events: Vec<StackEvent>,
    folded: Option<FoldedFunctions>,
    requests: Option<KnownRequests>,
    /// Whether the query's patterns match a function, by function index; `None` if the query has no
    /// patterns.
    named: Option<Vec<bool>>,
    limit: usize,
}

/// The events of one thread, in the order of time.
#[derive(Clone, Copy)]
pub struct ThreadStacks<'l, 'a> {
    of: &'l OfProcess<'a>,
    /// The process.
    pub process: &'a Process,
    /// The thread; number 0 for events of unknown threads.
    pub thread: &'a Thread,
    events: &'l [StackEvent],
}

/// An event with its stack.
#[derive(Debug)]
pub struct StackMoment<'m, 'a> {
    /// Time of the event, in nanoseconds since the start of the run.
    pub time_ns: u64,
    /// Duration of the event, in nanoseconds; 0 for an instant.
    pub lasted_ns: u64,
    /// Amount that the event adds to the metric.
    pub amount: u64,
    /// Number of samples that the event represents; 0 if it is not a sample.
    pub samples: u64,
    /// Number of the stack in its process. Equal numbers mean equal paths.
    pub stack: u32,
    /// The functions on the stack, outermost first. There is at least one.
    pub path: &'m [FunctionRef<'a>],
    /// For each function of the path, whether it was inlined into the function before it on the
    /// path.
    pub inlined: &'m [bool],
    /// The served request that the event was for; `None` if there was none, or if requests were not
    /// recorded.
    pub request: Option<&'m KnownRequest>,
}

impl<'a> StackLog<'a> {
    /// Selects the events of the query's metric. If the query has no metric, selects those of the
    /// first recorded metric with stacks. If the query filters functions or modules, paths begin at
    /// the outermost function that matches, and stacks without a match are left out.
    ///
    /// # Errors
    /// When the query matches no process or thread, the metric was not recorded, or its values have
    /// no times, as with `calls`. The error names `view`.
    pub fn open(recording: &'a Recording, query: &Query, view: &'static str) -> Result<Self, QueryProblem> {
        let metric = match query.metric {
            Some(_) => Metric::of_view(recording, query, view)?,
            None => Self::metric_of(recording)
                .ok_or(QueryProblem::NotRecorded { view, instrument: SAMPLED_CPU.instrument })?,
        };
        let query = &Query { metric: Some(metric), ..query.clone() };
        metric.check(query, view)?;
        let metric = if query.type_leaves { with_type_leaves(metric) } else { metric };
        let Source::Stacks { read, .. } = metric.source else {
            let why = "calls are counted by path, without their times; samples have times (-i cpu)";
            return Err(QueryProblem::NotAvailable { option: "that --metric", view, why });
        };
        let of_process = |selected: select::SelectedProcess<'a>| {
            let process = selected.process;
            // A reader makes one arena per instrument; a damaged recording has none.
            let arena = process.arenas(metric.instrument).next();
            let found = arena.map_or_else(StackEvents::default, |arena| read(process, arena));
            OfProcess::new(recording, process, query, metric, found)
        };
        let processes = select::threads(recording, query)?.into_iter().map(of_process).collect();
        Ok(Self { metric, processes })
    }

    /// The preferred metric among the recorded metrics whose events have stacks and times; `None`
    /// if there is no such metric.
    #[must_use]
    pub fn metric_of(recording: &Recording) -> Option<&'static Metric> {
        Metric::each().find(|metric| !metric.is_of_calls() && metric.is_in(recording))
    }

    /// The metric of the events.
    #[must_use]
    pub const fn metric(&self) -> &'static Metric {
        self.metric
    }

    /// Number of selected processes, whether or not they have events.
    #[must_use]
    pub fn processes(&self) -> usize {
        self.processes.len()
    }

    /// The threads that have events, in the recording's order. Events whose thread is not known
    /// belong to one more thread, which is the last of its process.
    pub fn threads(&self) -> impl Iterator<Item = ThreadStacks<'_, 'a>> {
        self.processes.iter().flat_map(|of| {
            of.events.chunk_by(|a, b| a.thread == b.thread).map(move |events| {
                let thread = events.first().and_then(|first| of.process.threads.get(first.thread as usize));
                ThreadStacks { of, process: of.process, thread: thread.unwrap_or(&UNKNOWN), events }
            })
        })
    }
}

impl<'a> OfProcess<'a> {
    fn new(
        recording: &Recording,
        process: &'a Process,
        query: &Query,
        metric: &'static Metric,
        found: StackEvents,
    ) -> Self {
        let StackEvents { table, mut events } = found;
        let (since, until) = (query.since_ns.unwrap_or(0), query.until_ns.unwrap_or(u64::MAX));
        let is_selected = |event: &StackEvent| query.wants_thread_if_known(process.threads.get(event.thread as usize));
        events.retain_mut(|event| {
            let Some(part) = wanted_part(process, query, event).filter(|_| is_selected(event)) else { return false };
            let end_ns = event.time_ns.saturating_add(event.lasted_ns).min(until);
            (event.amount, event.samples) = (part.amount, part.samples);
            event.time_ns = event.time_ns.max(since);
            event.lasted_ns = end_ns.saturating_sub(event.time_ns);
            // All unknown threads are one thread.
            event.thread = event.thread.min(process.threads.len() as u32);
            true
        });
        events.sort_by_key(|event| (event.thread, event.time_ns));
        let folded = FoldedFunctions::for_query(recording, process, query, metric);
        let named = query.filters_functions().then(|| {
            let named = |function| FunctionRef::new(process, Some(function));
            process.functions.iter().map(|function| query.wants_function(named(function).module(), function)).collect()
        });
        let requests = KnownRequests::read(process);
        Self { process, table, events, folded, requests, named, limit: query.limit.unwrap_or(usize::MAX) }
    }

    /// Puts the functions on a stack into `path`, outermost first; none if the stack is not wanted.
    fn fill(&self, stack: u32, path: &mut Path<'a>) {
        let Path { frames, functions, inlined } = path;
        frames.clear();
        frames.extend(self.table.frames(stack).map(|frame| match frame {
            StackFrame::Method { function, tier, .. } => (function, tier == Tier::Inlined),
            _ => (0, false),
        }));
        if frames.is_empty() || self.table.is_cut(stack) {
            // The method that the outermost known method was inlined into is unknown.
            if let Some((_, is_inlined)) = frames.last_mut() {
                *is_inlined = false;
            }
            frames.push((0, false));
        }
        if let Some(folded) = &self.folded {
            folded.fold(frames);
        }
        frames.reverse();
        let first = match &self.named {
            None => Some(0),
            Some(named) => frames.iter().position(|&(function, _)| named.get(function as usize) == Some(&true)),
        };
        let wanted = first.map_or(&[][..], |first| &frames[first..]);
        let function = |index: u32| self.process.function_at(index);
        functions.clear();
        functions.extend(wanted.iter().map(|(index, _)| FunctionRef::new(self.process, function(*index))));
        inlined.clear();
        inlined.extend(wanted.iter().enumerate().map(|(at, (_, is_inlined))| *is_inlined && at > 0));
    }
}

/// A path, with reusable buffers.
#[derive(Default)]
struct Path<'a> {
    frames: Vec<(u32, bool)>,
    functions: Vec<FunctionRef<'a>>,
    inlined: Vec<bool>,
}

impl<'a> ThreadStacks<'_, 'a> {
    /// Calls `visit` with every event, ordered by time. Stops at the query's limit, and at the
    /// first error of `visit`.
    ///
    /// # Errors
    /// Only errors of `visit`.
    pub fn walk<E>(&self, mut visit: impl FnMut(&StackMoment<'_, 'a>) -> Result<(), E>) -> Result<(), E> {
        let (mut path, mut before, mut shown) = (Path::default(), None, 0);
        for event in self.events {
            if before.replace(event.stack) != Some(event.stack) {
                self.of.fill(event.stack, &mut path);
            }
            if path.functions.is_empty() || shown == self.of.limit {
                continue;
            }
            shown += 1;
            let StackEvent { time_ns, lasted_ns, amount, samples, stack, .. } = *event;
            let Path { functions, inlined, .. } = &path;
            let request = self.of.requests.as_ref().and_then(|requests| requests.of_event(self.thread, event));
            visit(&StackMoment { time_ns, lasted_ns, amount, samples, stack, path: functions, inlined, request })?;
        }
        Ok(())
    }
}
