//! The work for each request on all threads: CPU time, allocations and exceptions, and how the
//! duration of the request was spent.

use std::sync::Arc;

use clrscope_recording::model::{Process, Thread};
use rustc_hash::FxHashMap;

use super::Request;
use super::switches::{Stretch, Switches};
use crate::allocations::BYTES;
use crate::exceptions::EXCEPTIONS;
use crate::metric::Metric;
use crate::metric_events::{Block, Event, MetricEvents};
use crate::query::Query;
use crate::samples::{SAMPLED_CPU, SAMPLED_WALL};
use crate::time_states::TimeStates;
use crate::waits::TimeState;

/// The work for one or several requests. Values that were not recorded are `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestWork {
    /// CPU time according to the samples of `cpu`, in nanoseconds.
    pub cpu_ns: Option<u64>,
    /// Bytes that were allocated, according to `alloc`.
    pub allocated_bytes: Option<u64>,
    /// Number of exceptions that were thrown.
    pub exceptions: Option<u64>,
    /// Part of the requests' durations during which no thread worked for them, in nanoseconds: they
    /// awaited something, or a thread of the pool.
    pub awaited_ns: u64,
    /// Part of the requests' durations during which at least one thread worked for them, in
    /// nanoseconds.
    pub on_threads_ns: u64,
    /// States of the working threads in that time, according to the samples of `wall`.
    pub states: Option<ThreadStates>,
}

/// Time of the threads that worked for requests, in nanoseconds per state, estimated from samples.
/// Several threads may work for a request at once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ThreadStates {
    running_ns: u64,
    ready_ns: u64,
    lock_ns: u64,
    blocked_ns: u64,
    gc_ns: u64,
    unknown_ns: u64,
}

impl ThreadStates {
    fn add(&mut self, state: TimeState, ns: u64) {
        let sum = match state {
            TimeState::Running => &mut self.running_ns,
            TimeState::Ready => &mut self.ready_ns,
            TimeState::Lock => &mut self.lock_ns,
            TimeState::Suspended => &mut self.gc_ns,
            // A thread that works for a request is not idle.
            TimeState::Task | TimeState::Waiting | TimeState::Io | TimeState::Sleeping | TimeState::Idle => {
                &mut self.blocked_ns
            }
            TimeState::Unknown => &mut self.unknown_ns,
        };
        *sum = sum.saturating_add(ns);
    }

    fn all_ns(&self) -> u64 {
        [self.running_ns, self.ready_ns, self.lock_ns, self.blocked_ns, self.gc_ns, self.unknown_ns]
            .into_iter()
            .fold(0, u64::saturating_add)
    }
}

impl RequestWork {
    /// Time during which threads ran, in nanoseconds; `None` if unknown.
    #[must_use]
    pub fn running_ns(&self) -> Option<u64> {
        self.part_ns(|states| states.running_ns)
    }

    /// Time during which threads waited for a processor, in nanoseconds; `None` if unknown.
    #[must_use]
    pub fn ready_ns(&self) -> Option<u64> {
        self.part_ns(|states| states.ready_ns)
    }

    /// Time during which threads waited for a lock, in nanoseconds; `None` if unknown.
    #[must_use]
    pub fn lock_ns(&self) -> Option<u64> {
        self.part_ns(|states| states.lock_ns)
    }

    /// Time during which threads waited for anything else (tasks, events, files, timeouts), in
    /// nanoseconds; `None` if unknown.
    #[must_use]
    pub fn blocked_ns(&self) -> Option<u64> {
        self.part_ns(|states| states.blocked_ns)
    }

    /// Time during which the runtime had stopped threads, mostly for collections, in nanoseconds;
    /// `None` if unknown.
    #[must_use]
    pub fn gc_ns(&self) -> Option<u64> {
        self.part_ns(|states| states.gc_ns)
    }

    /// The part of the time on threads that was spent in some states. The total is known exactly;
    /// its shares come from samples.
    fn part_ns(&self, of: fn(&ThreadStates) -> u64) -> Option<u64> {
        let states = self.states.as_ref()?;
        let part = u128::from(self.on_threads_ns) * u128::from(of(states));
        part.checked_div(u128::from(states.all_ns())).map(|ns| ns as u64)
    }
}

/// A request whose work is to be summed.
#[derive(Debug, Clone, Copy)]
pub(super) struct AskedRequest {
    id: u64,
    began_ns: u64,
    ended_ns: u64,
    /// Number of the sum that the request counts for.
    sum: usize,
}

impl AskedRequest {
    /// Prepares a request whose work counts for a sum; `None` if nothing is known of its work or
    /// its time.
    pub(super) fn new(request: &Request<'_>, sum: usize) -> Option<Self> {
        let Request { id, time_ns, last_ns, .. } = *request;
        let whole = !request.is_partial();
        id.filter(|_| whole).map(|id| Self { id, began_ns: time_ns, ended_ns: last_ns, sum })
    }
}

