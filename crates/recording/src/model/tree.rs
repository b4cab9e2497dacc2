//! The calling-context tree of one thread.
//!
//! Nodes are numbered in preorder: a parent always has a smaller number than its children, so one
//! backward pass sums over subtrees, without recursion. Readers return depth-first preorder, in
//! which a subtree is a range of numbers; the analysis renumbers other trees.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, OnceLock};

use super::Problem;

/// The number of the root node, which represents the thread itself.
pub const ROOT: u32 = 0;

/// Source of a thread's tree; the tree can be decoded repeatedly and one thread at a time, so that
/// the trees of a large recording are never all in memory.
#[derive(Clone)]
pub struct TreeSource(Arc<Decoding>);

struct Decoding {
    decode: Box<Decode>,
    problem: OnceLock<Problem>,
}

/// Decodes as much of a tree as is readable, and returns the problem with the rest.
type Decode = dyn Fn() -> (CallTree, Option<Problem>) + Send + Sync;

impl TreeSource {
    /// A tree that `decode` decodes at each request.
    pub fn lazy(decode: impl Fn() -> CallTree + Send + Sync + 'static) -> Self {
        Self::fallible(move || (decode(), None))
    }

    /// A tree that `decode` decodes at each request, as far as it is readable;
    /// [`problem`](Self::problem) describes the unreadable rest.
    pub(crate) fn fallible(decode: impl Fn() -> (CallTree, Option<Problem>) + Send + Sync + 'static) -> Self {
        Self(Arc::new(Decoding { decode: Box::new(decode), problem: OnceLock::new() }))
    }

    /// A tree that is already decoded.
    #[must_use]
    pub fn ready(tree: CallTree) -> Self {
        let tree = Arc::new(tree);
        Self::lazy(move || CallTree::clone(&tree))
    }

    /// Decodes the tree. Each call decodes it again, so call this once and drop the tree after use.
    #[must_use]
    pub fn load(&self) -> CallTree {
        let (tree, problem) = (self.0.decode)();
        if let Some(problem) = problem {
            let _ = self.0.problem.set(problem);
        }
        tree
    }

    /// The problem that made part of the tree unreadable when it was decoded, if any.
    #[must_use]
    pub fn problem(&self) -> Option<&Problem> {
        self.0.problem.get()
    }
}

impl Default for TreeSource {
    fn default() -> Self {
        Self::lazy(CallTree::default)
    }
}

impl fmt::Debug for TreeSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TreeSource")
    }
}

/// Marks on a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NodeFlags {
    /// The path was first entered by a tail call: the real caller is not the node's parent but one
    /// of its siblings.
    pub by_tail_call: bool,
}

/// Measured values of one node, without its children, before the cost of hooks is subtracted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NodeValues {
    /// Value of the tree's metric: wall time in nanoseconds in the trees of `calls`; in trees made
    /// from stacks, the amount of the stacks' metric.
    pub metric: u64,
    /// CPU time; 0 if not measured.
    pub cpu_ns: u64,
}

/// One node, as a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node {
    /// Number of the parent; the root is its own parent.
    pub parent: u32,
    /// Index into [`Process::functions`](super::Process::functions); 0 for the root.
    pub function: u32,
    /// Calls along this path.
    pub calls: u64,
    /// Values of the node itself, without its children.
    pub values: NodeValues,
    /// Marks on the node.
    pub flags: NodeFlags,
}

/// A decoded tree. The columns are private so that their encoding can change.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CallTree {
    parents: Vec<u32>,
    functions: Vec<u32>,
    calls: Vec<u32>,
    /// Calls beyond 32 bits: node and upper half of its count, ordered by node.
    carries: Vec<(u32, u32)>,
    /// Nodes with values, ordered by node: a sampling clock never sees most paths.
    values: Vec<(u32, NodeValues)>,
    /// Nodes entered by a tail call, ordered.
    tail: Vec<u32>,
}

impl CallTree {
    /// Number of nodes, the root included; 0 for an empty tree.
    #[must_use]
    pub fn len(&self) -> usize {
        self.parents.len()
    }

