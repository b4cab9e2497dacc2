//! Amounts of trees by state: how the time of each path divides into thread states.

use std::ops::{AddAssign, Range};

use clrscope_recording::parallel::{each_mut, fold};
use rustc_hash::FxHashMap;

use super::StackTree;
use super::amounts::EventFilter;
use crate::metric_events::MetricEvents;
use crate::time_states::TimeStates;
use crate::waits::TimeState;

/// Number of states.
const STATES: usize = TimeState::ALL.len();

/// Times in nanoseconds, one for each thread state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StateTimes([u64; STATES]);

impl StateTimes {
    /// Returns the time in a state.
    #[must_use]
    pub fn ns_in(&self, state: TimeState) -> u64 {
        self.0[state as usize]
    }

    /// Adds time in a state.
    pub fn add(&mut self, state: TimeState, ns: u64) {
        let sum = &mut self.0[state as usize];
        *sum = sum.saturating_add(ns);
    }

    /// Subtracts times, which must be part of these times.
    pub fn subtract(&mut self, part: &Self) {
        self.0.iter_mut().zip(part.0).for_each(|(sum, part)| *sum = sum.saturating_sub(part));
    }

    /// The states with a time above zero, and that time.
    pub fn each(&self) -> impl Iterator<Item = (TimeState, u64)> {
        TimeState::ALL.iter().copied().zip(self.0).filter(|(_, ns)| *ns > 0)
    }
}

impl AddAssign for StateTimes {
    fn add_assign(&mut self, other: Self) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, more)| *sum = sum.saturating_add(more));
    }
}

/// Amounts of one state: places of the stacks that have an amount, the running sum before each
/// place, and the total.
#[derive(Default)]
struct RunningSums {
    there: Vec<u32>,
    before: Vec<u64>,
}

impl RunningSums {
    /// Builds running sums from amounts that are ordered by place.
    fn new(sums: &[(u32, u64)]) -> Self {
        let mut all = 0_u64;
        let mut before = Vec::with_capacity(sums.len() + 1);
        for (_, amount) in sums {
            before.push(all);
            all = all.saturating_add(*amount);
        }
        before.push(all);
        Self { there: sums.iter().map(|(place, _)| *place).collect(), before }
    }

    #[inline]
    fn sum(&self, stacks: &Range<u32>) -> u64 {
        let start = self.there.partition_point(|place| *place < stacks.start);
        let end = start + self.there[start..].partition_point(|place| *place < stacks.end);
        self.before[end] - self.before[start]
    }
}

/// Amounts of the stacks of a tree by state.
#[derive(Default)]
pub(crate) struct StateAmounts {
    by_state: Vec<(TimeState, RunningSums)>,
}

impl StateAmounts {
    /// Sums the wanted events of all threads along a tree.
    pub(crate) fn of_all(
        measured: &MetricEvents,
        states: &TimeStates,
        wanted: &EventFilter<'_>,
        tree: &StackTree,
    ) -> Self {
        let parts = fold(
            measured.blocks.len(),
            || StackStates::new(measured.stacks()),
            |found, at| {
                wanted.each(&measured.blocks[at], |event, part| {
                    found.add(event.stack, states.state_of(event), part.amount);
                });
            },
        );
        let all = parts.into_iter().reduce(StackStates::joined).unwrap_or_else(|| StackStates::new(0));
        let (places, mut by_state) = (tree.places(measured.stacks()), vec![Vec::new(); STATES]);
        all.each(|stack, state, amount| by_state[state as usize].push((places[stack as usize], amount)));
        Self::from_sums(by_state)
    }

    /// Sums the wanted events of each thread along trees of one shape; the last entry is for
    /// unknown threads.
    pub(crate) fn by_thread(
        measured: &MetricEvents,
        states: &TimeStates,
        wanted: &EventFilter<'_>,
        tree: &StackTree,
    ) -> Vec<Self> {
        let places = tree.places(measured.stacks());
        let mut of_threads: Vec<Vec<Vec<(u32, u64)>>> = vec![vec![Vec::new(); STATES]; wanted.threads.len()];
        for block in &measured.blocks {
            wanted.each(block, |event, part| {
                let of_state = &mut of_threads[event.thread as usize][states.state_of(event) as usize];
                of_state.push((places[event.stack as usize], part.amount));
            });
        }
        of_threads.into_iter().map(Self::from_sums).collect()
    }

    /// Sums amounts by state and place, in any order.
    fn from_sums(mut by_state: Vec<Vec<(u32, u64)>>) -> Self {
        each_mut(&mut by_state, |sums| {
            sums.sort_unstable_by_key(|(place, _)| *place);
            sums.dedup_by(|next, sum| {
                let is_same = next.0 == sum.0;
                if is_same {
                    sum.1 = sum.1.saturating_add(next.1);
                }
                is_same
            });
        });
        let found = TimeState::ALL.iter().copied().zip(by_state).filter(|(_, sums)| !sums.is_empty());
        Self { by_state: found.map(|(state, sums)| (state, RunningSums::new(&sums))).collect() }
    }

    /// Visits the amount of each state in each range of stacks; the ranges must be in order.
    pub(crate) fn each_in_order(
        &self,
        ranges: impl Iterator<Item = (u32, Range<u32>)> + Clone,
        mut visit: impl FnMut(TimeState, u32, u64),
    ) {
        for (state, RunningSums { there, before }) in &self.by_state {
            let mut at = 0;
            for (of, range) in ranges.clone() {
                let pass = |mut at: usize, limit: u32| {
                    while there.get(at).is_some_and(|place| *place < limit) {
                        at += 1;
                    }
                    at
                };
                let start = pass(at, range.start);
                at = pass(start, range.end);
                if at > start {
                    visit(*state, of, before[at] - before[start]);
                }
            }
        }
    }

    /// Sums of a range of stacks of the tree.
    pub(crate) fn sum(&self, stacks: Range<u32>) -> StateTimes {
        let mut found = StateTimes::default();
        if stacks.start < stacks.end {
            self.by_state.iter().for_each(|(state, sums)| found.add(*state, sums.sum(&stacks)));
        }
        found
    }
}

/// Amounts of stacks by state. Most stacks have one state.
struct StackStates {
    /// By number of the stack among the events' stacks: the first state found, and its amount.
    first: Vec<(Option<TimeState>, u64)>,
    others: FxHashMap<(u32, TimeState), u64>,
}

impl StackStates {
    fn new(stacks: usize) -> Self {
        Self { first: vec![(None, 0); stacks], others: FxHashMap::default() }
    }

    #[inline]
    fn add(&mut self, stack: u32, state: TimeState, amount: u64) {
        let (first, sum) = &mut self.first[stack as usize];
        let sum = match *first.get_or_insert(state) == state {
            true => sum,
            false => self.others.entry((stack, state)).or_default(),
        };
        *sum = sum.saturating_add(amount);
    }

    fn joined(mut self, part: Self) -> Self {
        part.each(|stack, state, amount| self.add(stack, state, amount));
        self
    }

    /// Visits each stack and state with an amount, in no particular order.
    fn each(&self, mut visit: impl FnMut(u32, TimeState, u64)) {
        for (stack, &(state, amount)) in (0..).zip(&self.first) {
            if let Some(state) = state.filter(|_| amount > 0) {
                visit(stack, state, amount);
            }
        }
        self.others.iter().for_each(|(&(stack, state), &amount)| visit(stack, state, amount));
    }
}
