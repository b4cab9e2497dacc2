//! Builds shapes: frames of the stack table become nodes in depth-first order, on all processors.

use std::sync::Arc;

use clrscope_recording::model::{Process, StackFrame};
use clrscope_recording::parallel::fold;

use super::children::Children;
use super::shape::{GrownPaths, Shape};
use super::splice::{Branch, Cut, splice};
use crate::metric::Metric;
use crate::metric_events::{MetricEvents, name_of};
use crate::runs::GrowingRuns;
use crate::samples::{FoldedFunctions, NO_CALLER};

impl Shape {
    /// Builds the paths of the events of a process, without the frames that are folded into their
    /// callers; `folds` names the set of folded frames.
    pub(crate) fn build(
        process: &Process,
        metric: &'static Metric,
        measured: &MetricEvents,
        folded: Option<&FoldedFunctions>,
        folds: &'static str,
    ) -> Arc<Self> {
        process.derived.get(&Self::name(metric, folds), || Self::made(measured, folded, BRANCHINGS))
    }

    /// Name of the paths among the cached data of a process.
    fn name(metric: &Metric, folds: &str) -> String {
        format!("{}{folds}", name_of(metric))
    }

    /// Whether the paths of the events of a process already exist.
    pub(crate) fn is_made(process: &Process, metric: &Metric, folds: &str) -> bool {
        process.derived.has::<Self>(&Self::name(metric, folds))
    }

    /// Builds the paths. Parts below `branchings` branchings are built on all processors.
    pub(super) fn made(measured: &MetricEvents, folded: Option<&FoldedFunctions>, branchings: usize) -> Self {
        let children = Children::new(measured);
        let mut trunk = ShapeBuilder::new(measured, folded, &children, branchings);
        trunk.grow(|making, called| making.gather_outermost(called));
        let cuts = std::mem::take(&mut trunk.cuts);
        let new = || (ShapeBuilder::new(measured, folded, &children, usize::MAX), Vec::new());
        let grown = fold(cuts.len(), new, |(making, branches), at| {
            let (run, stack) = (making.runs.len(), making.stacks.len());
            making.grow(|_, called| called.extend_from_slice(&cuts[at].called));
            // Without the run that stands for the caller.
            let runs = run as usize + 1..making.runs.len() as usize;
            branches.push((at, Branch { runs, stacks: stack..making.stacks.len() }));
        });
        let branches: Vec<(GrownPaths, Vec<(usize, Branch)>)> =
            grown.into_iter().map(|(making, branches)| (making.finish(), branches)).collect();
        let trunk = trunk.finish();
        drop(children);
        Self::new(splice(&trunk, &cuts, &branches))
    }
}

/// Number of branchings on a path after which the paths below are left to other workers.
const BRANCHINGS: usize = 5;
/// Largest number of cuts.
const MOST_CUTS: usize = 1 << 14;

/// A run to be built; its first members are at the end of the list of all members, from `first` on.
struct Pending {
    function: u32,
    parent: u32,
    /// Branchings above.
    branchings: usize,
    first: usize,
}

/// A frame whose path has no kept frame yet, and the path's replacement if no frame is kept.
struct PendingFrame {
    id: u32,
    outermost: Option<u32>,
    outermost_method: Option<u32>,
}

/// Builder of a shape. A frame is identified by its place in the stack table, from 1; 0 is the
/// root. Separate stacks have numbers after all places.
pub(super) struct ShapeBuilder<'m> {
    measured: &'m MetricEvents,
    folded: Option<&'m FoldedFunctions>,
    children: &'m Children,
    /// Number of branchings on a path after which the path is cut.
    most: usize,
    cuts: Vec<Cut>,
    /// Runs to be built, the next one last, and the frames that the first node of each is made of.
    pending: Vec<Pending>,
    members: Vec<u32>,
    runs: GrowingRuns,
    /// For each run, the place of the first stack that ends at the run or after it.
    first: Vec<u32>,
    pub(super) stacks: Vec<u32>,
}

impl<'m> ShapeBuilder<'m> {
    pub(super) fn new(
        measured: &'m MetricEvents,
        folded: Option<&'m FoldedFunctions>,
        children: &'m Children,
        most: usize,
    ) -> Self {
        let (cuts, pending, members) = (Vec::new(), Vec::new(), Vec::new());
        let (runs, first, stacks) = (GrowingRuns::default(), Vec::new(), Vec::new());
        Self { measured, folded, children, most, cuts, pending, members, runs, first, stacks }
    }

    /// Adds a node without a function and the subtree below it, which starts with the frames that
    /// `gather` finds, with their functions.
    fn grow(&mut self, gather: impl FnOnce(&mut Self, &mut Vec<(u32, u32)>)) {
        let (mut called, mut of_node) = (Vec::new(), Vec::new());
        let root = self.begin(0, 0);
        gather(self, &mut called);
        self.plan(root, 0, &mut called);
        while let Some(Pending { function, parent, branchings, first }) = self.pending.pop() {
            of_node.clear();
            of_node.extend(self.members.drain(first..));
            let run = self.begin(function, parent);
            self.follow(function, &mut of_node, &mut called);
            self.plan(run, branchings, &mut called);
        }
        self.runs.end();
    }

