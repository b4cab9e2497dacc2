//! The steps of one request: the threads that worked for it and when, its awaits, and its
//! exceptions.

use std::collections::BTreeMap;

use clrscope_recording::layout::instrument;
use clrscope_recording::model::{Process, Recording, Thread};
use rustc_hash::FxHashMap;

use super::switches::Switches;
use super::work::AskedRequest;
use super::{Direction, Request, walk, works};
use crate::awaits::{RequestAwait, awaits_of_request};
use crate::code_place::CodePlace;
use crate::exceptions::{CallStack, ExceptionLog, ExceptionQuery};
use crate::function::FunctionRef;
use crate::query::{Query, QueryProblem};
use crate::samples::{each_sample, thread_numbered};

/// Kind of a step of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StepKind {
    /// A thread works for the request.
    Runs,
    /// One of the request's methods awaits something.
    Awaits,
    /// Code that works for the request throws an exception.
    Throws,
}

impl StepKind {
    /// The name in JSON and in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Runs => "runs",
            Self::Awaits => "awaits",
            Self::Throws => "throws",
        }
    }
}

/// A step of a request.
#[derive(Debug, Clone)]
pub struct RequestStep<'a> {
    /// Kind of the step.
    pub kind: StepKind,
    /// Start of the step, in nanoseconds since the start of the run.
    pub time_ns: u64,
    /// Duration of the step, in nanoseconds; 0 for an instant.
    pub duration_ns: u64,
    /// Whether the step had not ended when the recording ended.
    pub is_pending: bool,
    /// The thread; `None` for a step without a thread.
    pub thread: Option<&'a Thread>,
    /// The method, with a location in its code. For work of a thread: the own method with most of
    /// the thread's samples. For an await: the awaiting method. For an exception: the innermost own
    /// method.
    pub method: Option<(FunctionRef<'a>, CodePlace<'a>)>,
    /// Number of samples of the thread during the step.
    pub samples: u64,
    /// The awaited operation, or the type of the exception; empty while a thread works.
    pub what: String,
}

/// A request with its steps.
#[derive(Debug, Clone)]
pub struct RequestSteps<'a> {
    /// The request.
    pub request: Request<'a>,
    /// Number of other requests that the query selects. None of them took longer.
    pub others: u64,
    /// The steps, ordered by time.
    pub steps: Vec<RequestStep<'a>>,
    /// Number of steps that the limit left out.
    pub left_out: usize,
    /// Whether awaits were recorded. If not, no step is an await.
    pub has_awaits: bool,
}

/// Returns the longest served request that a query selects, step by step. `None` if no thread
/// recorded work for any selected request.
///
/// # Errors
/// When the query matches no process, or `requests` was not recorded.
pub fn request_steps<'a>(recording: &'a Recording, query: &Query) -> Result<Option<RequestSteps<'a>>, QueryProblem> {
    let (mut longest, mut count): (Option<Request<'a>>, u64) = (None, 0);
    walk(recording, query, |request, _| {
        if request.direction == Direction::Made || request.id.is_none() {
            return;
        }
        count += 1;
        if longest.as_ref().is_none_or(|known| known.duration_ns < request.duration_ns) {
            longest = Some(request);
        }
    })?;
    let Some((mut request, id)) = longest.and_then(|request| request.id.map(|id| (request, id))) else {
        return Ok(None);
    };
    let process = request.process;
    let asked = AskedRequest::new(&request, 0).map(|asked| (process, asked));
    let work = works(query, asked.as_slice()).into_iter().next();
    request.work = work.map(|(_, work)| Box::new(work));
    let mut steps = stretches(process, id);
    steps.extend(awaits(process, id));
    steps.extend(exceptions(recording, process, id));
    steps.sort_by_key(|step| (step.time_ns, step.kind));
    let left_out = query.cut(&mut steps);
    let has_awaits = process.arenas(instrument::AWAITS).next().is_some();
    Ok(Some(RequestSteps { request, others: count - 1, steps, left_out, has_awaits }))
}

