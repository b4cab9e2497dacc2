//! Sums of events by stack, for one query.

use std::ops::Range;
use std::sync::Arc;

use clrscope_recording::model::{Process, Recording};
use clrscope_recording::parallel::{each_mut, fold};

use super::shape::Shape;
use crate::allocations::is_wanted;
use crate::metric::{Metric, StackEvent};
use crate::metric_events::{Block, Event, MetricEvents, name_of};
use crate::query::Query;
use crate::samples::FoldedFunctions;
use crate::time_states::{TimeStates, has_states};

/// A sum of amounts and samples.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct StackSum {
    pub(crate) amount: u64,
    pub(crate) samples: u64,
}

impl StackSum {
    pub(crate) fn add(&mut self, other: Self) {
        self.amount = self.amount.saturating_add(other.amount);
        self.samples = self.samples.saturating_add(other.samples);
    }

    pub(super) fn since(self, before: Self) -> Self {
        Self { amount: self.amount.saturating_sub(before.amount), samples: self.samples.saturating_sub(before.samples) }
    }
}

/// The events that a query selects.
pub(crate) struct EventFilter<'q> {
    process: &'q Process,
    query: &'q Query,
    /// By thread index; the last entry is for unknown threads.
    pub(super) threads: Vec<bool>,
    all_threads: bool,
    /// The states of events; `None` unless the query filters states.
    states: Option<Arc<TimeStates>>,
}

impl<'q> EventFilter<'q> {
    pub(crate) fn new(process: &'q Process, query: &'q Query) -> Self {
        let known = process.threads.iter().map(|thread| query.wants_thread(thread));
        let threads: Vec<bool> = known.chain([query.wants_thread_if_known(None)]).collect();
        let all_threads = threads.iter().all(|wanted| *wanted);
        Self { process, query, all_threads, threads, states: None }
    }

    /// Returns the filter with the query's filter of states added, if the metric has states.
    pub(crate) fn with_states(mut self, metric: &Metric, measured: &MetricEvents) -> Self {
        let is_asked = !self.query.states.is_empty() && has_states(metric);
        self.states = is_asked.then(|| TimeStates::for_process(self.process, measured));
        self
    }

    /// Whether an event is in a wanted state.
    #[inline]
    fn wants_state(&self, event: &Event) -> bool {
        self.states.as_ref().is_none_or(|states| self.query.states.contains(&states.state_of(event)))
    }

    /// Whether the filter selects all events of the process.
    pub(crate) fn is_everything(&self) -> bool {
        let Query { since_ns, until_ns, threads, types, .. } = self.query;
        let asks_for_all = since_ns.is_none() && until_ns.is_none() && threads.is_empty() && types.is_empty();
        asks_for_all && self.all_threads && self.states.is_none() && self.process.shown.is_none()
    }

    /// Visits the wanted events of a block, each with the wanted part of its amount.
    pub(crate) fn each(&self, block: &Block, mut visit: impl FnMut(&Event, StackSum)) {
        let Query { since_ns, until_ns, threads, types, .. } = self.query;
        if !self.query.wants_span(block.first_ns, block.last_ns) {
            return;
        }
        let is_within = since_ns.is_none_or(|since| block.first_ns >= since)
            && until_ns.is_none_or(|until| block.last_ns <= until)
            && self.process.shown.is_none();
        let is_plain = is_within && types.is_empty() && (!block.is_mixed || !threads.is_empty());
        if is_plain && self.all_threads && self.states.is_none() {
            return block.events().for_each(|event| visit(&event, whole(&event)));
        }
        let is_wanted = |event: &Event| self.threads[event.thread as usize] && self.wants_state(event);
        for event in block.events().filter(is_wanted) {
            let part =
                if is_plain { Some(whole(&event)) } else { wanted_part(self.process, self.query, &event.unpacked()) };
            if let Some(part) = part {
                visit(&event, part);
            }
        }
    }

    /// Visits the events of a block that touch the wanted time. Events are not cut at its limits,
    /// and events of idle threads are included.
    pub(crate) fn each_whole(&self, block: &Block, mut visit: impl FnMut(&Event)) {
        if !self.query.wants_span(block.first_ns, block.last_ns) {
            return;
        }
        for event in block.events().filter(|event| self.threads[event.thread as usize]) {
            let last_ns = event.time_ns.saturating_add(event.lasted_ns);
            if self.query.wanted_ns(self.process, event.time_ns, last_ns).is_some() {
                visit(&event);
            }
        }
    }
}

fn whole(event: &Event) -> StackSum {
    StackSum { amount: event.amount, samples: event.samples.into() }
}

