//! Assembles paths from pieces: a trunk, and branches that were built separately and belong at its
//! cuts.
//!
//! The position of each piece is known before any is copied, so all pieces are copied in parallel.

use std::mem::take;
use std::ops::Range;

use clrscope_recording::parallel::each_mut;

use super::shape::GrownPaths;
use crate::runs::Runs;

/// Place in a trunk where a branch is inserted: the run and the stack before which the branch
/// comes. The run before the cut is the caller.
pub(super) struct Cut {
    pub(super) run: usize,
    pub(super) stack: usize,
    /// The frames that were called, with their functions.
    pub(super) called: Vec<(u32, u32)>,
}

/// Position of a branch's runs and stacks in the paths that it was built in.
pub(super) struct Branch {
    pub(super) runs: Range<usize>,
    pub(super) stacks: Range<usize>,
}

/// Returns the trunk with the branches inserted at its cuts. Each branch lies in one of `others`.
pub(super) fn splice(trunk: &GrownPaths, cuts: &[Cut], others: &[(GrownPaths, Vec<(usize, Branch)>)]) -> GrownPaths {
    let mut of_cuts: Vec<Option<(&GrownPaths, &Branch)>> = vec![None; cuts.len()];
    for (grown, branches) in others {
        branches.iter().for_each(|(at, branch)| of_cuts[*at] = Some((grown, branch)));
    }
    let mut all = Pieces::default();
    // Number of the branches' runs before each cut.
    let mut runs_until = Vec::with_capacity(cuts.len());
    let (mut run, mut stack, mut inserted) = (0, 0, 0);
    for (cut, branch) in cuts.iter().zip(of_cuts) {
        all.add(trunk, true, run..cut.run, stack..cut.stack);
        (run, stack) = (cut.run, cut.stack);
        if let Some((grown, Branch { runs, stacks })) = branch {
            all.add(grown, false, runs.clone(), stacks.clone());
            inserted += runs.len() as u32;
        }
        runs_until.push((cut.run as u32, inserted));
    }
    all.add(trunk, true, run..trunk.runs.len() as usize, stack..trunk.stacks.len());
    // A cut right after a subtree's last run lies below that run.
    all.copied(|end| {
        let cuts = runs_until.partition_point(|(run, _)| *run <= end);
        end + cuts.checked_sub(1).map_or(0, |last| runs_until[last].1)
    })
}

/// Consecutive runs and stacks.
struct Piece<'s> {
    grown: &'s GrownPaths,
    is_trunk: bool,
    runs: Range<usize>,
    stacks: Range<usize>,
}

impl Piece<'_> {
    fn nodes(&self) -> Range<usize> {
        let starts = &self.grown.runs.starts;
        starts[self.runs.start] as usize..starts[self.runs.end] as usize
    }
}

/// The pieces in order, with the total numbers of nodes, runs and stacks.
#[derive(Default)]
struct Pieces<'s> {
    pieces: Vec<Piece<'s>>,
    nodes: usize,
    runs: usize,
    stacks: usize,
}

/// Output buffers for a piece.
struct Room<'r> {
    piece: Piece<'r>,
    /// Number of the piece's first node, of its first run, and of its first stack.
    node: u32,
    run: u32,
    stack: u32,
    functions: &'r mut [u32],
    starts: &'r mut [u32],
    ends: &'r mut [u32],
    first: &'r mut [u32],
    stacks: &'r mut [u32],
}

impl<'s> Pieces<'s> {
    fn add(&mut self, grown: &'s GrownPaths, is_trunk: bool, runs: Range<usize>, stacks: Range<usize>) {
        let piece = Piece { grown, is_trunk, runs, stacks };
        self.nodes += piece.nodes().len();
        self.runs += piece.runs.len();
        self.stacks += piece.stacks.len();
        self.pieces.push(piece);
    }

    /// Copies all pieces. `end_of_trunk` returns where a subtree of the trunk ends.
    fn copied(self, end_of_trunk: impl Fn(u32) -> u32 + Sync) -> GrownPaths {
        let [mut functions, mut stacks] = [self.nodes, self.stacks].map(|count| vec![0; count]);
        let [mut starts, mut ends, mut first] = [1, 0, 1].map(|more| vec![0; self.runs + more]);
        starts[self.runs] = self.nodes as u32;
        first[self.runs] = self.stacks as u32;
        let mut left = (&mut functions[..], &mut starts[..], &mut ends[..], &mut first[..], &mut stacks[..]);
        let (mut node, mut run, mut stack) = (0, 0, 0);
        let room = |piece: Piece<'s>| {
            let (nodes, runs, stacks) = (piece.nodes().len(), piece.runs.len(), piece.stacks.len());
            let (first_node, first_run, first_stack) = (node, run, stack);
            (node, run, stack) = (node + nodes as u32, run + runs as u32, stack + stacks as u32);
            Room {
                piece,
                node: first_node,
                run: first_run,
                stack: first_stack,
                functions: cut_off(&mut left.0, nodes),
                starts: cut_off(&mut left.1, runs),
                ends: cut_off(&mut left.2, runs),
                first: cut_off(&mut left.3, runs),
                stacks: cut_off(&mut left.4, stacks),
            }
        };
        let mut rooms: Vec<Room<'_>> = self.pieces.into_iter().map(room).collect();
        each_mut(&mut rooms, |room| room.fill(&end_of_trunk));
        drop(rooms);
        GrownPaths { runs: Runs { functions, starts, ends }, first, stacks }
    }
}

/// Splits off the first items of the remaining slice.
fn cut_off<'r>(left: &mut &'r mut [u32], count: usize) -> &'r mut [u32] {
    let (first, rest) = take(left).split_at_mut(count);
    *left = rest;
    first
}

impl Room<'_> {
    /// Copies the piece.
    fn fill(&mut self, end_of_trunk: impl Fn(u32) -> u32) {
        let nodes = self.piece.nodes();
        let Piece { grown, is_trunk, runs, stacks } = &self.piece;
        self.functions.copy_from_slice(&grown.runs.functions[nodes.clone()]);
        self.stacks.copy_from_slice(&grown.stacks[stacks.clone()]);
        let moved = |here: &mut [u32], there: &[u32], from: usize, to: u32| {
            here.iter_mut().zip(there).for_each(|(here, there)| *here = there - from as u32 + to);
        };
        moved(self.starts, &grown.runs.starts[runs.clone()], nodes.start, self.node);
        moved(self.first, &grown.first[runs.clone()], stacks.start, self.stack);
        let ends = &grown.runs.ends[runs.clone()];
        if *is_trunk {
            self.ends.iter_mut().zip(ends).for_each(|(here, there)| *here = end_of_trunk(*there));
        } else {
            moved(self.ends, ends, runs.start, self.run);
        }
    }
}