/// Returns the sums of the work for the given requests of a process, each with its number. `None`
/// if the records of the threads are incomplete.
pub(super) fn sums(
    process: &Process,
    query: &Query,
    mut asked: Vec<AskedRequest>,
) -> Option<Vec<(usize, RequestWork)>> {
    let switches = Switches::for_process(process);
    if !switches.is_whole() {
        return None;
    }
    // Only the sums of this process, numbered without gaps.
    let mut numbers: Vec<usize> = asked.iter().map(|request| request.sum).collect();
    numbers.sort_unstable();
    numbers.dedup();
    asked.iter_mut().for_each(|request| request.sum = numbers.partition_point(|number| *number < request.sum));
    let has = |metric: &Metric| process.arenas(metric.instrument).next().is_some();
    let empty = RequestWork {
        cpu_ns: has(&SAMPLED_CPU).then_some(0),
        allocated_bytes: has(&BYTES).then_some(0),
        exceptions: has(&EXCEPTIONS).then_some(0),
        states: has(&SAMPLED_WALL).then(ThreadStates::default),
        ..RequestWork::default()
    };
    let mut work = Work {
        process,
        query,
        switches,
        sum_of: asked.iter().map(|request| (request.id, request.sum)).collect(),
        sums: vec![empty; numbers.len()],
    };
    work.add_times(&asked);
    work.add_amounts(&SAMPLED_CPU, |sum| &mut sum.cpu_ns);
    work.add_amounts(&BYTES, |sum| &mut sum.allocated_bytes);
    work.add_amounts(&EXCEPTIONS, |sum| &mut sum.exceptions);
    work.add_states();
    Some(numbers.into_iter().zip(work.sums).collect())
}

struct Work<'q> {
    process: &'q Process,
    query: &'q Query,
    switches: Arc<Switches>,
    /// Index of the sum by the id of the request.
    sum_of: FxHashMap<u64, usize>,
    sums: Vec<RequestWork>,
}

impl Work<'_> {
    /// The sum of the request that a thread worked for at a time.
    fn sum_at(&mut self, thread: Option<&Thread>, time_ns: u64) -> Option<&mut RequestWork> {
        let request = self.switches.request_at(thread?.id, time_ns)?;
        self.sums.get_mut(*self.sum_of.get(&request)?)
    }

    /// Splits the duration of each request into the time in which threads worked for it and the
    /// rest.
    fn add_times(&mut self, asked: &[AskedRequest]) {
        let mut stretches: Vec<Stretch> = Vec::new();
        self.switches.each_stretch(|_, stretch| {
            if self.sum_of.contains_key(&stretch.request) {
                stretches.push(stretch);
            }
        });
        stretches.sort_unstable();
        for request in asked {
            let first = stretches.partition_point(|stretch| stretch.request < request.id);
            let own = stretches[first..].iter().take_while(|stretch| stretch.request == request.id);
            let on_threads_ns = self.covered_ns(request, own);
            let all_ns = self.query.wanted_ns(self.process, request.began_ns, request.ended_ns).unwrap_or(0);
            let sum = &mut self.sums[request.sum];
            sum.on_threads_ns = sum.on_threads_ns.saturating_add(on_threads_ns);
            sum.awaited_ns = sum.awaited_ns.saturating_add(all_ns.saturating_sub(on_threads_ns));
        }
    }

    /// The part of a request's time that the stretches cover; they are ordered by start.
    fn covered_ns<'s>(&self, request: &AskedRequest, stretches: impl Iterator<Item = &'s Stretch>) -> u64 {
        let (mut covered_ns, mut until_ns) = (0_u64, request.began_ns);
        for stretch in stretches {
            let (since, until) = (stretch.since_ns.max(until_ns), stretch.until_ns.min(request.ended_ns));
            if since < until {
                covered_ns += self.query.wanted_ns(self.process, since, until).unwrap_or(0);
                until_ns = until;
            }
        }
        covered_ns
    }

    /// Adds the amounts of a metric's events to the sums of their requests.
    fn add_amounts(&mut self, metric: &'static Metric, amount: fn(&mut RequestWork) -> &mut Option<u64>) {
        if let Some(measured) = MetricEvents::for_metric(self.process, metric) {
            self.each_event(&measured, |sum, event| {
                let all = amount(sum).get_or_insert_default();
                *all = all.saturating_add(event.amount);
            });
        }
    }

    fn add_states(&mut self) {
        if let Some(measured) = MetricEvents::for_metric(self.process, &SAMPLED_WALL) {
            let states = TimeStates::for_process(self.process, &measured);
            self.each_event(&measured, |sum, event| {
                sum.states.get_or_insert_default().add(states.state_of(event), event.amount);
            });
        }
    }

    /// Visits each wanted event, with the sum of its request.
    fn each_event(&mut self, measured: &MetricEvents, mut add: impl FnMut(&mut RequestWork, &Event)) {
        let process = self.process;
        for event in measured.blocks.iter().flat_map(Block::events) {
            let last_ns = event.time_ns.saturating_add(event.lasted_ns);
            let thread = process.threads.get(event.thread as usize);
            if self.query.wanted_ns(process, event.time_ns, last_ns).is_some()
                && let Some(sum) = self.sum_at(thread, event.time_ns)
            {
                add(sum, &event);
            }
        }
    }
}