/// The part of an event that lies in the query's time range; `None` if no part lies in it, and for
/// idle threads.
pub(crate) fn wanted_part(process: &Process, query: &Query, event: &StackEvent) -> Option<StackSum> {
    let is_idle = event.idle && query.threads.is_empty();
    if is_idle || !is_wanted(&query.types, process, event.object_type) {
        return None;
    }
    let whole = StackSum { amount: event.amount, samples: event.samples };
    let (first, last) = (event.time_ns, event.time_ns.saturating_add(event.lasted_ns));
    let within = query.wanted_ns(process, first, last)?;
    if within >= event.lasted_ns {
        return Some(whole);
    }
    let part = |of: u64| (u128::from(of) * u128::from(within) / u128::from(event.lasted_ns)) as u64;
    Some(StackSum { amount: part(whole.amount), samples: part(whole.samples).max(1) })
}

/// Sum of a stack, and whether any event has this stack.
#[derive(Debug, Clone, Copy, Default)]
struct Cell {
    sum: StackSum,
    is_there: bool,
}

/// Stacks of the events of a metric in a process, with the sums of the wanted events.
pub(crate) struct SummedStacks {
    pub(crate) measured: Arc<MetricEvents>,
    /// Functions that are folded into their callers.
    pub(crate) folded: Option<FoldedFunctions>,
    /// By number of the stack among the events' stacks.
    cells: Arc<Vec<Cell>>,
}

impl SummedStacks {
    /// Reads the stacks of a process; `None` if the metric is not made of events.
    pub(crate) fn for_metric(
        recording: &Recording,
        process: &Process,
        query: &Query,
        metric: &'static Metric,
    ) -> Option<Self> {
        let measured = MetricEvents::for_metric(process, metric)?;
        let folded = FoldedFunctions::for_query(recording, process, query, metric);
        let wanted = EventFilter::new(process, query).with_states(metric, &measured);
        let sum = || cells(&measured, &wanted);
        let cells = match wanted.is_everything() {
            true => process.derived.get(&format!("{}, sums of stacks", name_of(metric)), sum),
            false => Arc::new(sum()),
        };
        Some(Self { measured, folded, cells })
    }

    /// Sum of a stack, by its number among the events' stacks; `None` if no wanted event has the
    /// stack.
    #[inline]
    pub(super) fn sum_of(&self, stack: u32) -> Option<StackSum> {
        self.cells.get(stack as usize).filter(|cell| cell.is_there).map(|cell| cell.sum)
    }

    /// Sum of a stack, by its number among the events' stacks; zero if no wanted event has the
    /// stack.
    #[inline]
    pub(super) fn of_stack(&self, stack: u32) -> StackSum {
        self.sum_of(stack).unwrap_or_default()
    }

    /// Sum of everything.
    pub(crate) fn whole(&self) -> StackSum {
        let mut all = StackSum::default();
        self.cells.iter().for_each(|cell| all.add(cell.sum));
        all
    }

    /// The stacks of wanted events and their sums, in ascending order of their numbers in the
    /// table.
    pub(crate) fn by_number(&self) -> impl Iterator<Item = (u32, StackSum)> {
        let there = (0..).zip(&*self.cells).filter(|(_, cell)| cell.is_there);
        there.map(|(stack, cell)| (self.measured.number_in_table(stack), cell.sum))
    }
}

fn cells(measured: &MetricEvents, wanted: &EventFilter<'_>) -> Vec<Cell> {
    let parts = fold(
        measured.blocks.len(),
        || vec![Cell::default(); measured.stacks()],
        |cells, at| {
            wanted.each(&measured.blocks[at], |event, part| {
                let cell = &mut cells[event.stack as usize];
                cell.sum.add(part);
                cell.is_there = true;
            });
        },
    );
    joined(parts)
}

/// Cells that one worker merges at a time.
const TOGETHER: usize = 1 << 16;

/// Merges the sums of several workers.
fn joined(mut parts: Vec<Vec<Cell>>) -> Vec<Cell> {
    let mut all = parts.pop().unwrap_or_default();
    let mut pieces: Vec<(usize, &mut [Cell])> = all.chunks_mut(TOGETHER).enumerate().collect();
    each_mut(&mut pieces, |(at, cells)| {
        for part in &parts {
            for (cell, more) in cells.iter_mut().zip(&part[*at * TOGETHER..]) {
                cell.sum.add(more.sum);
                cell.is_there |= more.is_there;
            }
        }
    });
    all
}

/// Sums of the stacks of a shape, in its order, as running sums.
#[derive(Default)]
pub(crate) struct Amounts {
    /// Places of the stacks of wanted events; `None` if all stacks have wanted events.
    there: Option<Vec<u32>>,
    /// Running sum before each of these stacks, followed by the total.
    before: Vec<StackSum>,
}

impl Amounts {
    /// Sums of all wanted events.
    pub(crate) fn new(stacks: &SummedStacks, shape: &Shape) -> Self {
        Self::with(stacks, shape, &[])
    }

