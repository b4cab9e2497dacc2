//! Sums over one thread's tree. They take two passes in preorder, and memory for only the path and
//! the keys.
//!
//! Sums are grouped by a key: a function's slot for `functions`, an edge for `callers`. A node is
//! outermost when no node with the same key lies above it on its path.
//!
//! The first pass counts calls and hooks by function, which shows how much of the hooks' cost fits
//! into each function's time. The second pass computes inclusive times by key. Both are bound by
//! memory access, so the data that they touch for each node is kept small.

mod count;
mod pass;

use clrscope_recording::model::{CallTree, NodeValues};

use crate::catalog::{Catalog, Role, Slot, SlotRole};
use crate::cost::{Cost, Hooks};
use count::{Counter, Counts};
use pass::{Cell, OpenNode};

/// Key of a node that belongs to no sum.
pub(crate) const NO_KEY: u32 = u32::MAX;

/// Sums of one key in one thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Sums {
    pub(crate) calls: u64,
    pub(crate) hooks: Hooks,
    pub(crate) own: NodeValues,
    /// Time of suspensions that are direct children.
    pub(crate) suspended_ns: u64,
    /// Whole subtrees of outermost nodes.
    pub(crate) inclusive: NodeValues,
    /// Modelled cost of the hooks in these subtrees. It is limited to what fits into each
    /// function's time.
    pub(crate) inclusive_cost_ns: u64,
    pub(crate) max_recursion: u32,
}

/// Assigns keys to nodes.
pub(crate) trait Keys {
    /// Whether keys are slots. Then the counts of the first pass by slot can be reused, and a
    /// node's cell can be fetched before its caller is known.
    const ARE_SLOTS: bool;
    /// The key of a node of `callee` below a node of `caller`.
    fn key(&mut self, caller: Slot, callee: Slot) -> u32;
    /// The key of the thread itself.
    fn root_key(&self) -> u32;
    /// The function whose calls the calls of a key are.
    fn callee(&self, key: u32) -> Slot;
}

/// Uses the function's slot as key.
pub(crate) struct ByFunction {
    pub(crate) root: Slot,
}

impl Keys for ByFunction {
    const ARE_SLOTS: bool = true;

    #[inline]
    fn key(&mut self, _caller: Slot, callee: Slot) -> u32 {
        callee
    }

    fn root_key(&self) -> u32 {
        self.root
    }

    fn callee(&self, key: u32) -> Slot {
        key
    }
}

/// Slot of a function and the cost of its leave hook, fetched together for each node.
#[derive(Debug, Clone, Copy)]
struct HookedFunction {
    /// Cost of each call's leave hook.
    leave_ns: f64,
    place: SlotRole,
}

/// Sums that few nodes have; kept apart from the cells, which every node touches.
#[derive(Debug, Clone, Copy, Default)]
struct Rare {
    own: NodeValues,
    suspended_ns: u64,
}

/// Reusable memory for summing thread after thread of one process.
#[derive(Default)]
pub(crate) struct Summer {
    counter: Counter,
    /// By function index of the recording.
    known: Vec<HookedFunction>,
    /// By slot: cost of the enter hook of a callee.
    enter_ns: Vec<f64>,
    /// By key, as are the fields below.
    cells: Vec<Cell>,
    rare: Vec<Rare>,
    counts: Vec<Counts>,
    touched: Vec<u32>,
    path: Vec<OpenNode>,
}

/// Result of summing a tree.
pub(crate) struct TreeSums<'s, K> {
    summer: &'s Summer,
    catalog: &'s Catalog<'s>,
    keys: &'s K,
    /// Deepest path in calls of functions.
    pub(crate) max_depth: u32,
}

impl<K: Keys> TreeSums<'_, K> {
    /// The keys that occur, in ascending order, with their sums.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (u32, Sums)> {
        self.summer.touched.iter().map(|&key| (key, self.sums(key)))
    }

    /// The function whose calls the calls of a key are.
    pub(crate) fn callee(&self, key: u32) -> Slot {
        self.keys.callee(key)
    }

    fn sums(&self, key: u32) -> Sums {
        let (at, summer) = (key as usize, self.summer);
        let (cell, rare) = (&summer.cells[at], &summer.rare[at]);
        let counts = if K::ARE_SLOTS { summer.counter.counts(key) } else { summer.counts[at] };
        let hooked = self.catalog.role(self.keys.callee(key)) == Role::Managed;
        Sums {
            calls: counts.calls,
            hooks: Hooks { enters: counts.enters, leaves: if hooked { counts.calls } else { 0 } },
            own: rare.own,
            suspended_ns: rare.suspended_ns,
            inclusive: NodeValues { metric: cell.metric, cpu_ns: cell.cpu_ns },
            inclusive_cost_ns: cell.cost_ns.round() as u64,
            max_recursion: cell.max_open,
        }
    }
}

impl Summer {
    /// Sums `tree`. Renumbers it first if it is not in depth-first preorder.
    pub(crate) fn sum<'s, K: Keys>(
        &'s mut self,
        tree: &mut CallTree,
        catalog: &'s Catalog<'_>,
        cost: &Cost,
        keys: &'s mut K,
    ) -> TreeSums<'s, K> {
        self.counter.count(tree, catalog);
        self.fit(tree, catalog, cost);
        self.forget();
        let mut max_depth = self.pass(tree, catalog, keys);
        if max_depth.is_none() {
            *tree = tree.in_preorder().into_owned();
            self.forget();
            max_depth = self.pass(tree, catalog, keys);
        }
        let max_depth = max_depth.unwrap_or(0);
        self.touched.sort_unstable();
        TreeSums { summer: self, catalog, keys, max_depth }
    }

    /// Clears only the entries that the previous tree used, so that a thread with ten nodes does
    /// not pay for a hundred thousand functions.
    fn forget(&mut self) {
        for key in self.touched.drain(..) {
            self.cells[key as usize] = Cell::default();
            self.rare[key as usize] = Rare::default();
            self.counts[key as usize] = Counts::default();
        }
        self.path.clear();
    }

    /// Scales the cost of hooks, function by function, to the part that fits into the function's
    /// measured time. A sampled tree has time on few of its nodes, so only sums over a function can
    /// be compared.
    fn fit(&mut self, tree: &CallTree, catalog: &Catalog<'_>, cost: &Cost) {
        let fits = self.counter.fits(tree, catalog, cost);
        self.known.clear();
        self.known.extend(catalog.slot_roles().iter().map(|&place| HookedFunction {
            leave_ns: if place.role == Role::Managed {
                cost.leave_ns(place.slot) * fits[place.slot as usize]
            } else {
                0.0
            },
            place,
        }));
        self.enter_ns.clear();
        self.enter_ns.extend((0..).zip(fits).map(|(slot, fit)| cost.enter_ns(slot) * fit));
    }
}
