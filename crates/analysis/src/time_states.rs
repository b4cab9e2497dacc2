//! States of the time that samples of `wall` stand for: what a thread did, or what it waited for.

use std::sync::Arc;

use clrscope_recording::model::{Process, Sample, StackFrame};
use clrscope_recording::parallel::fold;

use crate::function::FunctionRef;
use crate::idle_threads::{ThreadTimes, busy_enough, may_always_wait};
use crate::metric::Metric;
use crate::metric_events::{Block, Event, MetricEvents};
use crate::parts::watched_ns;
use crate::query::Query;
use crate::samples::SAMPLED_WALL;
use crate::waits::{TimeState, WaitFacts, is_wait, reason_by_facts};

/// Whether the amounts of a metric are times with known states.
pub(crate) fn has_states(metric: &Metric) -> bool {
    metric.instrument == SAMPLED_WALL.instrument && metric.unit == SAMPLED_WALL.unit
}

/// Determines the states of the `wall` samples of a process.
pub(crate) struct TimeStates {
    /// State of a waiting thread, by the number of its stack among the events' stacks; `None` if
    /// the stack does not show the state.
    waits: Vec<Option<TimeState>>,
    /// Whether a thread is idle by purpose, by thread index.
    idle: Vec<bool>,
}

impl TimeStates {
    /// Returns the states for a process. `measured` must be its samples.
    pub(crate) fn for_process(process: &Process, measured: &MetricEvents) -> Arc<Self> {
        process.derived.get("states of time", || Self::find(process, measured))
    }

    fn find(process: &Process, measured: &MetricEvents) -> Self {
        let found = Waited::find(process, measured);
        // The state of a thread must not depend on the query's time range.
        let watched_ns = watched_ns(process, &Query::default()).max(1);
        let idle = idle_threads(process, measured, &found.threads, watched_ns);
        // Names are examined once per function, not once per stack.
        let nothing = WaitFacts::new(&FunctionRef::new(process, None));
        let named = process.functions.iter().enumerate().map(|(index, function)| match function.name.is_empty() {
            false if index > 0 => WaitFacts::new(&FunctionRef::new(process, Some(function))),
            _ => nothing,
        });
        let functions: Vec<WaitFacts> = named.collect();
        let of_frame = |frame: StackFrame| match frame {
            StackFrame::Method { function, .. } => functions.get(function as usize).copied().unwrap_or(nothing),
            _ => nothing,
        };
        let reason = |(stack, waits): (u32, bool)| {
            let frames = measured.table.frames(measured.number_in_table(stack)).map(of_frame);
            waits.then(|| reason_by_facts(frames)).flatten().map(TimeState::of_reason)
        };
        Self { waits: (0..).zip(found.stacks).map(reason).collect(), idle }
    }

    /// Returns the state of the time that an event represents.
    #[inline]
    pub(crate) fn state_of(&self, event: &Event) -> TimeState {
        let state = Sample::flagged(event.flags).state;
        if !is_wait(state) {
            return TimeState::of_thread(state);
        }
        match self.idle.get(event.thread as usize) {
            Some(true) => TimeState::Idle,
            _ => self.waits[event.stack as usize].unwrap_or(TimeState::of_thread(state)),
        }
    }
}

/// Waits found in one pass over the events.
struct Waited {
    /// Whether a thread waited with a stack, by the stack's number among the events' stacks.
    stacks: Vec<bool>,
    /// For each thread, the nanoseconds that it waited and that it lived; the last entry is for
    /// unknown threads.
    threads: Vec<(u64, u64)>,
}

impl Waited {
    fn find(process: &Process, measured: &MetricEvents) -> Self {
        let none = || Self { stacks: vec![false; measured.stacks()], threads: vec![(0, 0); process.threads.len() + 1] };
        let parts = fold(measured.blocks.len(), none, |found, at| {
            for event in measured.blocks[at].events() {
                let waits = is_wait(Sample::flagged(event.flags).state);
                found.stacks[event.stack as usize] |= waits;
                let (waited, lived) = &mut found.threads[event.thread as usize];
                *waited = waited.saturating_add(if waits { event.amount } else { 0 });
                *lived = lived.saturating_add(event.amount);
            }
        });
        let join = |mut all: Self, part: Self| {
            all.stacks.iter_mut().zip(part.stacks).for_each(|(waits, more)| *waits |= more);
            for ((waited, lived), more) in all.threads.iter_mut().zip(part.threads) {
                (*waited, *lived) = (waited.saturating_add(more.0), lived.saturating_add(more.1));
            }
            all
        };
        parts.into_iter().reduce(join).unwrap_or_else(none)
    }
}

/// Whether each thread is idle by purpose. Only few threads can be; for the others it matters only
/// whether they are busy.
fn idle_threads(process: &Process, measured: &MetricEvents, threads: &[(u64, u64)], watched_ns: u64) -> Vec<bool> {
    let may_be: Vec<bool> =
        threads.iter().map(|(waited, lived)| may_always_wait(*waited, *lived, watched_ns)).collect();
    let mut idle = vec![false; process.threads.len()];
    if !may_be.contains(&true) {
        return idle;
    }
    let (mut times, mut others, mut busy_ns) = (ThreadTimes::new(process), ThreadTimes::new(process), 0_u64);
    for event in measured.blocks.iter().flat_map(Block::events) {
        if may_be[event.thread as usize] {
            times.add(&sample_of(&event, measured));
        } else if !busy_enough(busy_ns, watched_ns) {
            busy_ns = busy_ns.saturating_add(others.add(&sample_of(&event, measured)));
        }
    }
    let always = times.idle_threads(watched_ns, busy_ns).into_iter().chain(times.waiting_mains(watched_ns));
    for index in always.filter_map(|thread| thread.checked_sub(1)) {
        if let Some(idle) = idle.get_mut(index as usize) {
            *idle = true;
        }
    }
    idle
}

/// Rebuilds the sample of an event, with the fields that its state depends on.
fn sample_of(event: &Event, measured: &MetricEvents) -> Sample {
    Sample {
        time_ns: event.time_ns,
        weight_ns: event.amount,
        thread: event.thread.saturating_add(1),
        stack: measured.number_in_table(event.stack),
        count: event.samples,
        ..Sample::flagged(event.flags)
    }
}
