//! Pictures of a tree after changes that somebody asked for one after another: functions focused on, merged, dropped, collapsed, the
//! tree upside down. Nothing is left out before a change is made: it is made of every path, and only what is shown of the result is
//! cut by what can be seen.
//!
//! A change turns each path into another one, or leaves it out, function by function from the outermost on ([`changes`]). So all of
//! them take one pass over the nodes in preorder ([`pass`]), which gives a tree whose siblings are still to be merged
//! ([`ChangedTree`]). Those who look at it merge no more than they show: [`upright`] and [`inverted`] go from a set of nodes to the
//! sets of their children or callers, the largest first.

mod changes;
mod functions;
mod inverted;
mod pass;
mod sums;
#[cfg(test)]
mod tests;
mod upright;

use std::sync::{Arc, OnceLock};

pub use changes::PictureChange;
pub use functions::{PictureFunction, PictureFunctions};
pub use sums::{FunctionAmounts, Neighbours};

use crate::forest::Forest;
use crate::stack_trees::StackTree;

/// Amount of a tree's nodes that a picture is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PictureMeasure {
    /// Amount of the metric.
    Metric,
    /// Number of samples.
    Samples,
    /// Wall time of calls.
    Wall,
    /// CPU time of calls.
    Cpu,
    /// Number of calls.
    Calls,
}

/// A row of a picture: nodes come in preorder, of siblings the largest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PictureRow {
    /// 0 for the outermost.
    pub depth: u32,
    /// Number of the function.
    pub function: u32,
    /// The node's own amount; of inverted pictures that of the paths that begin there.
    pub own: u64,
    /// With everything below, also what is too small to be shown.
    pub total: u64,
}

/// Nodes of a tree before any change, in preorder; the first stands for the threads themselves.
enum Nodes {
    /// Made of stacks.
    Stacks {
        tree: Arc<StackTree>,
        /// Numbers of functions by their index in the process.
        numbers: Arc<Vec<u32>>,
        measure: PictureMeasure,
    },
    /// Recorded as calls, with what their hooks cost taken out.
    Calls { functions: Vec<u32>, ends: Vec<u32>, own: Vec<u64> },
}

impl Nodes {
    fn len(&self) -> u32 {
        match self {
            Self::Stacks { tree, .. } => tree.shape.len(),
            Self::Calls { functions, .. } => functions.len() as u32,
        }
    }

    /// Whether there is something at or below each node.
    fn is_whole(&self) -> bool {
        match self {
            Self::Stacks { tree, .. } => tree.amounts.is_of_all(),
            Self::Calls { .. } => true,
        }
    }

    #[inline]
    fn is_there(&self, node: u32) -> bool {
        match self {
            Self::Stacks { tree, .. } => tree.is_there(node),
            Self::Calls { .. } => true,
        }
    }

    #[inline]
    fn end(&self, node: u32) -> u32 {
        match self {
            Self::Stacks { tree, .. } => tree.shape.end(node),
            Self::Calls { ends, .. } => ends[node as usize],
        }
    }

    #[inline]
    fn function(&self, node: u32) -> u32 {
        match self {
            Self::Stacks { tree, numbers, .. } => {
                numbers.get(tree.shape.function(node) as usize).copied().unwrap_or_default()
            }
            Self::Calls { functions, .. } => functions[node as usize],
        }
    }

    #[inline]
    fn own(&self, node: u32) -> u64 {
        match self {
            Self::Stacks { tree, measure, .. } => {
                if tree.shape.at(node).is_empty() {
                    return 0;
                }
                let sum = tree.own(node);
                if *measure == PictureMeasure::Samples { sum.samples } else { sum.amount }
            }
            Self::Calls { own, .. } => own[node as usize],
        }
    }
}

/// Trees of all processes of a forest, ready to be changed.
pub struct Pictures<'a> {
    trees: Vec<Nodes>,
    functions: Arc<PictureFunctions<'a>>,
    /// Functions of which the outermost nodes are the roots; `None` where all are.
    roots: Option<Vec<bool>>,
}