    /// Whether the tree has no nodes at all, not even a root: the thread recorded nothing.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.parents.is_empty()
    }

    /// Parents by node number; each is smaller than the node's own number, the root is its own
    /// parent.
    #[must_use]
    pub fn parents(&self) -> &[u32] {
        &self.parents
    }

    /// Function indices by node number.
    #[must_use]
    pub fn functions(&self) -> &[u32] {
        &self.functions
    }

    /// Calls along the path of `node`; 0 past the end.
    #[must_use]
    pub fn calls(&self, node: u32) -> u64 {
        let low = self.calls.get(node as usize).copied().unwrap_or(0);
        let high = match self.carries.binary_search_by_key(&node, |c| c.0) {
            Ok(at) => self.carries[at].1,
            Err(_) => 0,
        };
        u64::from(high) << 32 | u64::from(low)
    }

    /// Calls of every node in the order of their numbers: one pass, faster than a query for each
    /// node.
    pub fn calls_in_order(&self) -> impl Iterator<Item = u64> + '_ {
        let mut carries = self.carries.iter().peekable();
        (0..).zip(&self.calls).map(move |(node, &low)| {
            let high = carries.next_if(|carry| carry.0 == node).map_or(0, |carry| carry.1);
            u64::from(high) << 32 | u64::from(low)
        })
    }

    /// Values of `node` itself, without its children.
    #[must_use]
    pub fn values_of(&self, node: u32) -> NodeValues {
        match self.values.binary_search_by_key(&node, |t| t.0) {
            Ok(at) => self.values[at].1,
            Err(_) => NodeValues::default(),
        }
    }

    /// The nodes that have values, ordered by number.
    #[must_use]
    pub fn values(&self) -> &[(u32, NodeValues)] {
        &self.values
    }

    /// Like [`values`](Self::values), but mutable; values can't be added to nodes that have none.
    pub fn values_mut(&mut self) -> impl Iterator<Item = (u32, &mut NodeValues)> {
        self.values.iter_mut().map(|(node, values)| (*node, values))
    }

    /// Marks of `node`.
    #[must_use]
    pub fn flags(&self, node: u32) -> NodeFlags {
        NodeFlags { by_tail_call: self.tail.binary_search(&node).is_ok() }
    }

    /// The nodes that were entered by a tail call, ordered by number.
    #[must_use]
    pub fn tail_calls(&self) -> &[u32] {
        &self.tail
    }

    /// The tree in depth-first preorder, so that a subtree is a range of numbers; siblings keep
    /// their order.
    #[must_use]
    pub fn in_preorder(&self) -> Cow<'_, Self> {
        if self.is_in_preorder() { Cow::Borrowed(self) } else { Cow::Owned(self.renumbered()) }
    }

    fn is_in_preorder(&self) -> bool {
        let mut path: Vec<u32> = Vec::new();
        for (number, &parent) in (0_u32..).zip(&self.parents).skip(1) {
            if number - 1 == parent {
                path.push(parent);
            } else {
                while path.pop_if(|last| *last != parent).is_some() {}
            }
            if path.is_empty() {
                return false;
            }
        }
        true
    }

    fn renumbered(&self) -> Self {
        // Children as linked lists: one pass from the end puts each list in order. No list holds
        // the root, so its number ends each.
        let (mut first_child, mut next_sibling) = (vec![ROOT; self.len()], vec![ROOT; self.len()]);
        for number in (1..self.len()).rev() {
            let parent = self.parents[number] as usize;
            next_sibling[number] = std::mem::replace(&mut first_child[parent], number as u32);
        }
        let mut builder = CallTreeBuilder::with_capacity(self.len());
        let mut open = vec![(ROOT, ROOT)];
        while let Some((number, parent)) = open.pop() {
            let Some(node) = self.node(number) else { continue };
            let at = builder.push(Node { parent, ..node });
            open.extend(
                [(next_sibling[number as usize], parent), (first_child[number as usize], at)]
                    .into_iter()
                    .filter(|next| next.0 != ROOT),
            );
        }
        builder.finish()
    }

    /// The tree without those subtrees that have neither calls nor values. If nothing is left, even
    /// the root is removed.
    #[must_use]
    pub fn pruned(&self) -> Self {
        let has_own = |node: u32| self.calls(node) > 0 || self.values_of(node) != NodeValues::default();
        let mut kept: Vec<bool> = (0..self.len() as u32).map(has_own).collect();
        for node in (1..self.len()).rev().filter(|&node| kept[node]).collect::<Vec<_>>() {
            let mut above = self.parents[node] as usize;
            while !std::mem::replace(&mut kept[above], true) {
                above = self.parents[above] as usize;
            }
        }
        let mut numbers = vec![ROOT; self.len()];
        let mut builder = CallTreeBuilder::default();
        for number in (0..self.len()).filter(|&number| kept[number]) {
            let Some(node) = self.node(number as u32) else { continue };
            numbers[number] = builder.push(Node { parent: numbers[node.parent as usize], ..node });
        }
        builder.finish()
    }

    /// The tree of only the nodes in `own` and the paths to them, with these calls and values;
    /// `own` is ordered by node number. The tree must be in preorder. If `own` is empty, the result
    /// has no nodes, not even the root.
    pub(crate) fn with_own(&self, own: &[(u32, u64, NodeValues)]) -> Self {
        let mut builder = CallTreeBuilder::default();
        // The path from the root to the previous node: node numbers here and in the new tree.
        let mut path: Vec<(u32, u32)> = Vec::new();
        let mut missing = Vec::new();
        for &(number, calls, values) in own {
            // In preorder, a path never continues once it was left.
            let mut above = number;
            missing.clear();
            while path.last().is_none_or(|last| last.0 != above) {
                if path.last().is_some_and(|last| last.0 > above) {
                    path.pop();
                    continue;
                }
                missing.push(above);
                if above == ROOT {
                    break;
                }
                above = self.parents[above as usize];
            }
            while let Some(added) = missing.pop() {
                let of = added as usize;
                let is_last = added == number;
                let parent = path.last().map_or(ROOT, |last| last.1);
                let node = Node {
                    parent,
                    function: self.functions[of],
                    calls: if is_last { calls } else { 0 },
                    values: if is_last { values } else { NodeValues::default() },
                    flags: self.flags(added),
                };
                path.push((added, builder.push(node)));
            }
        }
        builder.finish()
    }

    /// The sum of several trees: nodes with the same path are merged.
    #[must_use]
    pub fn sum(trees: &[Self]) -> Self {
        let mut nodes: Vec<Node> = Vec::new();
        let mut places: HashMap<(u32, u32), u32> = HashMap::new();
        for tree in trees {
            let mut numbers = vec![ROOT; tree.len()];
            for number in 0..tree.len() {
                let Some(node) = tree.node(number as u32) else { continue };
                let parent = numbers[node.parent as usize];
                // The root's own parent is an invalid number, so that no child is mistaken for the
                // root.
                let path = if number == 0 { (u32::MAX, 0) } else { (parent, node.function) };
                let place = *places.entry(path).or_insert(nodes.len() as u32);
                numbers[number] = place;
                match nodes.get_mut(place as usize) {
                    Some(sum) => {
                        sum.calls = sum.calls.saturating_add(node.calls);
                        sum.values.metric = sum.values.metric.saturating_add(node.values.metric);
                        sum.values.cpu_ns = sum.values.cpu_ns.saturating_add(node.values.cpu_ns);
                    }
                    None => nodes.push(Node { parent, ..node }),
                }
            }
        }
        let mut builder = CallTreeBuilder::with_capacity(nodes.len());
        nodes.into_iter().for_each(|node| _ = builder.push(node));
        builder.finish()
    }

    /// One node as a value, or `None` past the end.
    #[must_use]
    pub fn node(&self, node: u32) -> Option<Node> {
        let at = node as usize;
        Some(Node {
            parent: *self.parents.get(at)?,
            function: *self.functions.get(at)?,
            calls: self.calls(node),
            values: self.values_of(node),
            flags: self.flags(node),
        })
    }
}

