//! Counters of a method: fewer than it has points and branches, because hits of many follow from
//! those of others.
//!
//! Control that enters a stretch of code without calls, and without instructions that can fail,
//! goes through all of it; a place is reached as often as all ways there are gone; and a condition
//! is looked at as often as its ways are gone. Hits of a point or branch so become the sum of a few
//! counters, always a sum: a difference of counters to which threads add at the same time could
//! show what never ran as covered. Exceptions and programs that are killed change nothing, since no
//! sum goes across an instruction that might not be passed.

mod flow;
mod sums;
mod values;

use std::cmp::Reverse;
use std::collections::HashMap;

use clr_il::Body;

use crate::plan::MethodPlan;
use flow::Flow;
use sums::Sums;

pub use values::has_values;

/// Place of a counter in a method.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum CounterPlace {
    /// In front of the instruction at an offset.
    Before(u32),
    /// On the way on from a branch.
    Way {
        /// Offset of the branch.
        branch: u32,
        /// Number of the way: 0 goes on with the next instruction, others are the targets from 1.
        path: u32,
    },
}

impl CounterPlace {
    /// Offset of the instruction that it is before, or the way from.
    fn offset(self) -> u32 {
        match self {
            Self::Before(offset) | Self::Way { branch: offset, .. } => offset,
        }
    }
}

/// Counters that a method needs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CounterPlan {
    /// Places, by the counter's number. Those within most loops come first: they are added to in
    /// turn, and the processor stores faster to what lies side by side.
    pub places: Vec<CounterPlace>,
    /// Whether the method has values on the stack at a place, by the counter's number.
    pub has_values: Vec<bool>,
    /// Numbers of the counters whose sum is the hits: of each point of the plan, then of each
    /// branch.
    pub sums: Vec<Vec<u32>>,
}

/// Counters for a plan of a method whose own code is `body`.
pub(crate) fn counters(plan: &MethodPlan, body: &Body) -> CounterPlan {
    let flow = Flow::from_body(body);
    // Amounts, each of a block or edge of the flow, that are to be known; `None` where the plan
    // names what the body lacks.
    let points = plan.points.iter().map(|point| flow.block_at(point.il_offset).map(|block| flow.of_block(block)));
    let branches = plan.branches.iter().map(|branch| flow.edge(branch.il_offset, branch.path));
    let wanted: Vec<Option<usize>> = points.chain(branches).collect();
    let sums = Sums::new(&flow, wanted.iter().flatten().copied());
    let mut places = Places::new(&sums, &flow, plan);
    let own = own_places(plan);
    let sums = wanted.iter().zip(own).map(|(amount, own)| match amount {
        Some(amount) => sums.terms(*amount).iter().map(|term| places.counter(*term)).collect(),
        None => vec![places.add(own)],
    });
    let sums = sums.collect();
    innermost_first(&places.places, sums, &flow)
}

/// The plan with these counters, renumbered.
fn innermost_first(places: &[CounterPlace], mut sums: Vec<Vec<u32>>, flow: &Flow) -> CounterPlan {
    let mut order: Vec<usize> = (0..places.len()).collect();
    order.sort_by_key(|number| Reverse(flow.depth_at(places[*number].offset())));
    let mut numbers = vec![0; places.len()];
    for (new, old) in (0..).zip(&order) {
        numbers[*old] = new;
    }
    sums.iter_mut().flatten().for_each(|number| *number = numbers[*number as usize]);
    CounterPlan { places: order.into_iter().map(|number| places[number]).collect(), has_values: Vec::new(), sums }
}

/// Place of each point and branch where it has a counter of its own.
fn own_places(plan: &MethodPlan) -> impl Iterator<Item = CounterPlace> {
    let points = plan.points.iter().map(|point| CounterPlace::Before(point.il_offset));
    let ways = plan.branches.iter().map(|branch| CounterPlace::Way { branch: branch.il_offset, path: branch.path });
    points.chain(ways)
}

/// Places of counters, which are numbered as they are asked for.
struct Places {
    places: Vec<CounterPlace>,
    /// Best place for each amount that is counted.
    best: HashMap<usize, CounterPlace>,
    numbers: HashMap<usize, u32>,
}

impl Places {
    fn new(sums: &Sums, flow: &Flow, plan: &MethodPlan) -> Self {
        let mut best = HashMap::new();
        // A point is where a debugger would stop, and where the stack is empty; next best is any
        // block's start; a way needs jumps around its code.
        for point in &plan.points {
            if let Some(block) = flow.block_at(point.il_offset) {
                best.entry(sums.amount(flow.of_block(block))).or_insert(CounterPlace::Before(point.il_offset));
            }
        }
        for (block, start) in flow.blocks() {
            best.entry(sums.amount(flow.of_block(block))).or_insert(CounterPlace::Before(start));
        }
        for (edge, branch, path) in flow.ways() {
            best.entry(sums.amount(edge)).or_insert(CounterPlace::Way { branch, path });
        }
        Self { places: Vec::new(), best, numbers: HashMap::new() }
    }

    fn add(&mut self, place: CounterPlace) -> u32 {
        self.places.push(place);
        self.places.len() as u32 - 1
    }

    /// Number of the counter of an amount.
    fn counter(&mut self, amount: usize) -> u32 {
        if let Some(number) = self.numbers.get(&amount) {
            return *number;
        }
        let place = self.best.get(&amount).copied().unwrap_or(CounterPlace::Before(0));
        let number = self.add(place);
        self.numbers.insert(amount, number);
        number
    }
}

#[cfg(test)]
mod tests;
