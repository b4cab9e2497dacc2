//! Sums over one thread's tree: two passes in preorder, memory for the path and the keys only.
//!
//! What is summed by is a key: a function's slot for `functions`, an edge for `callers`. A node is
//! outermost when no node of the same key lies above it on its path.

use clrscope_recording::model::{CallTree, NodeTime, ROOT};

use crate::catalog::{Catalog, Role, Slot};
use crate::cost::{Cost, Hooks};

/// A node whose key is this belongs to nobody.
pub(crate) const NO_KEY: u32 = u32::MAX;

/// What one key has in one thread.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Sums {
    pub(crate) calls: u64,
    pub(crate) hooks: Hooks,
    pub(crate) own: NodeTime,
    /// Time of suspensions right below.
    pub(crate) suspended_ns: u64,
    /// Whole subtrees of outermost nodes.
    pub(crate) inclusive: NodeTime,
    /// Modelled cost of the hooks in these subtrees, as far as it fits into each function's time.
    pub(crate) inclusive_cost_ns: u64,
    pub(crate) max_recursion: u32,
}

/// Gives nodes their keys.
pub(crate) trait Keys {
    /// The key of a node with this function below a node with that one.
    fn key(&mut self, caller: Slot, callee: Slot) -> u32;
    /// The key of the thread itself.
    fn root_key(&self) -> u32;
}

/// The key is the function.
pub(crate) struct ByFunction {
    pub(crate) root: Slot,
}

impl Keys for ByFunction {
    #[inline]
    fn key(&mut self, _caller: Slot, callee: Slot) -> u32 {
        callee
    }

    fn root_key(&self) -> u32 {
        self.root
    }
}

/// One key's accumulator; it means something only in the round it was last touched in, so that a
/// thread of ten nodes does not pay for a hundred thousand functions.
#[derive(Debug, Clone, Copy, Default)]
struct Cell {
    sums: Sums,
    open: u32,
    round: u32,
}

/// A node on the path.
#[derive(Debug, Clone, Copy)]
struct Frame {
    node: u32,
    key: u32,
    slot: Slot,
    /// Calls of functions on the path, itself included.
    depth: u32,
    /// The running sums when it was entered.
    before: Running,
}

/// Sums over everything passed so far; differences of them are sums over subtrees.
#[derive(Debug, Clone, Copy, Default)]
struct Running {
    wall_ns: u64,
    cpu_ns: u64,
    cost_ns: f64,
}

/// What is known of a function before inclusive times can be compensated.
#[derive(Debug, Clone, Copy, Default)]
struct Own {
    hooks: Hooks,
    wall_ns: u64,
}

/// Reusable memory for summing thread after thread of one process.
#[derive(Default)]
pub(crate) struct Summer {
    cells: Vec<Cell>,
    touched: Vec<u32>,
    round: u32,
    path: Vec<Frame>,
    own: Vec<Own>,
    /// Cost of a leave on, and of an enter charged to, each function.
    leave_ns: Vec<f64>,
    enter_ns: Vec<f64>,
}

/// What summing a tree gave.
pub(crate) struct Summed<'s> {
    cells: &'s [Cell],
    touched: &'s [u32],
    /// Deepest path in calls of functions.
    pub(crate) max_depth: u32,
}

impl Summed<'_> {
    /// The keys that occur, in ascending order, with their sums.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (u32, Sums)> {
        self.touched.iter().map(|&key| (key, self.cells[key as usize].sums))
    }
}

