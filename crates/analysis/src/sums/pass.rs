//! The second pass: inclusive times, recursion and all other sums by key.

use clrscope_recording::model::{CallTree, NodeValues, ROOT};

use super::count::Counts;
use super::{HookedFunction, Keys, NO_KEY, Rare, Summer};
use crate::catalog::{Catalog, NO_FUNCTION, Role, SlotRole};

/// Sums that each node of a key updates. `max_open` is 0 until the first node.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Cell {
    /// Sums over the subtrees of outermost nodes.
    pub(super) metric: u64,
    pub(super) cpu_ns: u64,
    pub(super) cost_ns: f64,
    /// Nodes of this key on the path.
    open: u32,
    pub(super) max_open: u32,
}

/// A node on the path that has children.
#[derive(Debug, Clone, Copy)]
pub(super) struct OpenNode {
    node: u32,
    key: u32,
    place: SlotRole,
    /// Number of function calls on the path, including this node's.
    depth: u32,
    /// Cost of entering a callee.
    enter_ns: f64,
    /// Number of hooked calls that the node has made so far.
    enters: u64,
    /// The running sums when the node was entered.
    before: Running,
}

/// Sums over all nodes so far; their differences are sums over subtrees.
#[derive(Debug, Clone, Copy, Default)]
struct Running {
    metric: u64,
    cpu_ns: u64,
    cost_ns: f64,
}

impl Running {
    #[inline]
    fn add(&mut self, values: NodeValues) {
        self.metric = self.metric.saturating_add(values.metric);
        self.cpu_ns = self.cpu_ns.saturating_add(values.cpu_ns);
    }
}

/// Number of nodes that are looked up together.
const AHEAD: usize = 64;

/// Functions of the next nodes, looked up together.
struct Ahead {
    start: u32,
    end: u32,
    nodes: [HookedFunction; AHEAD],
}

impl Ahead {
    const EMPTY: Self = Self { start: 0, end: 0, nodes: [HookedFunction { leave_ns: 0.0, place: NO_FUNCTION }; AHEAD] };

    #[inline]
    fn function_of_node(&self, node: u32) -> HookedFunction {
        self.nodes[(node - self.start) as usize % AHEAD]
    }
}

impl Summer {
    /// Computes sums by key, and returns the largest number of function calls on a path. `None` if
    /// a node's parent is not on the path to the previous node.
    pub(super) fn pass<K: Keys>(&mut self, tree: &CallTree, catalog: &Catalog<'_>, keys: &mut K) -> Option<u32> {
        if tree.is_empty() {
            return Some(0);
        }
        let mut now = Running::default();
        let mut max_depth = 0;
        let mut with_values = tree.values().iter().peekable();
        let mut values_of = |node: u32| with_values.next_if(|t| t.0 == node).map_or(NodeValues::default(), |t| t.1);
        if K::ARE_SLOTS {
            self.grow(catalog.root());
        }
        self.enter_root(catalog, keys.root_key(), values_of(ROOT), &mut now);
        let parents = tree.parents();
        let mut ahead = Ahead::EMPTY;
        for (node, (&parent, calls)) in (0..).zip(parents.iter().zip(tree.calls_in_order())).skip(1) {
            if node >= ahead.end {
                self.look_ahead::<K>(&mut ahead, node, tree);
            }
            let HookedFunction { leave_ns, place } = ahead.function_of_node(node);
            self.climb(parent, &now);
            let values = values_of(node);
            let caller = self.path.last_mut().filter(|caller| caller.node == parent)?;
            let key = keys.key(caller.place.slot, place.slot);
            let hooked_calls = if place.role == Role::Managed { calls } else { 0 };
            let depth = caller.depth + u32::from(place.role.is_call());
            max_depth = max_depth.max(depth);
            if !K::ARE_SLOTS {
                caller.enters = caller.enters.saturating_add(hooked_calls);
            }
            // The enter hook's cost is the caller's and lies outside this subtree.
            now.cost_ns += hooked_calls as f64 * caller.enter_ns;
            let before = now;
            now.cost_ns += hooked_calls as f64 * leave_ns;
            now.add(values);
            if place.role == Role::Suspended && caller.place.role != Role::Suspended && caller.key != NO_KEY {
                let rare = &mut self.rare[caller.key as usize];
                rare.suspended_ns = rare.suspended_ns.saturating_add(values.metric);
            }
            if key != NO_KEY {
                self.open::<K>(key, calls, values);
            }
            let mut frame = OpenNode { node, key, place, depth, enter_ns: 0.0, enters: 0, before };
            // Most nodes have no children and need not lie on the path.
            if parents.get(node as usize + 1) == Some(&node) {
                frame.enter_ns = self.enter_ns[place.slot as usize];
                self.path.push(frame);
            } else {
                self.close(&frame, &now);
            }
        }
        while let Some(frame) = self.path.pop() {
            self.close(&frame, &now);
        }
        Some(max_depth)
    }