/// The stretches of time in which threads worked for a request.
fn stretches(process: &Process, id: u64) -> Vec<RequestStep<'_>> {
    let end_ns = process.started_ns.saturating_add(process.duration_ns);
    let mut found: Vec<(u32, RequestStep<'_>)> = Vec::new();
    Switches::for_process(process).each_stretch(|thread, stretch| {
        if stretch.request == id {
            let until_ns = stretch.until_ns.min(end_ns.max(stretch.since_ns));
            found.push((
                thread,
                RequestStep {
                    kind: StepKind::Runs,
                    time_ns: stretch.since_ns,
                    duration_ns: until_ns - stretch.since_ns,
                    is_pending: stretch.until_ns == u64::MAX,
                    thread: thread_numbered(process, thread),
                    method: None,
                    samples: 0,
                    what: String::new(),
                },
            ));
        }
    });
    found.sort_by_key(|(thread, step)| (*thread, step.time_ns));
    add_methods(process, &mut found);
    found.into_iter().map(|(_, step)| step).collect()
}

/// Finds the method in which each stretch was spent. It uses the thread's samples of `wall`, or
/// those of `cpu` if `wall` was not recorded.
fn add_methods<'a>(process: &'a Process, stretches: &mut [(u32, RequestStep<'a>)]) {
    let sampled = [instrument::WALL, instrument::CPU].into_iter().find(|one| process.arenas(one).next().is_some());
    let mut seen: FxHashMap<usize, FxHashMap<u32, u64>> = FxHashMap::default();
    let Some(sampled) = sampled else { return };
    each_sample(process, sampled, |sample| {
        let at_ns = process.started_ns.saturating_add(sample.time_ns);
        let behind = stretches.partition_point(|(thread, step)| (*thread, step.time_ns) <= (sample.thread, at_ns));
        let Some(at) = behind.checked_sub(1) else { return };
        let (thread, step) = &stretches[at];
        if *thread == sample.thread && at_ns < step.time_ns.saturating_add(step.duration_ns) {
            *seen.entry(at).or_default().entry(sample.stack).or_default() += u64::from(sample.count);
        }
    });
    for (at, stacks) in seen {
        let step = &mut stretches[at].1;
        step.samples = stacks.values().sum();
        let mut methods: BTreeMap<(&str, &str, CodePlace<'_>), (u64, FunctionRef<'a>)> = BTreeMap::new();
        for (stack, count) in stacks {
            if let Some((function, place)) = CallStack::new(process, &process.stacks, stack).innermost_own() {
                let key = (function.module(), function.signature(), place);
                methods.entry(key).or_insert((0, function)).0 += count;
            }
        }
        let most = methods.into_iter().max_by_key(|(key, (count, _))| (*count, *key));
        step.method = most.map(|((.., place), (_, function))| (function, place));
    }
}

fn awaits<'a>(process: &'a Process, id: u64) -> Vec<RequestStep<'a>> {
    let step = |one: RequestAwait<'a>| RequestStep {
        kind: StepKind::Awaits,
        time_ns: one.began_ns,
        duration_ns: one.lasted_ns,
        is_pending: one.is_pending,
        thread: None,
        method: one.frame.map(|frame| (frame.function, frame.place)),
        samples: 0,
        what: one.awaits,
    };
    awaits_of_request(process, id).into_iter().map(step).collect()
}

fn exceptions<'a>(recording: &'a Recording, process: &'a Process, id: u64) -> Vec<RequestStep<'a>> {
    let switches = Switches::for_process(process);
    let query = Query { pid: Some(process.pid), ..Query::default() };
    let Ok(log) = ExceptionLog::open(recording, &ExceptionQuery { query, types: Vec::new() }) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    let Ok(_all) = log.walk(|exception| -> Result<(), std::convert::Infallible> {
        let thread = exception.thread.and_then(|thread| thread_numbered(process, thread.id));
        let is_own = thread.is_some_and(|thread| switches.request_at(thread.id, exception.time_ns) == Some(id));
        if is_own {
            found.push((exception.time_ns, thread, exception.stack.number(), exception.type_name.to_owned()));
        }
        Ok(())
    });
    let step = |(time_ns, thread, stack, what): (u64, Option<&'a Thread>, u32, String)| RequestStep {
        kind: StepKind::Throws,
        time_ns,
        duration_ns: 0,
        is_pending: false,
        thread,
        method: CallStack::new(process, &process.stacks, stack).innermost_own(),
        samples: 0,
        what,
    };
    found.into_iter().map(step).collect()
}
