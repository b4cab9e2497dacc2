//! The paths of all stacks that the events of a metric have, merged by function.

use std::ops::Range;
use std::sync::Arc;

use clrscope_recording::model::{Process, StackFrame};

use super::children::Children;
use crate::measured::{Measured, name_of};
use crate::metric::Metric;
use crate::samples::Folded;

/// Nodes in depth-first preorder; the first stands for the threads themselves. Stacks are in the order of the nodes at which
/// they end, so that those of a subtree stand together.
pub(crate) struct Shape {
    functions: Vec<u32>,
    /// One past the last node of each subtree.
    ends: Vec<u32>,
    /// Place of the first stack that ends at each node or behind it; one more entry than nodes.
    first: Vec<u32>,
    /// Numbers of the stacks among those of the events.
    pub(super) stacks: Vec<u32>,
}

impl Shape {
    /// The paths of the events of a process, without the functions that are folded into their callers: those that are not
    /// own code, too, where that is so.
    pub(crate) fn of(
        process: &Process,
        metric: &'static Metric,
        measured: &Measured,
        folded: Option<&Folded>,
        just_my_code: bool,
    ) -> Arc<Self> {
        let folds = if just_my_code { ", own code" } else { "" };
        process.derived.get(&format!("{}{folds}", name_of(metric)), || Making::new(measured, folded).make())
    }

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

/// A node whose members are at the end of the list of all, from `first` on.
struct Pending {
    function: u32,
    parent: u32,
    first: usize,
}

/// A frame below the root of which nothing is kept yet, and what its path will be if nothing is.
struct Left {
    id: u32,
    outermost: Option<u32>,
    outermost_method: Option<u32>,
}

/// A shape in the making. Frames are named by their places in the stack table, from 1; 0 is the root, and behind all places come
/// numbers of stacks that stand alone.
struct Making<'m> {
    measured: &'m Measured,
    folded: Option<&'m Folded>,
    children: Children,
    /// Nodes to come, the next one last, and the frames that each is made of.
    pending: Vec<Pending>,
    members: Vec<u32>,
    /// Nodes above, the innermost last.
    open: Vec<u32>,
    shape: Shape,
}

impl<'m> Making<'m> {
    fn new(measured: &'m Measured, folded: Option<&'m Folded>) -> Self {
        let children = Children::of(measured);
        let mut shape = Shape { functions: Vec::new(), ends: Vec::new(), first: Vec::new(), stacks: Vec::new() };
        if folded.is_none() {
            let most = children.len();
            [&mut shape.functions, &mut shape.ends, &mut shape.first].into_iter().for_each(|one| one.reserve(most));
        }
        let (pending, members, open) = (Vec::new(), Vec::new(), Vec::new());
        Self { measured, folded, children, pending, members, open, shape }
    }

    fn make(mut self) -> Shape {
        let mut called = Vec::new();
        let mut of_node = Vec::new();
        self.begin(0, 0);
        self.gather_outermost(&mut called);
        self.plan(0, &mut called);
        while let Some(Pending { mut function, mut parent, first }) = self.pending.pop() {
            of_node.clear();
            of_node.extend(self.members.drain(first..));
            loop {
                let node = self.begin(function, parent);
                self.gather(&mut of_node, &mut called);
                let &[(only, frame)] = called.as_slice() else {
                    self.plan(node, &mut called);
                    break;
                };
                // Most frames call one other: there is nothing to plan.
                called.clear();
                of_node.clear();
                of_node.push(frame);
                (function, parent) = (only, node);
            }
        }
        while let Some(node) = self.open.pop() {
            self.shape.ends[node as usize] = self.shape.len();
        }
        self.shape.first.push(self.shape.stacks.len() as u32);
        self.shape
    }

    /// Adds a node.
    fn begin(&mut self, function: u32, parent: u32) -> u32 {
        let node = self.shape.len();
        while let Some(last) = self.open.pop_if(|last| *last != parent) {
            self.shape.ends[last as usize] = node;
        }
        self.open.push(node);
        self.shape.functions.push(function);
        self.shape.ends.push(node + 1);
        self.shape.first.push(self.shape.stacks.len() as u32);
        node
    }

    /// Notes the stacks that end at some frames, and those below these that are left out, and finds the frames they called.
    fn gather(&mut self, frames: &mut Vec<u32>, called: &mut Vec<(u32, u32)>) {
        let alone = self.children.len() as u32;
        let mut at = 0;
        while let Some(&frame) = frames.get(at) {
            at += 1;
            if let Some(stack) = frame.checked_sub(alone) {
                self.shape.stacks.push(stack);
                continue;
            }
            self.shape.stacks.extend(self.measured.stack_at(frame - 1));
            for child in self.children.of_frame(frame) {
                let function = self.function(child);
                match self.folded {
                    Some(folded) if folded.leaves_out(function) => frames.push(child),
                    _ => called.push((function, child)),
                }
            }
        }
    }

    /// Finds the outermost frames. A stack of which nothing would be left keeps one frame.
    fn gather_outermost(&mut self, called: &mut Vec<(u32, u32)>) {
        let alone = self.children.len() as u32;
        if self.measured.has_unknown {
            called.push((0, alone));
        }
        let mut left = vec![Left { id: 0, outermost: None, outermost_method: None }];
        while let Some(above) = left.pop() {
            for child in self.children.of_frame(above.id) {
                let function = self.function(child);
                match self.folded {
                    Some(folded) if folded.leaves_out(function) => {
                        let method = folded.is_method(function).then_some(function);
                        let here = Left {
                            id: child,
                            outermost: above.outermost.or(Some(function)),
                            outermost_method: above.outermost_method.or(method),
                        };
                        if let Some(stack) = self.measured.stack_at(child - 1) {
                            let kept = here.outermost_method.or(here.outermost).unwrap_or(function);
                            called.push((kept, alone + stack));
                        }
                        left.push(here);
                    }
                    _ => called.push((function, child)),
                }
            }
        }
    }

    /// Puts the nodes that frames make below a node before all others that are to come. Empties the list of frames.
    fn plan(&mut self, parent: u32, called: &mut Vec<(u32, u32)>) {
        if called.len() > 1 {
            called.sort_unstable();
        }
        // The last is taken first.
        for node in called.chunk_by(|a, b| a.0 == b.0).rev() {
            self.pending.push(Pending { function: node[0].0, parent, first: self.members.len() });
            self.members.extend(node.iter().map(|(_, frame)| *frame));
        }
        called.clear();
    }

    #[inline]
    fn function(&self, frame: u32) -> u32 {
        match self.measured.table.frame_at(frame as usize - 1) {
            Some(StackFrame::Method { function, .. }) => function,
            _ => 0,
        }
    }
}
