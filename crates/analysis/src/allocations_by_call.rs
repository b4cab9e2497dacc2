//! Allocations in the call trees: the records of `alloc`, joined with the trees of `calls` by path.
//!
//! Stacks of allocations may contain functions that are missing from the trees of `calls`, because
//! they have no hooks. The allocations of such a function are attributed to its caller, as its time
//! is.

use clrscope_recording::model::{Recording, Thread};
use rustc_hash::FxHashMap;

use crate::allocations::{BYTES, OBJECTS};
use crate::catalog::{Catalog, Slot};
use crate::metric::Metric;
use crate::paths::{self, Paths};
use crate::query::{Query, QueryProblem};

/// Objects that the code of a row allocated. Known if `alloc` recorded alongside `calls`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallAllocations {
    /// Bytes that the row allocated itself.
    pub own_bytes: u64,
    /// Bytes allocated by the function and its callees, recursion counted once.
    pub total_bytes: u64,
    /// Objects that the row allocated itself.
    pub own_objects: u64,
    /// Objects allocated by the function and its callees, recursion counted once.
    pub total_objects: u64,
}

/// The trees of one process's allocations.
pub(crate) struct AllocationPaths<'a> {
    bytes: Paths<'a>,
    objects: Paths<'a>,
}

/// Allocations of the processes that a query selects, in the recording's order, for a view of a
/// metric of `calls`. Empty if no allocations were recorded alongside calls.
pub(crate) fn select<'a>(
    recording: &'a Recording,
    query: &Query,
    metric: &Metric,
) -> Result<Vec<AllocationPaths<'a>>, QueryProblem> {
    if !metric.is_of_calls() || !BYTES.is_in(recording) {
        return Ok(Vec::new());
    }
    let bytes = paths::select(recording, query, &BYTES)?.into_iter();
    let objects = paths::select(recording, query, &OBJECTS)?;
    Ok(bytes.zip(objects).map(|(bytes, objects)| AllocationPaths { bytes, objects }).collect())
}

/// The tree of allocations of some threads, merged by path.
#[derive(Default)]
pub(crate) struct AllocationTree {
    /// The first node represents the threads themselves; each other node follows its caller.
    nodes: Vec<Node>,
}

/// One path in the tree.
#[derive(Default)]
struct Node {
    slot: Slot,
    caller: u32,
    callees: Vec<u32>,
    own: Sum,
    total: Sum,
}

/// Bytes and objects.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Sum([u64; 2]);

impl Sum {
    fn add(&mut self, other: Self) {
        self.0.iter_mut().zip(other.0).for_each(|(sum, more)| *sum = sum.saturating_add(more));
    }
}

/// The allocations of a path, and the paths of its callees.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct PathAllocations {
    pub(crate) allocated: CallAllocations,
    /// Functions of the callees, each with the path that ends in it.
    pub(crate) callees: Vec<(Slot, u32)>,
}

impl AllocationTree {
    /// Merges the allocation paths of one thread, or of all threads.
    pub(crate) fn new(of: &AllocationPaths<'_>, thread: Option<&Thread>, catalog: &Catalog<'_>) -> Self {
        let mut nodes = vec![Node::default()];
        let mut known: FxHashMap<(u32, Slot), u32> = FxHashMap::default();
        for (which, paths) in [&of.bytes, &of.objects].into_iter().enumerate() {
            let wanted = |of: Option<&Thread>| thread.is_none_or(|thread| of.is_none_or(|of| std::ptr::eq(of, thread)));
            for thread in paths.threads.iter().filter(|paths| wanted(paths.thread)) {
                let tree = thread.load();
                let mut places = vec![0_u32; tree.len()];
                for node in 1..tree.len() {
                    let caller = places.get(tree.parents()[node] as usize).copied().unwrap_or(0);
                    let slot = catalog.slot(tree.functions()[node]);
                    let at = *known.entry((caller, slot)).or_insert_with(|| {
                        nodes.push(Node { slot, caller, ..Node::default() });
                        nodes.len() as u32 - 1
                    });
                    let own = &mut nodes[at as usize].own.0[which];
                    *own = own.saturating_add(tree.values_of(node as u32).metric);
                    places[node] = at;
                }
            }
        }
        let mut beside = Self { nodes };
        beside.add_up();
        beside
    }

    fn add_up(&mut self) {
        for at in (0..self.nodes.len()).rev() {
            let own = self.nodes[at].own;
            self.nodes[at].total.add(own);
            if at > 0 {
                let (total, caller) = (self.nodes[at].total, self.nodes[at].caller as usize);
                self.nodes[caller].total.add(total);
                self.nodes[caller].callees.push(at as u32);
            }
        }
    }

    /// Path of the threads themselves, from which all other paths begin.
    pub(crate) const ROOT: u32 = 0;

