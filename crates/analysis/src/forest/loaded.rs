//! One tree, prepared for sums over any subtree.
//!
//! In depth-first order a subtree is a range of node numbers. Sums over such ranges of recorded
//! trees are computed from running sums. The running sums are kept only at every 16th node, so they
//! cost two bytes per node.

use std::sync::Arc;

use clrscope_recording::model::{CallTree, NodeValues, ROOT};

use crate::catalog::{Catalog, Role, Slot};
use crate::stack_trees::{StackSum, StackTree};

/// Nodes between two checkpoints.
const BLOCK: u32 = 16;

/// Cost of hooks in each function's time, by slot, scaled so that it fits into that time.
pub(super) struct FittedCosts {
    pub(super) leave_ns: Vec<f64>,
    pub(super) enter_ns: Vec<f64>,
}

/// Sums over a subtree or over all nodes before a node.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RangeSums {
    pub(super) values: NodeValues,
    pub(super) cost_ns: f64,
}

impl RangeSums {
    pub(super) fn add(&mut self, other: &Self) {
        self.values = add_values(self.values, other.values);
        self.cost_ns += other.cost_ns;
    }

    fn since(&self, before: &Self) -> Self {
        Self {
            values: NodeValues {
                metric: self.values.metric.saturating_sub(before.values.metric),
                cpu_ns: self.values.cpu_ns.saturating_sub(before.values.cpu_ns),
            },
            cost_ns: self.cost_ns - before.cost_ns,
        }
    }
}

/// Sums over all nodes before a node.
#[derive(Debug, Clone, Copy, Default)]
struct Checkpoint {
    before: RangeSums,
    /// Index of the first entry of the tree's times at or after the node.
    next_values: usize,
}

/// A tree in depth-first preorder.
pub(super) enum LoadedTree {
    /// A tree that was recorded.
    Calls(DecodedTree),
    /// A tree built from stacks.
    Stacks(Arc<StackTree>),
}

impl LoadedTree {
    /// Number of nodes, the root included.
    pub(super) fn len(&self) -> u32 {
        match self {
            Self::Calls(decoded) => decoded.tree.len() as u32,
            Self::Stacks(tree) => tree.shape.len(),
        }
    }

    /// Whether the node or any node below it has values.
    #[inline]
    pub(super) fn is_there(&self, node: u32) -> bool {
        match self {
            Self::Calls(_) => true,
            Self::Stacks(tree) => tree.is_there(node),
        }
    }

    /// The slot of a node; for the root, the slot of the thread itself.
    #[inline]
    pub(super) fn slot(&self, node: u32, catalog: &Catalog<'_>) -> Slot {
        match self {
            Self::Calls(decoded) => decoded.slot(node, catalog),
            Self::Stacks(_) if node == ROOT => catalog.root(),
            Self::Stacks(tree) => catalog.slot(tree.shape.function(node)),
        }
    }

    /// The number after the last node below `node`.
    #[inline]
    pub(super) fn end(&self, node: u32) -> u32 {
        match self {
            Self::Calls(decoded) => decoded.end(node),
            Self::Stacks(tree) => tree.shape.end(node),
        }
    }

    /// Number of calls along the path of a node.
    pub(super) fn calls(&self, node: u32) -> u64 {
        match self {
            Self::Calls(decoded) => decoded.tree.calls(node),
            Self::Stacks(_) => 0,
        }
    }

    /// A node's own values. The field for CPU time in trees of `calls` holds the number of samples
    /// in trees of stacks.
    pub(super) fn own(&self, node: u32) -> NodeValues {
        match self {
            Self::Calls(decoded) => decoded.tree.values_of(node),
            Self::Stacks(tree) => values(tree.own(node)),
        }
    }

    /// Whether the path of a node was first entered by a tail call.
    pub(super) fn is_by_tail_call(&self, node: u32) -> bool {
        match self {
            Self::Calls(decoded) => decoded.tree.flags(node).by_tail_call,
            Self::Stacks(_) => false,
        }
    }

    /// Sums over the subtree of `node`, without the cost of entering it.
    pub(super) fn subtree(&self, node: u32, catalog: &Catalog<'_>, costs: &FittedCosts) -> RangeSums {
        match self {
            Self::Calls(decoded) => decoded.subtree(node, catalog, costs),
            Self::Stacks(tree) => RangeSums { values: values(tree.subtree(node)), cost_ns: 0.0 },
        }
    }
}

fn values(sum: StackSum) -> NodeValues {
    NodeValues { metric: sum.amount, cpu_ns: sum.samples }
}

/// A recorded tree.
pub(super) struct DecodedTree {
    tree: CallTree,
    /// For each node, the number after the last node of its subtree.
    ends: Vec<u32>,
    checkpoints: Vec<Checkpoint>,
}