/// The columns of a tree that is being built.
pub(crate) struct Columns<'a> {
    pub(crate) parents: &'a mut Vec<u32>,
    pub(crate) functions: &'a mut Vec<u32>,
    pub(crate) calls: &'a mut Vec<u32>,
    pub(crate) carries: &'a mut Vec<(u32, u32)>,
    pub(crate) values: &'a mut Vec<(u32, NodeValues)>,
    pub(crate) tail: &'a mut Vec<u32>,
}

/// Builds a tree in preorder.
#[derive(Debug, Default)]
pub struct CallTreeBuilder {
    tree: CallTree,
}

impl CallTreeBuilder {
    /// A tree with its root, which has the time spent outside all recorded functions.
    #[must_use]
    pub fn new(root_values: NodeValues) -> Self {
        let mut builder = Self::default();
        builder.push(Node { parent: ROOT, function: 0, calls: 0, values: root_values, flags: NodeFlags::default() });
        builder
    }

    /// An empty tree with room for `nodes` nodes, the root included.
    #[must_use]
    pub fn with_capacity(nodes: usize) -> Self {
        let column = || Vec::with_capacity(nodes);
        Self { tree: CallTree { parents: column(), functions: column(), calls: column(), ..CallTree::default() } }
    }

    /// Adds a node and returns its number. A parent that does not exist yet is replaced by the
    /// root, so that parents always precede their children.
    pub fn push(&mut self, node: Node) -> u32 {
        let tree = &mut self.tree;
        let number = u32::try_from(tree.parents.len()).unwrap_or(u32::MAX);
        tree.parents.push(if node.parent < number { node.parent } else { ROOT });
        tree.functions.push(node.function);
        tree.calls.push(node.calls as u32);
        let high = (node.calls >> 32) as u32;
        if high != 0 {
            tree.carries.push((number, high));
        }
        if node.values != NodeValues::default() {
            tree.values.push((number, node.values));
        }
        if node.flags.by_tail_call {
            tree.tail.push(number);
        }
        number
    }