    fn enter_root(&mut self, catalog: &Catalog<'_>, key: u32, values: NodeValues, now: &mut Running) {
        let place = SlotRole { slot: catalog.root(), role: Role::Unhooked };
        if key != NO_KEY {
            self.open::<super::ByFunction>(key, 0, values);
        }
        let enter_ns = self.enter_ns[place.slot as usize];
        self.path.push(OpenNode { node: ROOT, key, place, depth: 0, enter_ns, enters: 0, before: *now });
        now.add(values);
    }

    /// Looks up the functions and cells of the next nodes together. One at a time, each node would
    /// wait for memory.
    fn look_ahead<K: Keys>(&self, ahead: &mut Ahead, from: u32, tree: &CallTree) {
        let functions = tree.functions().iter().skip(from as usize);
        let mut fetched = 0;
        for (known, &function) in ahead.nodes.iter_mut().zip(functions) {
            *known = self
                .known
                .get(function as usize)
                .copied()
                .unwrap_or(HookedFunction { leave_ns: 0.0, place: NO_FUNCTION });
            if K::ARE_SLOTS {
                fetched |= self.cells[known.place.slot as usize].max_open;
            }
        }
        std::hint::black_box(fetched);
        ahead.start = from;
        ahead.end = from.saturating_add(AHEAD as u32);
    }

    /// Leaves every frame above `parent`.
    #[inline]
    fn climb(&mut self, parent: u32, now: &Running) {
        while let Some(frame) = self.path.pop_if(|top| top.node > parent) {
            self.close(&frame, now);
        }
    }

    #[inline]
    fn open<K: Keys>(&mut self, key: u32, calls: u64, values: NodeValues) {
        let at = key as usize;
        if at >= self.cells.len() {
            self.grow(key);
        }
        let cell = &mut self.cells[at];
        if cell.max_open == 0 {
            self.touched.push(key);
        }
        cell.open += 1;
        cell.max_open = cell.max_open.max(cell.open);
        if !K::ARE_SLOTS {
            let counts = &mut self.counts[at];
            counts.calls = counts.calls.saturating_add(calls);
        }
        if values != NodeValues::default() {
            let own = &mut self.rare[at].own;
            own.metric = own.metric.saturating_add(values.metric);
            own.cpu_ns = own.cpu_ns.saturating_add(values.cpu_ns);
        }
    }

    /// Makes room for a key.
    #[cold]
    fn grow(&mut self, key: u32) {
        let enough = (key as usize + 1).next_power_of_two().max(self.cells.len());
        self.cells.resize(enough, Cell::default());
        self.rare.resize(enough, Rare::default());
        self.counts.resize(enough, Counts::default());
    }

    #[inline]
    fn close(&mut self, frame: &OpenNode, now: &Running) {
        if frame.key == NO_KEY {
            return;
        }
        if frame.enters > 0 {
            let counts = &mut self.counts[frame.key as usize];
            counts.enters = counts.enters.saturating_add(frame.enters);
        }
        let cell = &mut self.cells[frame.key as usize];
        cell.open -= 1;
        if cell.open == 0 {
            cell.metric += now.metric - frame.before.metric;
            cell.cpu_ns += now.cpu_ns - frame.before.cpu_ns;
            cell.cost_ns += now.cost_ns - frame.before.cost_ns;
        }
    }
}
