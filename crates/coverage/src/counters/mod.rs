//! Counters of a method: fewer than it has points and branches, because many hits follow from
//! others.
//!
//! Control that enters a stretch of code without calls and without instructions that can fail
//! passes through all of it. A block is entered as often as all edges into it together. A condition
//! is evaluated as often as all edges out of it together. The hits of a point or branch therefore
//! become the sum of a few counters. They are never a difference: threads add to counters at the
//! same time, so a difference could show code as covered that never ran. Exceptions and killed
//! programs cause no error, since no sum extends across an instruction that control might not pass.

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
    /// On an edge out of a branch.
    Way {
        /// Offset of the branch.
        branch: u32,
        /// Number of the edge. 0 is the fall-through to the next instruction; the targets are
        /// numbered from 1.
        path: u32,
    },
}

impl CounterPlace {
    /// Offset of the instruction after the counter, or of the edge's branch.
    fn offset(self) -> u32 {
        match self {
            Self::Before(offset) | Self::Way { branch: offset, .. } => offset,
        }
    }
}

/// Counters that a method needs.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CounterPlan {
    /// Positions of the counters, by counter number. Counters of the innermost loops come first:
    /// they are incremented in turn, and the processor stores faster to adjacent memory.
    pub places: Vec<CounterPlace>,
    /// Whether the method's evaluation stack holds values at the counter's position, by counter
    /// number.
    pub has_values: Vec<bool>,
    /// For each point of the plan, then for each branch: the numbers of the counters that add up to
    /// its hits.
    pub sums: Vec<Vec<u32>>,
}

/// Counters for the plan of a method. `body` is the method's original code.
pub(crate) fn counters(plan: &MethodPlan, body: &Body) -> CounterPlan {
    let flow = Flow::from_body(body);
    // The wanted amounts, each of a block or edge; `None` where the body lacks what the plan names.
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

/// The plan with these counters, renumbered so that the innermost loops come first.
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

/// The place of each point and branch for a counter of its own.
fn own_places(plan: &MethodPlan) -> impl Iterator<Item = CounterPlace> {
    let points = plan.points.iter().map(|point| CounterPlace::Before(point.il_offset));
    let ways = plan.branches.iter().map(|branch| CounterPlace::Way { branch: branch.il_offset, path: branch.path });
    points.chain(ways)
}

/// Places of counters, numbered in the order of requests.
struct Places {
    places: Vec<CounterPlace>,
    /// Best place for each counted amount.
    best: HashMap<usize, CounterPlace>,
    numbers: HashMap<usize, u32>,
}

impl Places {
    fn new(sums: &Sums, flow: &Flow, plan: &MethodPlan) -> Self {
        let mut best = HashMap::new();
        // The best place is a sequence point: a debugger would stop there, and the stack is empty.
        // Next best is any block's start; an edge needs jumps around the inserted code.
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

    /// Number of the counter for an amount.
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
