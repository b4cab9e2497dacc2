//! Pictures of a tree after a sequence of changes: focus on functions, merge, drop or collapse
//! them, invert the tree. Every change applies to all paths. Only the final result is reduced to
//! what is visible.
//!
//! A change maps each path to another path or removes it, function by function from the outermost
//! on ([`changes`]). So all changes together take one pass over the nodes in preorder ([`pass`]),
//! by runs of nodes that don't branch. The result is a tree whose siblings are not merged yet
//! ([`ChangedTree`]). Viewers merge only the part that they show: [`upright`] and [`inverted`] go
//! from a set of nodes to the sets of their children or callers, the largest first.

mod changes;
mod functions;
mod grouped;
mod inverted;
mod pass;
mod states;
mod sums;
#[cfg(test)]
mod tests;
mod upright;

use std::sync::{Arc, OnceLock};

pub use changes::PictureChange;
pub use functions::{PictureFunction, PictureFunctions};
pub use sums::{FunctionAmounts, Neighbours};

use crate::forest::Forest;
use crate::runs::{GrowingRuns, Runs};
use crate::stack_trees::{InOrder, Shape, StackTree, StateAmounts};
use crate::waits::TimeState;

/// The amount that determines the sizes of a picture's nodes.
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

/// A row of a picture. Rows come in preorder; among siblings the largest comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PictureRow {
    /// Depth of the row; 0 for the outermost function.
    pub depth: u32,
    /// Number of the function.
    pub function: u32,
    /// The node's own amount. In inverted pictures, the amount of the paths that begin at the node.
    pub own: u64,
    /// Amount including everything below the node, also nodes that are too small to be shown.
    pub total: u64,
}

/// Nodes of a tree before any change; the first run represents the threads themselves.
enum Nodes {
    /// A tree built from stacks.
    Stacks {
        tree: Arc<StackTree>,
        /// Numbers of functions by their index in the process.
        numbers: Arc<Vec<u32>>,
        measure: PictureMeasure,
        /// Amounts by state; `None` if states are not known.
        states: Option<Arc<StateAmounts>>,
    },
    /// A tree recorded as calls, without the cost of hooks: amounts of runs.
    Calls { runs: Runs, own: Vec<u64> },
}

/// Own amounts of runs, read in the order of runs.
enum OwnInOrder<'n> {
    Stacks { shape: &'n Shape, amounts: InOrder<'n>, measure: PictureMeasure },
    Calls(&'n [u64]),
}

impl OwnInOrder<'_> {
    /// The amount of the next run; `None` if neither the run nor its callees have an amount.
    #[inline]
    fn next(&mut self, run: u32) -> Option<u64> {
        match self {
            Self::Stacks { shape, amounts, measure } => {
                let sum = amounts.next(shape.at_run(run), shape.below_run(run).end)?;
                Some(if *measure == PictureMeasure::Samples { sum.samples } else { sum.amount })
            }
            Self::Calls(own) => Some(own[run as usize]),
        }
    }
}

impl Nodes {
    fn runs(&self) -> &Runs {
        match self {
            Self::Stacks { tree, .. } => tree.shape.runs(),
            Self::Calls { runs, .. } => runs,
        }
    }

    fn amounts(&self) -> OwnInOrder<'_> {
        match self {
            Self::Stacks { tree, measure, .. } => {
                let (shape, amounts) = (&*tree.shape, InOrder::new(&tree.amounts));
                OwnInOrder::Stacks { shape, amounts, measure: *measure }
            }
            Self::Calls { own, .. } => OwnInOrder::Calls(own),
        }
    }

    /// Adds the functions of a run to a list.
    #[inline]
    fn functions(&self, run: u32, all: &mut Vec<u32>) {
        let functions = self.runs().functions_of_run(run);
        match self {
            Self::Stacks { numbers, .. } => {
                all.extend(functions.iter().map(|index| numbers.get(*index as usize).copied().unwrap_or_default()));
            }
            Self::Calls { .. } => all.extend_from_slice(functions),
        }
    }
}

/// Trees of all processes of a forest, prepared for changes.
pub struct Pictures<'a> {
    trees: Vec<Nodes>,
    functions: Arc<PictureFunctions<'a>>,
    /// Functions whose outermost nodes are the roots; `None` if all functions count.
    roots: Option<Vec<bool>>,
}

impl<'a> Pictures<'a> {
    /// Creates the trees of a forest by a measure. Threads are merged.
    #[must_use]
    pub fn new(forest: &Forest<'a>, measure: PictureMeasure) -> Self {
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
            let indices = 0..part.catalog.slot_roles().len() as u32;
            let by_index: Arc<Vec<u32>> =
                Arc::new(indices.map(|function| numbers[part.catalog.slot(function) as usize]).collect());
            for (at, tree) in part.trees.into_iter().enumerate() {
                let states = part.states.get(at).filter(|_| measure == PictureMeasure::Metric).map(Arc::clone);
                let (tree, numbers) = (Arc::clone(tree), Arc::clone(&by_index));
                trees.push(Nodes::Stacks { tree, numbers, measure, states });
            }
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

    /// The tree after the changes, which are applied in this order. If `folds` is true, code
    /// without symbols is first folded into its libraries.
    #[must_use]
    pub fn changed(&self, changes: &[PictureChange], folds: bool) -> ChangedTree<'a> {
        pass::pass(self, changes, folds)
    }
}

