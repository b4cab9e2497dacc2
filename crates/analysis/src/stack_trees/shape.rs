//! The paths of all stacks that the events of a metric have, merged by function.

use std::ops::Range;

use crate::metric_events::NodeSet;
use crate::runs::Runs;

/// Partly built paths, or pieces of them.
#[derive(Default)]
pub(super) struct GrownPaths {
    pub(super) runs: Runs,
    /// For each run, the place of the first stack that ends at the run or after it. There is one
    /// more entry than runs.
    pub(super) first: Vec<u32>,
    /// Numbers of the stacks among the events' stacks.
    pub(super) stacks: Vec<u32>,
}

/// Nodes in depth-first preorder; the first represents the threads themselves. Stacks are ordered
/// by the nodes at which they end, so the stacks of a subtree are consecutive. Within a run, stacks
/// end only at the last node.
#[derive(Default, PartialEq)]
pub(crate) struct Shape {
    runs: Runs,
    first: Vec<u32>,
    pub(super) stacks: Vec<u32>,
    /// The first node of each run.
    begins: NodeSet,
}

impl Shape {
    pub(super) fn new(GrownPaths { runs, first, stacks }: GrownPaths) -> Self {
        let mut begins = NodeSet::for_places(runs.functions.len());
        runs.starts.iter().take(runs.len() as usize).for_each(|node| begins.add(*node));
        begins.count();
        Self { runs, first, stacks, begins }
    }

    /// The nodes by runs.
    pub(crate) fn runs(&self) -> &Runs {
        &self.runs
    }

    /// Number of nodes.
    #[inline]
    pub(crate) fn len(&self) -> u32 {
        self.runs.functions.len() as u32
    }

    /// Index of a node's function; 0 for the first node.
    #[inline]
    pub(crate) fn function(&self, node: u32) -> u32 {
        self.runs.functions[node as usize]
    }

    #[inline]
    fn run_of(&self, node: u32) -> usize {
        self.begins.number(node) as usize + usize::from(self.begins.has(node)) - 2
    }

    /// The number after the last node below a node.
    #[inline]
    pub(crate) fn end(&self, node: u32) -> u32 {
        self.runs.starts[self.runs.ends[self.run_of(node)] as usize]
    }

    /// Places of the stacks that end at a node.
    #[inline]
    pub(crate) fn at(&self, node: u32) -> Range<u32> {
        let run = self.run_of(node);
        let is_last = node + 1 == self.runs.starts[run + 1];
        if is_last { self.at_run(run as u32) } else { self.first[run]..self.first[run] }
    }

    /// Places of the stacks that end at a node or below it.
    #[inline]
    pub(crate) fn below(&self, node: u32) -> Range<u32> {
        self.below_run(self.run_of(node) as u32)
    }

    /// Places of the stacks that end at a run.
    #[inline]
    pub(crate) fn at_run(&self, run: u32) -> Range<u32> {
        self.first[run as usize]..self.first[run as usize + 1]
    }

    /// Places of the stacks that end at a run or below it.
    #[inline]
    pub(crate) fn below_run(&self, run: u32) -> Range<u32> {
        self.first[run as usize]..self.first[self.runs.end(run) as usize]
    }
}
