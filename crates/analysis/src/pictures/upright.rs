//! Upright pictures: from the outermost functions to their callees.

use super::grouped::by_function;
use super::{ChangedTree, PictureRow, Place};

/// Maximum number of rows of a picture. A path may be 100,000 calls deep, and there may be as many
/// paths as the picture has pixels.
pub(super) const MOST_ROWS: usize = 200_000;

/// Maximum number of nodes that are kept per level. Further nodes are too small to be seen.
pub(super) const MOST_OF_LEVEL: usize = 20_000;

/// The largest nodes of a level. They are the last in `groups`.
pub(super) fn largest<T>(mut groups: Vec<T>) -> Vec<T> {
    groups.drain(..groups.len().saturating_sub(MOST_OF_LEVEL));
    groups
}

/// A node of the merged tree: the range of its members, and their sum.
struct Group {
    function: u32,
    depth: u32,
    total: u64,
    members: Vec<Place>,
}

impl ChangedTree<'_> {
    /// The rows of the merged tree. With empty `places`: the outermost functions, and below them
    /// the nodes with at least `share` of the whole. Otherwise: the node at `places` and all its
    /// callees, and below these the nodes with at least `share` of that node's total. `places`
    /// holds the node's index among the roots, then its index among the children at each level,
    /// small children included. Empty if there is no such node.
    #[must_use]
    pub fn upright(&self, share: f64, places: &[u32]) -> Vec<PictureRow> {
        let mut rows = Vec::new();
        let mut pending = largest(self.children(&[(0, 0)], 0, 1));
        let mut whole = self.total();
        for (depth, place) in (1_u32..).zip(places) {
            let at = pending.len().checked_sub(*place as usize + 1);
            let Some(group) = at.map(|at| pending.swap_remove(at)) else { return rows };
            whole = group.total;
            let is_last = depth as usize == places.len();
            pending = if is_last { vec![Group { depth: 0, ..group }] } else { self.children(&group.members, 0, 1) };
        }
        let least = ((whole as f64 * share).ceil() as u64).max(1);
        while let Some(Group { function, depth, total, members }) = pending.pop() {
            let own = members.iter().map(|node| self.own(*node)).sum();
            rows.push(PictureRow { depth, function, own, total });
            if rows.len() >= MOST_ROWS {
                break;
            }
            // The selected node shows all its callees.
            let is_looked_at = depth == 0 && !places.is_empty();
            if total > own && (total >= least || is_looked_at) {
                let least = if is_looked_at { 1 } else { least };
                pending.append(&mut largest(self.children(&members, depth + 1, least)));
            }
        }
        rows
    }

    /// Calls `visit` with the callees of a node and their functions.
    #[inline]
    pub(super) fn each_called(&self, (run, node): Place, mut visit: impl FnMut(u32, Place)) {
        if node < self.last(run) {
            return visit(self.func[node as usize + 1], (run, node + 1));
        }
        let ends = self.ends();
        let (mut child, end) = (run + 1, ends[run as usize]);
        while child < end {
            let node = self.starts[child as usize];
            visit(self.func[node as usize], (child, node));
            child = ends[child as usize];
        }
    }

    /// The children of the nodes, merged by function and ordered from the smallest. Children with
    /// less than `least` are left out. `nodes` must be in order.
    fn children(&self, nodes: &[Place], depth: u32, least: u64) -> Vec<Group> {
        let mut found: Vec<(u32, Place)> = Vec::new();
        nodes.iter().for_each(|node| self.each_called(*node, |function, place| found.push((function, place))));
        let found = by_function(found, self.functions.list().len());
        let groups = found.chunk_by(|a, b| a.0 == b.0).filter_map(|members| {
            let total = members.iter().map(|(_, (run, _))| self.sum(*run)).fold(0, u64::saturating_add);
            let is_there = total >= least.max(1);
            is_there.then(|| {
                let function = members[0].0;
                Group { function, depth, total, members: members.iter().map(|(_, place)| *place).collect() }
            })
        });
        let mut groups: Vec<Group> = groups.collect();
        let rank = |group: &Group| self.functions.rank(group.function);
        groups.sort_unstable_by(|a, b| a.total.cmp(&b.total).then_with(|| rank(b).cmp(&rank(a))));
        groups
    }
}
