//! Calling-context trees of metrics whose events have stacks, for trees of any size.
//!
//! Data that does not depend on a query is computed once per process and cached: the events in a
//! compact form ([`MetricEvents`](crate::metric_events::MetricEvents)), and the paths of all their
//! stacks as one tree in preorder ([`Shape`]). In that tree a subtree is a range of stacks, and a
//! chain of nodes without branches is one run ([`Runs`](crate::runs::Runs)). A query for some
//! threads or a time range then takes one pass over the events, which computes the sum of each
//! stack ([`SummedStacks`]). Sums by function, or by another property of frames, are computed in
//! one walk along the stacks ([`StackVisitor`]), without the tree. In the tree ([`Amounts`]) the
//! amount of any subtree is the difference of two running sums, so the cost of showing a tree
//! depends only on the nodes that are shown.

mod amounts;
mod children;
mod functions;
mod large_paths;
mod shape;
mod shape_builder;
mod splice;
mod stack_visitor;
mod states;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use clrscope_recording::model::{CallTree, CallTreeBuilder, Node, NodeFlags, NodeValues};

pub(crate) use amounts::{Amounts, EventFilter, InOrder, StackSum, SummedStacks, wanted_part};
pub(crate) use functions::{FunctionSum, FunctionSums, ThreadSum};
pub(crate) use large_paths::large_paths;
pub(crate) use shape::Shape;
pub(crate) use stack_visitor::{Frame, StackVisitor};
pub(crate) use states::StateAmounts;
pub use states::StateTimes;

/// The paths of a process with the amounts of one query.
pub(crate) struct StackTree {
    pub(crate) shape: Arc<Shape>,
    pub(crate) amounts: Amounts,
    /// For each stack of the events, the stack that replaces it in a tree of large paths; 0 if no
    /// stack replaces it.
    pub(crate) lumps: Vec<u32>,
}

impl StackTree {
    /// Returns the place of each of the events' stacks; `stacks` is their number.
    fn places(&self, stacks: usize) -> Vec<u32> {
        let mut places = vec![0_u32; stacks.max(self.shape.stacks.len())];
        for (place, &stack) in (0..).zip(&self.shape.stacks) {
            let at = stack as usize;
            places.resize(places.len().max(at + 1), 0);
            places[at] = place;
        }
        for (stack, &lump) in self.lumps.iter().enumerate().filter(|(_, lump)| **lump != 0) {
            places[stack] = places[lump as usize];
        }
        places
    }

    /// Whether an event lies at a node or below it.
    #[inline]
    pub(crate) fn is_there(&self, node: u32) -> bool {
        !self.amounts.places(self.shape.below(node)).is_empty()
    }

    /// Sum of a node and everything below it.
    #[inline]
    pub(crate) fn subtree(&self, node: u32) -> StackSum {
        self.amounts.sum(self.shape.below(node))
    }

    /// Sum of the stacks that end at a node.
    #[inline]
    pub(crate) fn own(&self, node: u32) -> StackSum {
        self.amounts.sum(self.shape.at(node))
    }

    /// Copies the nodes that have events into a [`CallTree`]. The field for CPU time, as in trees
    /// of `calls`, holds the number of samples here.
    pub(crate) fn to_call_tree(&self) -> CallTree {
        let shape = &*self.shape;
        let is_whole = self.amounts.is_of_all();
        let mut builder = CallTreeBuilder::with_capacity(if is_whole { shape.len() as usize } else { 0 });
        // Ends of the ancestors, with their numbers in the tree.
        let mut open: Vec<(u32, u32)> = Vec::new();
        let mut node = 0;
        while node < shape.len() {
            if node > 0 && !is_whole && !self.is_there(node) {
                node = shape.end(node);
                continue;
            }
            while open.pop_if(|last| last.0 <= node).is_some() {}
            let parent = open.last().map_or(0, |last| last.1);
            let StackSum { amount, samples } = self.own(node);
            let values = NodeValues { metric: amount, cpu_ns: samples };
            let function = shape.function(node);
            let number = builder.push(Node { parent, function, calls: 0, values, flags: NodeFlags::default() });
            if shape.end(node) > node + 1 {
                open.push((shape.end(node), number));
            }
            node += 1;
        }
        builder.finish()
    }
}
