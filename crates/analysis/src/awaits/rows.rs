//! Awaits, summed by method and place.

use std::collections::BTreeMap;

use clrscope_recording::events::{Kind, Record, Records, Tag};
use clrscope_recording::model::{EventChunk, LossReason, Process, StackFrame};
use rustc_hash::FxHashMap;

use super::outer::{OuterAwaits, Place};
use super::{AwaitPath, AwaitRow};
use crate::durations::Durations;
use crate::exceptions::CallStack;
use crate::query::Query;

/// Number of paths that a row keeps: those with the longest time.
const MOST_PATHS: usize = 100;
/// Outcomes, by their numbers in recordings.
const FAILED: u64 = 1;
const CANCELLED: u64 = 2;

/// The awaits at one place.
#[derive(Debug, Default)]
struct PlaceSum {
    awaits: String,
    count: u64,
    pending: u64,
    failed: u64,
    cancelled: u64,
    total_ns: u64,
    max_ns: u64,
    durations: Durations,
    /// Number and nanoseconds of awaits, by stack.
    paths: FxHashMap<u32, (u64, u64)>,
    /// A stack that ends at the place.
    stack: u32,
}

/// The sums of awaits by place.
pub(super) struct Grouping<'q, 'a> {
    process: &'a Process,
    query: &'q Query,
    sums: BTreeMap<Place, PlaceSum>,
}

impl<'q, 'a> Grouping<'q, 'a> {
    pub(super) fn new(process: &'a Process, query: &'q Query) -> Self {
        Self { process, query, sums: BTreeMap::new() }
    }

    pub(super) fn add_chunk(&mut self, chunk: &EventChunk) {
        let thread = self.process.threads.get(chunk.thread as usize);
        let is_wanted = self.query.wants_thread_if_known(thread);
        for record in Records::new(&chunk.bytes.load()) {
            let Some(stack) = stack_of(&record) else { continue };
            if record.kind != Kind::AWAIT_PLACE && !self.process.shows_request(record.number(Tag::REQUEST)) {
                continue;
            }
            match record.kind {
                // The thread that records a place is unrelated to the thread of the await.
                Kind::AWAIT_PLACE => {
                    let sum = self.sum(stack);
                    sum.awaits = record.text(Tag::NAME).unwrap_or_default().to_owned();
                }
                Kind::AWAIT_ENDED if is_wanted => self.ended(&record, stack),
                Kind::AWAIT_PENDING if self.query.threads.is_empty() => self.pending(&record, stack),
                _ => {}
            }
        }
    }

    fn ended(&mut self, record: &Record<'_>, stack: u32) {
        let end_ns = self.process.started_ns.saturating_add(record.time_ns);
        let took = record.number(Tag::DURATION).unwrap_or(0);
        let Some(ns) = self.query.wanted_ns(self.process, end_ns.saturating_sub(took), end_ns) else { return };
        if !self.wants_stack(stack) {
            return;
        }
        let sum = self.sum(stack);
        sum.count += 1;
        sum.failed += u64::from(record.number(Tag::OUTCOME) == Some(FAILED));
        sum.cancelled += u64::from(record.number(Tag::OUTCOME) == Some(CANCELLED));
        sum.total_ns = sum.total_ns.saturating_add(ns);
        sum.max_ns = sum.max_ns.max(ns);
        sum.durations.add(ns);
        let path = sum.paths.entry(stack).or_default();
        *path = (path.0 + 1, path.1.saturating_add(ns));
    }

    fn pending(&mut self, record: &Record<'_>, stack: u32) {
        let now_ns = self.process.started_ns.saturating_add(record.time_ns);
        let waited = record.number(Tag::DURATION).unwrap_or(0);
        let is_wanted = self.query.wanted_ns(self.process, now_ns.saturating_sub(waited), now_ns).is_some();
        if is_wanted && self.wants_stack(stack) {
            self.sum(stack).pending += 1;
        }
    }

    fn wants_stack(&self, stack: u32) -> bool {
        let is_named = |stack: u32| {
            let named =
                |function: crate::FunctionRef<'_>| self.query.wants_function(function.module(), function.function);
            self.stack(stack).functions().any(named)
        };
        !self.query.filters_functions() || is_named(stack)
    }

    fn stack(&self, number: u32) -> CallStack<'a> {
        CallStack::new(self.process, &self.process.stacks, number)
    }

    fn sum(&mut self, stack: u32) -> &mut PlaceSum {
        let sum = self.sums.entry(place_of(self.process, stack)).or_default();
        sum.stack = stack;
        sum
    }

    /// The rows, in the order of method and place. Places where no method waited are left out.
    pub(super) fn finish(self) -> Vec<AwaitRow<'a>> {
        let is_exact = self.process.losses.iter().all(|loss| loss.reason != LossReason::EventDropped);
        let (process, stacks) = (self.process, &self.process.stacks);
        let of_all = self.sums.values().flat_map(|sum| sum.paths.keys().copied());
        let outer = OuterAwaits::new(process, of_all);
        let row = |(place, sum): (Place, PlaceSum)| {
            let path = |(stack, (count, ns))| AwaitPath { count, ns, stack: CallStack::new(process, stacks, stack) };
            let own = sum.paths.iter().filter(|(stack, _)| !outer.has(**stack)).map(|(_, (_, ns))| *ns);
            let self_ns = own.fold(0, u64::saturating_add);
            let mut paths: Vec<(u32, (u64, u64))> = sum.paths.into_iter().collect();
            paths.sort_unstable_by_key(|(stack, (count, ns))| (std::cmp::Reverse((*ns, *count)), *stack));
            paths.truncate(MOST_PATHS);
            Some(AwaitRow {
                process,
                frame: CallStack::new(process, stacks, sum.stack).innermost()?,
                awaits: sum.awaits,
                count: sum.count,
                is_exact,
                pending: sum.pending,
                failed: sum.failed,
                cancelled: sum.cancelled,
                total_ns: sum.total_ns,
                self_ns,
                max_ns: sum.max_ns,
                durations: sum.durations,
                place,
                paths: paths.into_iter().map(path).collect(),
            })
        };
        let sums = self.sums.into_iter().filter(|(_, sum)| sum.count + sum.pending > 0);
        sums.filter_map(row).collect()
    }
}

/// The await at which the method of a stack waits.
pub(super) fn place_of(process: &Process, stack: u32) -> Place {
    match process.stacks.frames(stack).next() {
        Some(StackFrame::Method { function, il_offset, .. }) => (function, il_offset),
        _ => (0, None),
    }
}

/// The number of a record's stack.
pub(super) fn stack_of(record: &Record<'_>) -> Option<u32> {
    record.number(Tag::STACK_NODE).and_then(|stack| u32::try_from(stack).ok())
}