/// The trees of a forest of calls, the processes one after another.
fn calls<'a>(forest: &Forest<'a>, measure: PictureMeasure, functions: &mut PictureFunctions<'a>) -> Nodes {
    let mut growing = GrowingRuns::default();
    let mut own = vec![0_u64];
    // Runs above, and whether the last node is all that its run calls, and has nothing of its own.
    let (mut open, mut goes_on) = (vec![growing.begin(0, 0)], false);
    let walked = forest.walk_again(None, &crate::forest::TreeOptions::default(), |node| {
        let number = functions.number(&node.function);
        let depth = node.depth as usize + 1;
        let parent = open[depth.min(open.len()) - 1];
        open.truncate(depth);
        if goes_on {
            growing.extend(number);
            open.push(parent);
        } else {
            open.push(growing.begin(number, parent));
            own.push(0);
        }
        let amount = match measure {
            PictureMeasure::Calls => node.times.calls,
            PictureMeasure::Cpu => node.times.exclusive_cpu_ns.unwrap_or(0),
            PictureMeasure::Wall => node.times.exclusive_ns,
            PictureMeasure::Metric => node.amount.own,
            PictureMeasure::Samples => node.amount.samples.own,
        };
        if let Some(own) = own.last_mut() {
            *own = amount;
        }
        goes_on = node.children == 1 && amount == 0;
        Ok::<(), std::convert::Infallible>(())
    });
    let Ok(_) = walked;
    Nodes::Calls { runs: growing.finish(), own }
}

/// A tree after changes: nodes in preorder, in runs. Several siblings may have the same function.
/// Run 0 represents the threads.
pub struct ChangedTree<'a> {
    functions: Arc<PictureFunctions<'a>>,
    /// Functions of the nodes.
    func: Vec<u32>,
    /// First node of each run; the last entry is the number of nodes.
    starts: Vec<u32>,
    /// For each run, the run that calls it; the threads call the outermost runs.
    parents: Vec<u32>,
    /// Sum of the amounts of all runs before each run; the last entry is the total.
    before: Vec<u64>,
    ends: OnceLock<Vec<u32>>,
    /// By state, the sums of the amounts before each run, and the total; empty if states are not
    /// known.
    states: Vec<(TimeState, Vec<u64>)>,
}

/// A node of a changed tree: the run and the node.
type Place = (u32, u32);

impl ChangedTree<'_> {
    /// Number of nodes, including the node of the threads.
    #[must_use]
    pub fn size(&self) -> usize {
        self.func.len()
    }

    /// Sum over the whole tree.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.before.last().copied().unwrap_or(0)
    }

    fn runs(&self) -> u32 {
        self.parents.len() as u32
    }

    /// Returns the functions of the nodes of a run, the outermost first.
    #[inline]
    fn functions_of_run(&self, run: u32) -> &[u32] {
        &self.func[self.starts[run as usize] as usize..self.starts[run as usize + 1] as usize]
    }

    /// The function that calls the last function of a run; `None` if threads call it.
    fn caller_of_last(&self, run: u32) -> Option<u32> {
        let above = self.parents[run as usize];
        match *self.functions_of_run(run) {
            [.., caller, _] => Some(caller),
            _ => (above != 0).then(|| self.func[self.last(above) as usize]),
        }
    }

    /// The last node of a run.
    #[inline]
    fn last(&self, run: u32) -> u32 {
        self.starts[run as usize + 1] - 1
    }

    /// For each run, the number after the last run below it.
    fn ends(&self) -> &[u32] {
        self.ends.get_or_init(|| {
            let mut ends: Vec<u32> = (1..=self.runs()).collect();
            for run in (1..ends.len()).rev() {
                let above = self.parents[run] as usize;
                ends[above] = ends[above].max(ends[run]);
            }
            ends
        })
    }

    /// A run's own amount, which belongs to its last node.
    #[inline]
    fn own_of_run(&self, run: u32) -> u64 {
        self.before[run as usize + 1] - self.before[run as usize]
    }

    /// Amount of a run and everything below it; it is the same for each node of the run.
    #[inline]
    fn sum(&self, run: u32) -> u64 {
        self.before[self.ends()[run as usize] as usize] - self.before[run as usize]
    }

    #[inline]
    fn own(&self, (run, node): Place) -> u64 {
        if node == self.last(run) { self.own_of_run(run) } else { 0 }
    }
}
