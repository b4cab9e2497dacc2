//! The paths of all stacks that the events of a metric have, merged by function.

use std::ops::Range;

/// Nodes in depth-first preorder; the first stands for the threads themselves. Stacks are in the order of the nodes at which
/// they end, so that those of a subtree stand together.
#[derive(Default, PartialEq)]
pub(crate) struct Shape {
    pub(super) functions: Vec<u32>,
    /// One past the last node of each subtree.
    pub(super) ends: Vec<u32>,
    /// Place of the first stack that ends at each node or behind it; one more entry than nodes.
    pub(super) first: Vec<u32>,
    /// Numbers of the stacks among those of the events.
    pub(super) stacks: Vec<u32>,
}

impl Shape {
    /// Number of nodes.
    #[inline]
    pub(crate) fn len(&self) -> u32 {
        self.functions.len() as u32
    }

    /// Index of a node's function; 0 for the first node.
    #[inline]
    pub(crate) fn function(&self, node: u32) -> u32 {
        self.functions[node as usize]
    }

    /// One past the last node below a node.
    #[inline]
    pub(crate) fn end(&self, node: u32) -> u32 {
        self.ends[node as usize]
    }

    /// Places of the stacks that end at a node.
    #[inline]
    pub(crate) fn at(&self, node: u32) -> Range<u32> {
        self.first[node as usize]..self.first[node as usize + 1]
    }

    /// Places of the stacks that end at a node or below it.
    #[inline]
    pub(crate) fn below(&self, node: u32) -> Range<u32> {
        self.first[node as usize]..self.first[self.ends[node as usize] as usize]
    }
}