impl<'a> Pictures<'a> {
    /// The trees of a forest whose threads are merged, by a measure.
    #[must_use]
    pub fn of(forest: &Forest<'a>, measure: PictureMeasure) -> Self {
        let mut functions = PictureFunctions::default();
        let parts = forest.picture_trees();
        let mut trees = Vec::new();
        let mut roots: Option<Vec<bool>> = None;
        for part in parts {
            let numbers = functions.add(part.catalog);
            if let Some(wanted) = part.wanted.filter(|_| !forest.is_of_calls()) {
                let roots = roots.get_or_insert_default();
                for (number, wanted) in numbers.iter().zip(wanted) {
                    roots.resize(roots.len().max(*number as usize + 1), false);
                    roots[*number as usize] |= *wanted;
                }
            }
            let indices = 0..part.process.functions.len() as u32;
            let by_index: Arc<Vec<u32>> =
                Arc::new(indices.map(|function| numbers[part.catalog.slot(function) as usize]).collect());
            let of = |tree: &Arc<StackTree>| Nodes::Stacks {
                tree: Arc::clone(tree),
                numbers: Arc::clone(&by_index),
                measure,
            };
            trees.extend(part.trees.into_iter().map(of));
        }
        if forest.is_of_calls() {
            trees.push(calls(forest, measure, &mut functions));
        }
        functions.finish();
        Self { trees, functions: Arc::new(functions), roots }
    }

    /// The functions, by number.
    #[must_use]
    pub fn functions(&self) -> &Arc<PictureFunctions<'a>> {
        &self.functions
    }

    /// The tree after changes, of which the first is made first; with `folds` nameless code is folded into its libraries before.
    #[must_use]
    pub fn changed(&self, changes: &[PictureChange], folds: bool) -> ChangedTree<'a> {
        pass::pass(self, changes, folds)
    }
}

/// The trees of a forest of calls, all processes behind one another.
fn calls<'a>(forest: &Forest<'a>, measure: PictureMeasure, functions: &mut PictureFunctions<'a>) -> Nodes {
    let (mut numbers, mut ends, mut own) = (vec![0_u32], vec![0_u32], vec![0_u64]);
    let mut open: Vec<u32> = Vec::new();
    let walked = forest.walk_again(None, &crate::forest::TreeOptions::default(), |node| {
        let number = numbers.len() as u32;
        while open.len() > node.depth as usize {
            if let Some(last) = open.pop() {
                ends[last as usize] = number;
            }
        }
        open.push(number);
        numbers.push(functions.number(&node.function));
        ends.push(number + 1);
        own.push(match measure {
            PictureMeasure::Calls => node.times.calls,
            PictureMeasure::Cpu => node.times.exclusive_cpu_ns.unwrap_or(0),
            PictureMeasure::Wall => node.times.exclusive_ns,
            PictureMeasure::Metric => node.amount.own,
            PictureMeasure::Samples => node.amount.samples.own,
        });
        Ok::<(), std::convert::Infallible>(())
    });
    let Ok(_) = walked;
    let end = numbers.len() as u32;
    open.iter().for_each(|last| ends[*last as usize] = end);
    ends[0] = end;
    Nodes::Calls { functions: numbers, ends, own }
}

/// A tree after changes: nodes in preorder, of which several siblings may be of one function. Node 0 stands for the threads.
pub struct ChangedTree<'a> {
    functions: Arc<PictureFunctions<'a>>,
    func: Vec<u32>,
    parent: Vec<u32>,
    /// Place of the first amount that is the node's own or of a node behind it; one more entry than nodes.
    first: Vec<u32>,
    /// Nodes that have amounts of their own, in order, and the sums of the amounts before each.
    owners: Vec<u32>,
    before: Vec<u64>,
    ends: OnceLock<Vec<u32>>,
}

impl ChangedTree<'_> {
    /// Number of nodes, that of the threads included.
    #[must_use]
    pub fn size(&self) -> usize {
        self.func.len()
    }

    /// Sum of everything.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.before.last().copied().unwrap_or(0)
    }

    /// One past the last node below each.
    fn ends(&self) -> &[u32] {
        self.ends.get_or_init(|| {
            let mut ends: Vec<u32> = (1..=self.func.len() as u32).collect();
            for node in (1..self.func.len()).rev() {
                let above = self.parent[node] as usize;
                ends[above] = ends[above].max(ends[node]);
            }
            ends
        })
    }

    fn sum(&self, from: u32, to: u32) -> u64 {
        let (from, to) = (self.first[from as usize] as usize, self.first[to as usize] as usize);
        self.before[to] - self.before[from]
    }

    fn own(&self, node: u32) -> u64 {
        self.sum(node, node + 1)
    }
}
