//! A shape made of pieces: a trunk, and the branches that were made apart at its cuts.
//!
//! Where each piece comes to lie is known before any is copied, so all are copied at once.

use std::mem::take;
use std::ops::Range;

use clrscope_recording::parallel::each_mut;

use super::shape::Shape;

/// Place in a trunk at which a branch is to be put: before a node, the caller being the one before, and before a stack.
pub(super) struct Cut {
    pub(super) node: usize,
    pub(super) stack: usize,
    /// The frames that were called, with their functions.
    pub(super) called: Vec<(u32, u32)>,
}

/// Nodes and stacks of a branch in the shape that it was made in.
pub(super) struct Branch {
    pub(super) nodes: Range<usize>,
    pub(super) stacks: Range<usize>,
}

/// A trunk with the branches that were made at its cuts, each in one of the shapes.
pub(super) fn joined(trunk: &Shape, cuts: &[Cut], shapes: &[(Shape, Vec<(usize, Branch)>)]) -> Shape {
    let mut of_cuts: Vec<Option<(&Shape, &Branch)>> = vec![None; cuts.len()];
    for (shape, branches) in shapes {
        branches.iter().for_each(|(at, branch)| of_cuts[*at] = Some((shape, branch)));
    }
    let mut all = Pieces::default();
    // Nodes of branches as far as each cut.
    let mut nodes_until = Vec::with_capacity(cuts.len());
    let (mut node, mut stack, mut inserted) = (0, 0, 0);
    for (cut, branch) in cuts.iter().zip(of_cuts) {
        all.add(trunk, true, node..cut.node, stack..cut.stack);
        (node, stack) = (cut.node, cut.stack);
        if let Some((shape, Branch { nodes, stacks })) = branch {
            all.add(shape, false, nodes.clone(), stacks.clone());
            inserted += nodes.len() as u32;
        }
        nodes_until.push((cut.node as u32, inserted));
    }
    all.add(trunk, true, node..trunk.functions.len(), stack..trunk.stacks.len());
    // A cut behind a subtree's last node is one below that node.
    all.copied(|end| {
        let cuts = nodes_until.partition_point(|(node, _)| *node <= end);
        end + cuts.checked_sub(1).map_or(0, |last| nodes_until[last].1)
    })
}

/// Nodes and stacks of a shape that stand together in it.
struct Piece<'s> {
    shape: &'s Shape,
    is_trunk: bool,
    nodes: Range<usize>,
    stacks: Range<usize>,
}

/// Pieces in their order, with the numbers of their nodes and stacks.
#[derive(Default)]
struct Pieces<'s> {
    pieces: Vec<Piece<'s>>,
    nodes: usize,
    stacks: usize,
}

/// Room for a piece.
struct Room<'r> {
    piece: Piece<'r>,
    /// Number of the piece's first node, and of its first stack.
    node: u32,
    stack: u32,
    functions: &'r mut [u32],
    ends: &'r mut [u32],
    first: &'r mut [u32],
    stacks: &'r mut [u32],
}

impl<'s> Pieces<'s> {
    fn add(&mut self, shape: &'s Shape, is_trunk: bool, nodes: Range<usize>, stacks: Range<usize>) {
        self.nodes += nodes.len();
        self.stacks += stacks.len();
        self.pieces.push(Piece { shape, is_trunk, nodes, stacks });
    }

    /// All of them; `end_of_trunk` says where a subtree of the trunk ends.
    fn copied(self, end_of_trunk: impl Fn(u32) -> u32 + Sync) -> Shape {
        let [mut functions, mut ends, mut first] = [0, 0, 1].map(|more| vec![0; self.nodes + more]);
        let mut stacks = vec![0; self.stacks];
        first[self.nodes] = self.stacks as u32;
        let mut left = (&mut functions[..], &mut ends[..], &mut first[..], &mut stacks[..]);
        let (mut node, mut stack) = (0, 0);
        let room = |piece: Piece<'s>| {
            let (nodes, stacks) = (piece.nodes.len(), piece.stacks.len());
            let (number, first_stack) = (node, stack);
            (node, stack) = (node + nodes as u32, stack + stacks as u32);
            Room {
                piece,
                node: number,
                stack: first_stack,
                functions: cut_off(&mut left.0, nodes),
                ends: cut_off(&mut left.1, nodes),
                first: cut_off(&mut left.2, nodes),
                stacks: cut_off(&mut left.3, stacks),
            }
        };
        let mut rooms: Vec<Room<'_>> = self.pieces.into_iter().map(room).collect();
        each_mut(&mut rooms, |room| room.fill(&end_of_trunk));
        drop(rooms);
        Shape { functions, ends, first, stacks }
    }
}

/// The first items of what is left.
fn cut_off<'r>(left: &mut &'r mut [u32], count: usize) -> &'r mut [u32] {
    let (first, rest) = take(left).split_at_mut(count);
    *left = rest;
    first
}

impl Room<'_> {
    /// Copies the piece.
    fn fill(&mut self, end_of_trunk: impl Fn(u32) -> u32) {
        let Piece { shape, is_trunk, nodes, stacks } = &self.piece;
        self.functions.copy_from_slice(&shape.functions[nodes.clone()]);
        self.stacks.copy_from_slice(&shape.stacks[stacks.clone()]);
        let (first_node, first_stack) = (nodes.start as u32, stacks.start as u32);
        let moved = |end: u32| if *is_trunk { end_of_trunk(end) } else { end - first_node + self.node };
        for (here, &there) in self.ends.iter_mut().zip(&shape.ends[nodes.clone()]) {
            *here = moved(there);
        }
        for (here, &there) in self.first.iter_mut().zip(&shape.first[nodes.clone()]) {
            *here = there - first_stack + self.stack;
        }
    }
}
