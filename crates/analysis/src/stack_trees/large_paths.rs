//! Finds only the large paths, for a first chart. Of tens of millions of frames, only a few
//! thousand are wide enough to be visible.
//!
//! Building the whole tree visits each frame in an order that is slow for memory. Here one
//! sequential pass over the table computes each frame's total, and only large frames are followed.
//! A small frame becomes a node without children.

use super::amounts::{Amounts, StackSum, SummedStacks};
use super::children::Children;
use super::shape_builder::ShapeBuilder;
use super::{Arc, Shape, StackTree};
use crate::catalog::Slot;

/// Totals of frames, callees included: all frames of a run have the same total.
struct Totals<'s> {
    stacks: &'s SummedStacks,
    /// By number of the run.
    of_runs: Vec<StackSum>,
    /// The runs that have events, with their stacks and callers; callers come last.
    runs: Vec<(u32, Option<u32>, u32)>,
}

impl<'s> Totals<'s> {
    /// Returns the totals, and the frames that each frame called.
    fn with_children(stacks: &'s SummedStacks, with_states: bool) -> (Self, Children) {
        let mut of_runs: Vec<StackSum> = Vec::new();
        let mut runs = Vec::new();
        let children = Children::with(&stacks.measured, |run, stack, caller| {
            // The last run comes first.
            of_runs.resize(of_runs.len().max(run as usize + 1), StackSum::default());
            let total = &mut of_runs[run as usize];
            total.add(stack.map_or_else(StackSum::default, |stack| stacks.of_stack(stack)));
            let total = *total;
            of_runs[caller as usize].add(total);
            if with_states {
                runs.push((run, stack, caller));
            }
        });
        of_runs.resize(children.runs(), StackSum::default());
        (Self { stacks, of_runs, runs }, children)
    }

    /// Total of a frame, or of a separate stack: separate stacks have numbers after all frames.
    fn total(&self, frame: u32, children: &Children) -> StackSum {
        match frame.checked_sub(children.len() as u32) {
            Some(stack) => self.stacks.of_stack(stack),
            None => self.of_runs[children.run_of(frame)],
        }
    }
}

/// A frame that is to be part of a node: the slot of its function, the function, and its number.
type Member = (Slot, u32, u32);

/// A node to be created; its members are at the end of the list of all members, from `first` on.
struct Pending {
    parent: u32,
    first: usize,
    total: StackSum,
}

/// The tree of some stacks. It has every node with at least `least_share` of the whole, and all
/// callees of such nodes. Smaller nodes have no children. Callees of one node with the same slot
/// are merged into one node. With `with_states`, the tree also knows the stacks of its small nodes.
pub(crate) fn large_paths(
    stacks: &SummedStacks,
    least_share: f64,
    with_states: bool,
    slot: impl Fn(u32) -> Slot,
) -> StackTree {
    let (totals, children) = Totals::with_children(stacks, with_states);
    // Half of the share: the code that shows nodes rounds in another way, and no node that may be
    // shown must be cut.
    let least = (stacks.whole().amount as f64 * least_share / 2.0) as u64;
    let making = ShapeBuilder::new(&stacks.measured, stacks.folded.as_ref(), &children, usize::MAX);
    let (pending, members, lumps) = (Vec::new(), Vec::new(), Vec::new());
    let children = &children;
    let lump_of_run = vec![0; if with_states { children.runs() } else { 0 }];
    let lump_of_stack = vec![0; if with_states { stacks.measured.stacks() } else { 0 }];
    let mut climbing = Climbing { totals, children, slot, making, pending, members, lumps, lump_of_run, lump_of_stack };
    climbing.climb(least);
    let Climbing { making, lumps, totals, mut lump_of_run, mut lump_of_stack, .. } = climbing;
    for (run, stack, caller) in totals.runs.iter().rev() {
        // The callees of a small node are part of it.
        if lump_of_run[*run as usize] == 0 {
            lump_of_run[*run as usize] = lump_of_run[*caller as usize];
        }
        if let Some(stack) = stack.filter(|_| lump_of_run[*run as usize] != 0) {
            lump_of_stack[stack as usize] = lump_of_run[*run as usize];
        }
    }
    let shape = Shape::new(making.finish());
    let amounts = Amounts::with(stacks, &shape, &lumps);
    StackTree { shape: Arc::new(shape), amounts, lumps: lump_of_stack }
}

/// Builder of a tree of large paths.
struct Climbing<'s, S> {
    totals: Totals<'s>,
    children: &'s Children,
    slot: S,
    making: ShapeBuilder<'s>,
    /// Nodes to be created, the next one last, and the frames that each is made of.
    pending: Vec<Pending>,
    members: Vec<Member>,
    /// Sums of small nodes. Each small node has a stack of its own, numbered after the events'
    /// stacks.
    lumps: Vec<StackSum>,
    /// The stack of the small node that a run is in; 0 for none.
    lump_of_run: Vec<u32>,
    /// The stack of the small node that a separate stack is in; 0 for none.
    lump_of_stack: Vec<u32>,
}

impl<S: Fn(u32) -> Slot> Climbing<'_, S> {
    /// Creates the nodes; nodes with an amount below `least` are small.
    fn climb(&mut self, least: u64) {
        let mut called = Vec::new();
        let root = self.making.begin(0, 0);
        self.making.gather_outermost(&mut called);
        self.plan(root, &mut called);
        while let Some(Pending { parent, first, total }) = self.pending.pop() {
            let of_node: Vec<Member> = self.members.drain(first..).collect();
            let node = self.making.begin(of_node[0].1, parent);
            if total.amount < least {
                let stack = self.totals.stacks.measured.stacks() + self.lumps.len();
                self.making.stacks.push(stack as u32);
                self.lumps.push(total);
                if !self.lump_of_run.is_empty() {
                    self.note_lump(&of_node, stack as u32);
                }
                continue;
            }
            for of_function in of_node.chunk_by(|a, b| a.1 == b.1) {
                let mut frames: Vec<u32> = of_function.iter().map(|member| member.2).collect();
                self.making.gather(of_function[0].1, &mut frames, &mut called);
            }
            self.plan(node, &mut called);
        }
    }

    /// Notes the frames that a small node is made of.
    fn note_lump(&mut self, members: &[Member], lump: u32) {
        for (.., frame) in members {
            match frame.checked_sub(self.children.len() as u32) {
                Some(stack) => self.lump_of_stack[stack as usize] = lump,
                None => self.lump_of_run[self.children.run_of(*frame)] = lump,
            }
        }
    }

    /// Schedules the children of a node, made of the called frames, before all other pending nodes.
    /// Empties the list of frames.
    fn plan(&mut self, parent: u32, called: &mut Vec<(u32, u32)>) {
        let member = |(function, frame)| ((self.slot)(function), function, frame);
        let mut found: Vec<Member> = called.drain(..).map(member).collect();
        found.sort_unstable();
        // The last pending node is taken first.
        for node in found.chunk_by(|a, b| a.0 == b.0).rev() {
            let mut total = StackSum::default();
            node.iter().for_each(|(.., frame)| total.add(self.totals.total(*frame, self.children)));
            if total != StackSum::default() {
                self.pending.push(Pending { parent, first: self.members.len(), total });
                self.members.extend_from_slice(node);
            }
        }
    }
}