    /// Extends the current run, which began with some frames of a function, as long as the frames
    /// call a single function and no stack ends at them. Finds the callees of the last frames.
    fn follow(&mut self, mut function: u32, frames: &mut Vec<u32>, called: &mut Vec<(u32, u32)>) {
        loop {
            while let &mut [frame] = &mut frames[..]
                && let Some(next) = self.children.only(frame)
            {
                if let Some(shown) = self.shown(function, self.function(next)) {
                    self.runs.extend(shown);
                    function = shown;
                }
                frames[0] = next;
            }
            let stacks = self.stacks.len();
            self.gather(function, frames, called);
            let Some(&(only, _)) = called.first() else { return };
            if self.stacks.len() > stacks || called.iter().any(|(function, _)| *function != only) {
                return;
            }
            self.runs.extend(only);
            function = only;
            frames.clear();
            frames.extend(called.drain(..).map(|(_, frame)| frame));
        }
    }

    /// Returns the built paths.
    pub(super) fn finish(mut self) -> GrownPaths {
        self.first.push(self.stacks.len() as u32);
        GrownPaths { runs: self.runs.finish(), first: self.first, stacks: self.stacks }
    }

    /// Begins a run below another with its first node.
    pub(super) fn begin(&mut self, function: u32, parent: u32) -> u32 {
        self.first.push(self.stacks.len() as u32);
        self.runs.begin(function, parent)
    }

    /// Adds the stacks that end at the frames of a node, or at frames below that are folded into
    /// the node, and finds the frames that these called.
    pub(super) fn gather(&mut self, node: u32, frames: &mut Vec<u32>, called: &mut Vec<(u32, u32)>) {
        let alone = self.children.len() as u32;
        let mut at = 0;
        while let Some(&frame) = frames.get(at) {
            at += 1;
            if let Some(stack) = frame.checked_sub(alone) {
                self.stacks.push(stack);
                continue;
            }
            self.stacks.extend(self.measured.stack_at(frame - 1));
            for child in self.children.of_frame(frame) {
                match self.shown(node, self.function(child)) {
                    Some(shown) => called.push((shown, child)),
                    None => frames.push(child),
                }
            }
        }
    }

    /// Finds the outermost frames. A stack that would lose all its frames keeps one.
    pub(super) fn gather_outermost(&mut self, called: &mut Vec<(u32, u32)>) {
        let alone = self.children.len() as u32;
        if self.measured.has_unknown {
            called.push((0, alone));
        }
        let mut left = vec![PendingFrame { id: 0, outermost: None, outermost_method: None }];
        while let Some(above) = left.pop() {
            for child in self.children.of_frame(above.id) {
                let function = self.function(child);
                match (self.folded, self.shown(NO_CALLER, function)) {
                    (Some(folded), None) => {
                        let method = folded.is_method(function).then_some(function);
                        let here = PendingFrame {
                            id: child,
                            outermost: above.outermost.or(Some(function)),
                            outermost_method: above.outermost_method.or(method),
                        };
                        if let Some(stack) = self.measured.stack_at(child - 1) {
                            let kept = here.outermost_method.or(here.outermost).unwrap_or(function);
                            called.push((folded.alone(kept), alone + stack));
                        }
                        left.push(here);
                    }
                    (_, shown) => called.push((shown.unwrap_or(function), child)),
                }
            }
        }
    }

    /// Schedules the children of a node before all other pending nodes, or leaves them to other
    /// workers. Empties the list of frames.
    fn plan(&mut self, parent: u32, branchings: usize, called: &mut Vec<(u32, u32)>) {
        if branchings >= self.most && self.cuts.len() < MOST_CUTS && !called.is_empty() {
            let (run, stack) = (self.runs.len() as usize, self.stacks.len());
            return self.cuts.push(Cut { run, stack, called: std::mem::take(called) });
        }
        if called.len() > 1 {
            called.sort_unstable();
        }
        let branchings = branchings.saturating_add(1);
        // The last pending run is taken first.
        for node in called.chunk_by(|a, b| a.0 == b.0).rev() {
            self.pending.push(Pending { function: node[0].0, parent, branchings, first: self.members.len() });
            self.members.extend(node.iter().map(|(_, frame)| *frame));
        }
        called.clear();
    }

    /// The function that represents a frame below a node; `None` if the frame is folded into the
    /// node.
    #[inline]
    fn shown(&self, node: u32, function: u32) -> Option<u32> {
        self.folded.map_or(Some(function), |folded| folded.frame(node, function))
    }

    #[inline]
    fn function(&self, frame: u32) -> u32 {
        match self.measured.table.frame_at(frame as usize - 1) {
            Some(StackFrame::Method { function, .. }) => function,
            _ => 0,
        }
    }
}