    /// The outermost paths that end in a function that `is_wanted` accepts.
    pub(crate) fn outermost(&self, is_wanted: impl Fn(Slot) -> bool) -> Vec<(Slot, u32)> {
        self.join(&[Self::ROOT], is_wanted).callees
    }

    /// Joins paths to a node whose callees are the functions that `is_callee` accepts. Allocations
    /// of other functions that the paths call count as the node's own.
    pub(crate) fn join(&self, paths: &[u32], is_callee: impl Fn(Slot) -> bool) -> PathAllocations {
        let (mut own, mut total, mut callees) = (Sum::default(), Sum::default(), Vec::new());
        paths.iter().for_each(|&path| total.add(self.nodes[path as usize].total));
        let mut open = paths.to_vec();
        while let Some(path) = open.pop() {
            let node = &self.nodes[path as usize];
            own.add(node.own);
            for &callee in &node.callees {
                match self.nodes[callee as usize].slot {
                    slot if is_callee(slot) => callees.push((slot, callee)),
                    _ => open.push(callee),
                }
            }
        }
        callees.sort_unstable();
        PathAllocations { allocated: allocated(own, total), callees }
    }

    /// Allocations by function, for the functions that `is_called` accepts.
    pub(crate) fn by_function(&self, is_called: impl Fn(Slot) -> bool) -> FxHashMap<Slot, CallAllocations> {
        let mut sums: FxHashMap<Slot, (Sum, Sum)> = FxHashMap::default();
        // Functions that were called, on the path to the node at hand, outermost first; and what is
        // left to do.
        let mut path: Vec<Slot> = Vec::new();
        let mut open = vec![(Self::ROOT, 0_usize)];
        while let Some((at, depth)) = open.pop() {
            path.truncate(depth);
            let node = &self.nodes[at as usize];
            if at != Self::ROOT && is_called(node.slot) {
                if !path.contains(&node.slot) {
                    sums.entry(node.slot).or_default().1.add(node.total);
                }
                path.push(node.slot);
            }
            if let Some(innermost) = path.last() {
                sums.entry(*innermost).or_default().0.add(node.own);
            }
            open.extend(node.callees.iter().map(|&callee| (callee, path.len())));
        }
        sums.into_iter().map(|(slot, (own, total))| (slot, allocated(own, total))).collect()
    }
}

fn allocated(own: Sum, total: Sum) -> CallAllocations {
    let ([own_bytes, own_objects], [total_bytes, total_objects]) = (own.0, total.0);
    CallAllocations { own_bytes, total_bytes, own_objects, total_objects }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds a tree from paths, each with its caller, function and own amount.
    fn beside(paths: &[(u32, Slot, u64)]) -> AllocationTree {
        let node = |&(caller, slot, own): &(u32, Slot, u64)| Node {
            caller,
            slot,
            own: Sum([own * 10, own]),
            ..Node::default()
        };
        let mut beside =
            AllocationTree { nodes: std::iter::once(Node::default()).chain(paths.iter().map(node)).collect() };
        beside.add_up();
        beside
    }

    /// Main calls A. A calls a helper without hooks, which calls B. A also calls itself.
    fn sample() -> AllocationTree {
        let [main, a, helper, b] = [1, 2, 3, 4];
        beside(&[(0, main, 1), (1, a, 2), (2, helper, 4), (3, b, 8), (2, a, 16), (0, helper, 32)])
    }

    fn objects(of: CallAllocations) -> (u64, u64) {
        assert_eq!((of.own_bytes, of.total_bytes), (of.own_objects * 10, of.total_objects * 10));
        (of.own_objects, of.total_objects)
    }

    #[test]
    fn what_functions_without_hooks_allocate_is_their_callers() {
        let sample = sample();
        let root = sample.join(&[AllocationTree::ROOT], |slot| slot != 3);
        assert_eq!((objects(root.allocated), root.callees), ((32, 63), vec![(1, 1)]));
        let a = sample.join(&[2], |slot| slot != 3);
        assert_eq!((objects(a.allocated), a.callees), ((6, 30), vec![(2, 5), (4, 4)]));
        let both = sample.join(&[4, 5], |_| true);
        assert_eq!((objects(both.allocated), both.callees), ((24, 24), vec![]));
        assert_eq!(sample.outermost(|slot| slot == 4), [(4, 4)]);
    }

    #[test]
    fn functions_have_what_they_allocate_and_recursion_counts_once() {
        let found = sample().by_function(|slot| slot != 3);
        let of = |slot| objects(found[&slot]);
        assert_eq!([of(1), of(2), of(4)], [(1, 31), (22, 30), (8, 8)]);
        assert_eq!(found.len(), 3);
    }
}