impl DecodedTree {
    /// Prepares a tree that is in depth-first preorder.
    pub(super) fn new(tree: CallTree) -> Self {
        let mut ends: Vec<u32> = (1..=tree.len() as u32).collect();
        for node in (1..tree.len()).rev() {
            let parent = tree.parents()[node] as usize;
            ends[parent] = ends[parent].max(ends[node]);
        }
        Self { tree, ends, checkpoints: Vec::new() }
    }

    /// Computes the sums at each checkpoint. Must be called before [`Self::subtree`].
    pub(super) fn set_costs(&mut self, catalog: &Catalog<'_>, costs: &FittedCosts) {
        self.checkpoints.clear();
        self.checkpoints.reserve_exact(self.tree.len() / BLOCK as usize + 1);
        let mut at = Checkpoint::default();
        let nodes = self.tree.parents().iter().zip(self.tree.functions()).zip(self.tree.calls_in_order());
        for (node, ((&parent, &function), calls)) in (0..).zip(nodes) {
            if node % BLOCK == 0 {
                self.checkpoints.push(at);
            }
            self.add_values_of(&mut at, node);
            let place = catalog.slot_role(function);
            if place.role == Role::Managed && node != ROOT {
                let enter_ns = costs.enter_ns[self.slot(parent, catalog) as usize];
                at.before.cost_ns += calls as f64 * (costs.leave_ns[place.slot as usize] + enter_ns);
            }
        }
    }

    /// Adds the time of one node to the running sums, if it has any.
    #[inline]
    fn add_values_of(&self, at: &mut Checkpoint, node: u32) {
        if let Some(&(_, values)) = self.tree.values().get(at.next_values).filter(|t| t.0 == node) {
            at.before.values = add_values(at.before.values, values);
            at.next_values += 1;
        }
    }

    /// Adds one node to the running sums.
    #[inline]
    fn pass(&self, at: &mut Checkpoint, node: u32, catalog: &Catalog<'_>, costs: &FittedCosts) {
        self.add_values_of(at, node);
        let slot = self.slot(node, catalog);
        if catalog.role(slot) == Role::Managed {
            let parent = self.slot(self.tree.parents()[node as usize], catalog);
            let cost_ns = costs.leave_ns[slot as usize] + costs.enter_ns[parent as usize];
            at.before.cost_ns += self.tree.calls(node) as f64 * cost_ns;
        }
    }

    /// Cost of entering a managed node. It is a part of the parent's time.
    #[inline]
    fn enter_cost(&self, node: u32, calls: f64, catalog: &Catalog<'_>, costs: &FittedCosts) -> f64 {
        let parent = self.slot(self.tree.parents()[node as usize], catalog);
        calls * costs.enter_ns[parent as usize]
    }

    /// The slot of a node; for the root, the slot of the thread itself.
    #[inline]
    fn slot(&self, node: u32, catalog: &Catalog<'_>) -> Slot {
        if node == ROOT { catalog.root() } else { catalog.slot(self.tree.functions()[node as usize]) }
    }

    /// The number after the last node below `node`.
    #[inline]
    fn end(&self, node: u32) -> u32 {
        self.ends[node as usize]
    }

    /// Sums over the subtree of `node`, without the cost of entering it.
    fn subtree(&self, node: u32, catalog: &Catalog<'_>, costs: &FittedCosts) -> RangeSums {
        let (start, end) = (node, self.end(node));
        let before = self.before(start, catalog, costs);
        let mut sums = if end - start <= BLOCK {
            let mut at = before;
            (start..end).for_each(|n| self.pass(&mut at, n, catalog, costs));
            at.before.since(&before.before)
        } else {
            self.before(end, catalog, costs).before.since(&before.before)
        };
        if node != ROOT && catalog.role(self.slot(node, catalog)) == Role::Managed {
            sums.cost_ns -= self.enter_cost(node, self.tree.calls(node) as f64, catalog, costs);
        }
        sums
    }

    fn before(&self, node: u32, catalog: &Catalog<'_>, costs: &FittedCosts) -> Checkpoint {
        // A tree that ends with a full block has no checkpoint after it.
        let block = (node / BLOCK).min(self.checkpoints.len().saturating_sub(1) as u32);
        let mut at = self.checkpoints.get(block as usize).copied().unwrap_or_default();
        (block * BLOCK..node).for_each(|n| self.pass(&mut at, n, catalog, costs));
        at
    }
}

pub(super) fn add_values(a: NodeValues, b: NodeValues) -> NodeValues {
    NodeValues { metric: a.metric.saturating_add(b.metric), cpu_ns: a.cpu_ns.saturating_add(b.cpu_ns) }
}