impl Summer {
    /// Sums `tree`, which must be in depth-first preorder.
    pub(crate) fn sum<K: Keys>(
        &mut self,
        tree: &CallTree,
        catalog: &Catalog<'_>,
        cost: &Cost,
        keys: &mut K,
    ) -> Summed<'_> {
        self.start_round();
        self.fit_costs(tree, catalog, cost);
        let max_depth = if tree.is_empty() { 0 } else { self.pass(tree, catalog, keys) };
        self.touched.sort_unstable();
        Summed { cells: &self.cells, touched: &self.touched, max_depth }
    }

    fn start_round(&mut self) {
        self.touched.clear();
        self.path.clear();
        self.round = self.round.wrapping_add(1);
        if self.round == 0 {
            self.cells.clear();
            self.round = 1;
        }
    }

    /// Finds, function by function, how much of the modelled cost fits into the measured time: a
    /// sampled tree has time on few of its nodes, so only sums over a function can be compared.
    fn fit_costs(&mut self, tree: &CallTree, catalog: &Catalog<'_>, cost: &Cost) {
        let slots = catalog.len() + 1;
        self.leave_ns.clear();
        self.leave_ns.resize(slots, 0.0);
        self.enter_ns.clear();
        self.enter_ns.resize(slots, 0.0);
        if cost.is_zero() {
            return;
        }
        self.own.clear();
        self.own.resize(slots, Own::default());
        let slot_of = |node: u32| slot_of(tree, catalog, node);
        for node in 1..tree.len() as u32 {
            let slot = slot_of(node);
            if catalog.role(slot) == Role::Managed {
                let calls = tree.calls(node);
                let caller = slot_of(tree.parents()[node as usize]);
                self.own[slot as usize].hooks.add_leaves(calls);
                self.own[caller as usize].hooks.add_enters(calls);
            }
        }
        for &(node, time) in tree.times() {
            if (node as usize) < tree.len() {
                let own = &mut self.own[slot_of(node) as usize];
                own.wall_ns = own.wall_ns.saturating_add(time.wall_ns);
            }
        }
        for (slot, own) in self.own.iter().enumerate() {
            let fit = cost.fit(own.hooks, own.wall_ns);
            self.leave_ns[slot] = cost.leave_ns() * fit;
            self.enter_ns[slot] = cost.enter_ns() * fit;
        }
    }

    fn pass<K: Keys>(&mut self, tree: &CallTree, catalog: &Catalog<'_>, keys: &mut K) -> u32 {
        let mut now = Running::default();
        let mut max_depth = 0;
        let mut times = tree.times().iter().peekable();
        let mut time_of = |node: u32| times.next_if(|t| t.0 == node).map_or(NodeTime::default(), |t| t.1);
        self.enter_root(catalog.root(), keys.root_key(), time_of(ROOT), &mut now);
        for node in 1..tree.len() as u32 {
            let parent = self.climb(tree.parents()[node as usize], &now);
            let slot = catalog.slot(tree.functions()[node as usize]);
            let role = catalog.role(slot);
            let key = keys.key(parent.slot, slot);
            let calls = tree.calls(node);
            let managed_calls = if role == Role::Managed { calls } else { 0 };
            let time = time_of(node);
            // The enter hook's cost is the caller's and lies outside this subtree.
            now.cost_ns += managed_calls as f64 * self.enter_ns[parent.slot as usize];
            let depth = parent.depth + u32::from(role.is_call());
            max_depth = max_depth.max(depth);
            if parent.key != NO_KEY {
                let sums = &mut self.cells[parent.key as usize].sums;
                sums.hooks.add_enters(managed_calls);
                if role == Role::Suspended && catalog.role(parent.slot) != Role::Suspended {
                    sums.suspended_ns = sums.suspended_ns.saturating_add(time.wall_ns);
                }
            }
            if key != NO_KEY {
                self.open(key, calls, managed_calls, time);
            }
            self.path.push(Frame { node, key, slot, depth, before: now });
            now.cost_ns += managed_calls as f64 * self.leave_ns[slot as usize];
            now.add(time);
        }
        while let Some(frame) = self.path.pop() {
            self.close(frame, &now);
        }
        max_depth
    }

    fn enter_root(&mut self, slot: Slot, key: u32, time: NodeTime, now: &mut Running) {
        if key != NO_KEY {
            self.open(key, 0, 0, time);
        }
        self.path.push(Frame { node: ROOT, key, slot, depth: 0, before: *now });
        now.add(time);
    }

    /// Leaves every frame above `parent` and returns its frame; the root is never left.
    #[inline]
    fn climb(&mut self, parent: u32, now: &Running) -> Frame {
        loop {
            let top = self.path[self.path.len() - 1];
            if top.node <= parent || self.path.len() == 1 {
                return top;
            }
            self.path.pop();
            self.close(top, now);
        }
    }

    #[inline]
    fn open(&mut self, key: u32, calls: u64, leaves: u64, time: NodeTime) {
        let at = key as usize;
        if at >= self.cells.len() {
            self.cells.resize((at + 1).next_power_of_two(), Cell::default());
        }
        let cell = &mut self.cells[at];
        if cell.round != self.round {
            *cell = Cell { round: self.round, ..Cell::default() };
            self.touched.push(key);
        }
        cell.open += 1;
        let sums = &mut cell.sums;
        sums.calls = sums.calls.saturating_add(calls);
        sums.hooks.add_leaves(leaves);
        sums.own.wall_ns = sums.own.wall_ns.saturating_add(time.wall_ns);
        sums.own.cpu_ns = sums.own.cpu_ns.saturating_add(time.cpu_ns);
        sums.max_recursion = sums.max_recursion.max(cell.open);
    }

    #[inline]
    fn close(&mut self, frame: Frame, now: &Running) {
        if frame.key == NO_KEY {
            return;
        }
        let cell = &mut self.cells[frame.key as usize];
        cell.open -= 1;
        if cell.open == 0 {
            let sums = &mut cell.sums;
            sums.inclusive.wall_ns += now.wall_ns - frame.before.wall_ns;
            sums.inclusive.cpu_ns += now.cpu_ns - frame.before.cpu_ns;
            sums.inclusive_cost_ns += (now.cost_ns - frame.before.cost_ns).round() as u64;
        }
    }
}

impl Running {
    #[inline]
    fn add(&mut self, time: NodeTime) {
        self.wall_ns = self.wall_ns.saturating_add(time.wall_ns);
        self.cpu_ns = self.cpu_ns.saturating_add(time.cpu_ns);
    }
}

/// The slot of a node; the thread's own for the root.
#[inline]
fn slot_of(tree: &CallTree, catalog: &Catalog<'_>, node: u32) -> Slot {
    if node == ROOT { catalog.root() } else { catalog.slot(tree.functions()[node as usize]) }
}