    /// The columns, for a reader that decodes whole columns. Code that adds to them must keep the
    /// order of nodes and the invariants of each column of [`CallTree`].
    pub(crate) fn columns(&mut self) -> Columns<'_> {
        let CallTree { parents, functions, calls, carries, values, tail } = &mut self.tree;
        Columns { parents, functions, calls, carries, values, tail }
    }

    /// The finished tree.
    #[must_use]
    pub fn finish(self) -> CallTree {
        self.tree
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(parent: u32, function: u32, calls: u64) -> Node {
        Node { parent, function, calls, values: NodeValues::default(), flags: NodeFlags::default() }
    }

    #[test]
    fn counts_beyond_32_bits_come_back() {
        let mut builder = CallTreeBuilder::new(NodeValues::default());
        let a = builder.push(node(ROOT, 1, 7 << 32 | 5));
        let b = builder.push(node(a, 2, 9));
        let tree = builder.finish();
        assert_eq!(tree.calls(a), 7 << 32 | 5);
        assert_eq!(tree.calls(b), 9);
        assert!(tree.calls_in_order().eq([0, 7 << 32 | 5, 9]));
        assert_eq!(tree.parents(), [0, 0, 1]);
    }

    #[test]
    fn breadth_first_becomes_depth_first() {
        let mut builder = CallTreeBuilder::new(NodeValues { metric: 1, cpu_ns: 1 });
        for (parent, function) in [(0, 10), (0, 20), (1, 11), (2, 21), (1, 12)] {
            let time = NodeValues { metric: function.into(), cpu_ns: 0 };
            builder.push(Node { values: time, ..node(parent, function, 1) });
        }
        let breadth = builder.finish();
        let depth = breadth.in_preorder();
        assert_eq!(depth.functions(), [0, 10, 11, 12, 20, 21]);
        assert_eq!(depth.parents(), [0, 0, 1, 1, 0, 4]);
        assert_eq!((0..6).map(|at| depth.values_of(at).metric).collect::<Vec<_>>(), [1, 10, 11, 12, 20, 21]);
        assert!(matches!(depth.in_preorder(), Cow::Borrowed(_)), "it stays as it is");
        assert_eq!(*CallTree::default().in_preorder(), CallTree::default());
    }

    #[test]
    fn what_has_nothing_is_pruned_and_sums_of_trees_are_by_path() {
        let tree = |counts: [u64; 4]| {
            let mut builder = CallTreeBuilder::new(NodeValues::default());
            let a = builder.push(node(ROOT, 10, counts[0]));
            builder.push(node(a, 11, counts[1]));
            let b = builder.push(node(ROOT, 20, counts[2]));
            builder.push(node(b, 10, counts[3]));
            builder.finish()
        };
        let [first, second] = [tree([5, 0, 0, 2]).pruned(), tree([0, 7, 0, 1]).pruned()];
        assert_eq!((first.functions(), first.parents()), (&[0, 10, 20, 10][..], &[0, 0, 0, 2][..]));
        assert_eq!(second.functions(), [0, 10, 11, 20, 10]);
        assert!(tree([0; 4]).pruned().is_empty());
        let sum = CallTree::sum(&[first, second, CallTree::default()]);
        let sum = sum.in_preorder();
        assert_eq!(sum.functions(), [0, 10, 11, 20, 10]);
        assert!(sum.calls_in_order().eq([0, 5, 7, 0, 3]));
    }

    #[test]
    fn paths_to_what_has_something_are_the_pruned_tree() {
        let mut seed = 7_u32;
        let mut random = |most: u32| {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 16) % most
        };
        for share in [1, 2, 5, 40, 1_000_000] {
            let mut builder = CallTreeBuilder::new(NodeValues::default());
            let (mut path, mut own) = (vec![ROOT], Vec::new());
            for function in 1..500 {
                path.truncate(1 + random(path.len() as u32) as usize);
                let (calls, metric) =
                    if random(share) == 0 { (u64::from(1 + random(9)), u64::from(random(2))) } else { (0, 0) };
                let values = NodeValues { metric, cpu_ns: 0 };
                let flags = NodeFlags { by_tail_call: random(9) == 0 };
                let number = builder.push(Node { parent: path[path.len() - 1], function, calls, values, flags });
                own.extend((calls > 0).then_some((number, calls, values)));
                path.push(number);
            }
            let tree = builder.finish();
            assert_eq!(tree.with_own(&own), tree.pruned(), "one in {share}");
        }
    }

    #[test]
    fn a_parent_from_the_future_becomes_the_root() {
        let mut builder = CallTreeBuilder::new(NodeValues::default());
        builder.push(node(17, 1, 1));
        assert_eq!(builder.finish().parents(), [0, 0]);
    }
}