    /// Like [`new`](Self::new), for a shape with additional stacks after all other stacks. `more`
    /// has the sums of the additional stacks.
    pub(super) fn with(stacks: &SummedStacks, shape: &Shape, more: &[StackSum]) -> Self {
        let cells = &stacks.cells;
        let of_stack = |stack: u32| match cells.get(stack as usize) {
            Some(cell) => cell.is_there.then_some(cell.sum),
            None => more.get(stack as usize - cells.len()).copied(),
        };
        let is_whole = shape.stacks.iter().all(|&stack| of_stack(stack).is_some());
        let places = (0..).zip(&shape.stacks);
        let mut found = Self::from_sums(places.filter_map(|(place, &stack)| Some((place, of_stack(stack)?))));
        if is_whole {
            found.there = None;
        }
        found
    }

    /// Sums of the wanted events of each thread; the last entry is for unknown threads.
    pub(crate) fn by_thread(measured: &MetricEvents, shape: &Shape, wanted: &EventFilter<'_>) -> Vec<Self> {
        let mut places = vec![0_u32; measured.stacks()];
        for (place, &stack) in (0..).zip(&shape.stacks) {
            places[stack as usize] = place;
        }
        let mut of_threads: Vec<Vec<(u32, StackSum)>> = vec![Vec::new(); wanted.threads.len()];
        for block in &measured.blocks {
            wanted.each(block, |event, part| {
                of_threads[event.thread as usize].push((places[event.stack as usize], part));
            });
        }
        each_mut(&mut of_threads, |events| {
            events.sort_unstable_by_key(|(place, _)| *place);
            events.dedup_by(|next, sum| {
                let is_same = next.0 == sum.0;
                if is_same {
                    sum.1.add(next.1);
                }
                is_same
            });
        });
        of_threads.into_iter().map(|events| Self::from_sums(events.into_iter())).collect()
    }

    fn from_sums(sums: impl Iterator<Item = (u32, StackSum)>) -> Self {
        let most = sums.size_hint().1.unwrap_or(0);
        let (mut there, mut before) = (Vec::with_capacity(most), Vec::with_capacity(most + 1));
        let mut all = StackSum::default();
        for (place, sum) in sums {
            there.push(place);
            before.push(all);
            all.add(sum);
        }
        before.push(all);
        Self { there: Some(there), before }
    }

    /// Whether every stack of the shape has an event.
    pub(crate) fn is_of_all(&self) -> bool {
        self.there.is_none()
    }

    /// Whether there are no events.
    pub(crate) fn is_empty(&self) -> bool {
        self.before.len() < 2
    }

    /// Sum of everything.
    pub(crate) fn whole(&self) -> StackSum {
        self.before.last().copied().unwrap_or_default()
    }

    /// Places of the sums of a range of stacks of the shape.
    #[inline]
    pub(super) fn places(&self, stacks: Range<u32>) -> Range<usize> {
        match &self.there {
            None => stacks.start as usize..stacks.end as usize,
            Some(there) => {
                let start = there.partition_point(|place| *place < stacks.start);
                // Mostly the range has few stacks.
                let within = there[start..].iter().take(8).take_while(|place| **place < stacks.end).count();
                let end = match within {
                    8 => start + there[start..].partition_point(|place| *place < stacks.end),
                    few => start + few,
                };
                start..end
            }
        }
    }

    /// Sum of a range of stacks of the shape.
    #[inline]
    pub(super) fn sum(&self, stacks: Range<u32>) -> StackSum {
        let Range { start, end } = self.places(stacks);
        match end > start {
            true => self.before[end].since(self.before[start]),
            false => StackSum::default(),
        }
    }
}

/// Sums of the runs of a shape, computed in the order of the runs.
pub(crate) struct InOrder<'t> {
    amounts: &'t Amounts,
    /// Place of the first sum that belongs to no earlier run.
    at: usize,
}

impl<'t> InOrder<'t> {
    pub(crate) fn new(amounts: &'t Amounts) -> Self {
        Self { amounts, at: 0 }
    }

    /// Sum of a run's own stacks, which have the places `own`. `end` is the number after the last
    /// stack below the run. `None` if no event lies at the run or below it.
    #[inline]
    pub(crate) fn next(&mut self, own: Range<u32>, end: u32) -> Option<StackSum> {
        let before = &self.amounts.before;
        let Some(there) = &self.amounts.there else {
            return (end > own.start).then(|| before[own.end as usize].since(before[own.start as usize]));
        };
        let pass = |mut at: usize, limit: u32| {
            while there.get(at).is_some_and(|place| *place < limit) {
                at += 1;
            }
            at
        };
        let first = pass(self.at, own.start);
        self.at = first;
        there.get(first).filter(|place| **place < end)?;
        self.at = pass(first, own.end);
        Some(before[self.at].since(before[first]))
    }
}
