//! Trees: columns of numbers in preorder, split into parts that can be read independently.

use crate::model::{CallTree, CallTreeBuilder, Node, NodeFlags, NodeValues, ROOT};
use crate::varint::{Varints, put};

/// Number of nodes in a part.
pub(super) const PART_NODES: usize = 1 << 17;
/// Maximum length of a path that is repeated at the start of a part: longer paths would make up
/// most of the part.
const LONGEST_PATH: usize = 1 << 13;
/// Least number of bytes that the content needs for a node: one in each of the three full columns.
pub(super) const LEAST_NODE: usize = 3;
const COLUMNS: usize = 7;

/// Encodes a tree part by part. `emit` gets a part's content, its number of nodes, and whether it
/// is the last part.
pub(super) fn encode<E>(tree: &CallTree, mut emit: impl FnMut(&[u8], u32, bool) -> Result<(), E>) -> Result<(), E> {
    let tree = tree.in_preorder();
    let mut encoder = Encoder { tree: &tree, path: Vec::new(), time: 0, tail: 0 };
    let mut first = 0;
    loop {
        let end = tree.len().min(first + PART_NODES);
        let content = encoder.part(first, end);
        emit(&content, (end - first) as u32, end == tree.len())?;
        if end == tree.len() {
            return Ok(());
        }
        first = end;
    }
}

struct Encoder<'a> {
    tree: &'a CallTree,
    /// The path from the root to the preceding node.
    path: Vec<u32>,
    /// Number of times already encoded; `tail` is the same for tail calls.
    time: usize,
    tail: usize,
}

impl Encoder<'_> {
    fn part(&mut self, first: usize, end: usize) -> Vec<u8> {
        let mut columns: [Vec<u8>; COLUMNS] = Default::default();
        let [up, functions, calls, gaps, walls, cpus, tails] = &mut columns;
        let head = self.head(first);
        let (mut timed, mut tailed) = (first as u32, first as u32);
        for number in first as u32..end as u32 {
            put(up, self.step(number));
            put(functions, u64::from(self.tree.functions()[number as usize]));
            put(calls, self.tree.calls(number));
        }
        while let Some(&number) = self.tree.tail_calls().get(self.tail).filter(|&&number| (number as usize) < end) {
            put(tails, u64::from(number - tailed));
            tailed = number;
            self.tail += 1;
        }
        while let Some((number, values)) = self.tree.values().get(self.time).filter(|t| (t.0 as usize) < end) {
            put(gaps, u64::from(number - timed));
            put(walls, values.metric);
            put(cpus, values.cpu_ns);
            timed = *number;
            self.time += 1;
        }
        let mut content = head;
        columns.iter().for_each(|column| put(&mut content, column.len() as u64));
        columns.iter().for_each(|column| content.extend_from_slice(column));
        content
    }

    /// The number of the first node and the path above it.
    fn head(&self, first: usize) -> Vec<u8> {
        let mut head = Vec::new();
        put(&mut head, first as u64);
        put(&mut head, self.path.len() as u64);
        let repeated = if self.path.len() > LONGEST_PATH { &[] } else { self.path.as_slice() };
        put(&mut head, repeated.len() as u64);
        let mut before = 0;
        for &number in repeated {
            put(&mut head, u64::from(number - before));
            put(&mut head, u64::from(self.tree.functions()[number as usize]));
            before = number;
        }
        head
    }

    /// Moves the path to the node `number`. Returns how many nodes this removes from the path.
    fn step(&mut self, number: u32) -> u64 {
        let parent = self.tree.parents()[number as usize];
        let length = self.path.len();
        while self.path.last().is_some_and(|&last| last != parent) {
            self.path.pop();
        }
        let ended = length - self.path.len();
        self.path.push(number);
        ended as u64
    }
}

/// Joins parts of a tree. If a part is missing, the nodes on the path to the following nodes are
/// recreated, without calls and times.
pub(super) struct Decoder {
    builder: CallTreeBuilder,
    /// The number of the next node in the file.
    next: u32,
    /// The path from the root to the last node: its first `depth` entries.
    path: Vec<u32>,
    depth: usize,
    /// Starts of the runs of nodes whose numbers in the tree and in the file increase in step.
    runs: Vec<Run>,
}

#[derive(Clone, Copy)]
struct Run {
    in_tree: u32,
    in_file: u32,
}

impl Decoder {
    /// `nodes` is the expected number of nodes; the caller must have checked it against the size of
    /// the file.
    pub(super) fn new(nodes: usize) -> Self {
        let builder = CallTreeBuilder::with_capacity(nodes);
        Self { builder, next: 0, path: Vec::new(), depth: 0, runs: Vec::new() }
    }

    /// Adds a part of `count` nodes, as far as it can be read. Returns whether it could be read to
    /// its end.
    pub(super) fn add(&mut self, content: &[u8], count: u32) -> bool {
        self.try_add(content, count).is_some()
    }

    pub(super) fn finish(self) -> CallTree {
        self.builder.finish()
    }

    fn try_add(&mut self, content: &[u8], count: u32) -> Option<()> {
        let mut content = Varints::new(content);
        let first = content.next_u32()?;
        let depth = content.next()?;
        let repeated = content.next_u32()?;
        let mut path = Vec::new();
        let mut number = 0_u32;
        for _ in 0..repeated {
            number = number.checked_add(content.next_u32()?)?;
            path.push((number, content.next_u32()?));
        }
        if first != self.next {
            if depth != u64::from(repeated) {
                return None;
            }
            self.find_path(&path);
        }
        self.next = first;
        let mut lengths = [0; COLUMNS];
        for length in &mut lengths {
            *length = content.next()?;
        }
        let mut column = |at: usize| content.split_off(lengths[at]);
        let columns = Columns {
            up: column(0)?,
            functions: column(1)?,
            calls: column(2)?,
            timed: Sparse::new(column(3)?),
            walls: column(4)?,
            cpus: column(5)?,
            tails: Sparse::new(column(6)?),
        };
        self.add_columns(columns, first, count)
    }

    /// Moves to the start of a part whose predecessor is missing: finds or recreates its path in
    /// the tree.
    fn find_path(&mut self, path: &[(u32, u32)]) {
        let here = &self.path[..self.depth];
        let same = here.iter().zip(path).take_while(|(have, want)| self.in_file(**have) == want.0).count();
        self.path.truncate(same);
        for &(in_file, function) in &path[same..] {
            let parent = self.path.last().copied().unwrap_or(ROOT);
            let (time, flags) = (NodeValues::default(), NodeFlags::default());
            let in_tree = self.builder.push(Node { parent, function, calls: 0, values: time, flags });
            self.runs.push(Run { in_tree, in_file });
            self.path.push(in_tree);
        }
        self.depth = self.path.len();
    }

    /// The number that a node of the tree has in the file.
    fn in_file(&self, node: u32) -> u32 {
        let run = self.runs.partition_point(|run| run.in_tree <= node).checked_sub(1).map(|at| self.runs[at]);
        run.map_or(node, |run| run.in_file.wrapping_add(node - run.in_tree))
    }

    fn add_columns(&mut self, mut read: Columns<'_>, first: u32, count: u32) -> Option<()> {
        let tree = self.builder.columns();
        let before = tree.parents.len();
        // Numbers in the tree differ from those in the file by missing and recreated nodes.
        let shift = u32::try_from(before).ok()?;
        first.max(shift).checked_add(count)?;
        // No more nodes than there are bytes for, even if the head claims more.
        let most = read.functions.len().min(count as usize);
        tree.functions.reserve(most);
        tree.calls.reserve(most);
        tree.parents.reserve(most);
        for _ in 0..most {
            let Some(function) = read.functions.next_u32() else { break };
            tree.functions.push(function);
        }
        for at in before..tree.functions.len() {
            let Some(calls) = read.calls.next() else { break };
            tree.calls.push(calls as u32);
            if calls > u64::from(u32::MAX) {
                tree.carries.push((at as u32, (calls >> 32) as u32));
            }
        }
        for at in shift..tree.calls.len() as u32 {
            let Some(up) = read.up.next().filter(|&up| up <= self.depth as u64) else { break };
            self.depth -= up as usize;
            tree.parents.push(if self.depth == 0 { ROOT } else { self.path[self.depth - 1] });
            match self.path.get_mut(self.depth) {
                Some(place) => *place = at,
                None => self.path.push(at),
            }
            self.depth += 1;
        }
        // A column that ends early ends the part.
        let end = tree.parents.len();
        let found = (end - before) as u32;
        tree.functions.truncate(end);
        tree.calls.truncate(end);
        while tree.carries.last().is_some_and(|carry| carry.0 as usize >= end) {
            tree.carries.pop();
        }
        while let Some(at) = read.timed.next(found) {
            let (Some(metric), Some(cpu_ns)) = (read.walls.next(), read.cpus.next()) else { break };
            tree.values.push((shift + at, NodeValues { metric, cpu_ns }));
        }
        tree.tail.extend(std::iter::from_fn(|| read.tails.next(found)).map(|at| shift + at));
        if found > 0 {
            self.runs.push(Run { in_tree: shift, in_file: first });
        }
        self.next = first + found;
        (found == count).then_some(())
    }
}

struct Columns<'a> {
    up: Varints<'a>,
    functions: Varints<'a>,
    calls: Varints<'a>,
    timed: Sparse<'a>,
    walls: Varints<'a>,
    cpus: Varints<'a>,
    tails: Sparse<'a>,
}

/// The nodes of a part that have an entry in a sparse column, counted from the first node of the
/// part.
struct Sparse<'a> {
    gaps: Varints<'a>,
    last: Option<u32>,
}

impl<'a> Sparse<'a> {
    fn new(gaps: Varints<'a>) -> Self {
        Self { gaps, last: None }
    }

    /// The next node, which must be greater than the previous one and lower than `end`.
    fn next(&mut self, end: u32) -> Option<u32> {
        let gap = self.gaps.next_u32()?;
        let at =
            self.last.unwrap_or(0).checked_add(gap).filter(|&at| at < end && self.last.is_none_or(|last| at > last))?;
        self.last = Some(at);
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(parent: u32, function: u32) -> Node {
        let time = NodeValues { metric: u64::from(function % 7) * 1_000, cpu_ns: u64::from(function % 2) };
        let flags = NodeFlags { by_tail_call: function.is_multiple_of(5) };
        Node { parent, function, calls: u64::from(function) << 20, values: time, flags }
    }

    /// A tree of several parts whose depth goes up and down.
    fn tree(nodes: u32) -> CallTree {
        let mut builder = CallTreeBuilder::new(NodeValues { metric: 3, cpu_ns: 0 });
        let mut path = vec![ROOT];
        for number in 1..nodes {
            let depth = (number.wrapping_mul(2_654_435_761) >> 20) as usize % 40;
            path.truncate(depth.max(1));
            let at = builder.push(node(path[path.len() - 1], number % 5_000));
            path.push(at);
        }
        builder.finish()
    }

    fn parts(tree: &CallTree) -> Vec<(Vec<u8>, u32)> {
        let mut parts = Vec::new();
        let done: Result<(), ()> = encode(tree, |content, count, _| {
            parts.push((content.to_vec(), count));
            Ok(())
        });
        assert_eq!(done, Ok(()));
        parts
    }

    fn decode<'a>(parts: impl IntoIterator<Item = &'a (Vec<u8>, u32)>) -> CallTree {
        let mut decoder = Decoder::new(0);
        for (content, count) in parts {
            assert!(decoder.add(content, *count));
        }
        decoder.finish()
    }

    #[test]
    fn a_tree_of_many_parts_comes_back() {
        let tree = tree(3 * PART_NODES as u32 + 77);
        let parts = parts(&tree);
        assert_eq!(parts.len(), 4);
        assert_eq!(decode(&parts), tree);
    }

    #[test]
    fn an_empty_tree_and_a_root_come_back() {
        for tree in [CallTree::default(), CallTreeBuilder::new(NodeValues::default()).finish()] {
            assert_eq!(decode(&parts(&tree)), tree);
        }
    }

    #[test]
    fn a_lost_part_loses_only_its_own_nodes() {
        let tree = tree(3 * PART_NODES as u32);
        let parts = parts(&tree);
        let rest = decode([&parts[0], &parts[2]]);
        let made_up = rest.len() - 2 * PART_NODES;
        assert!(made_up < 40, "{made_up}");
        // Every node of the last part has the same path of functions as before.
        let path = |tree: &CallTree, number: usize| {
            let mut path = vec![tree.functions()[number]];
            let mut at = number;
            while at != 0 {
                at = tree.parents()[at] as usize;
                path.push(tree.functions()[at]);
            }
            path
        };
        for back in (1..PART_NODES).step_by(97) {
            assert_eq!(path(&rest, rest.len() - back), path(&tree, tree.len() - back));
        }
    }

    #[test]
    fn nodes_in_another_order_are_put_in_preorder() {
        let mut builder = CallTreeBuilder::new(NodeValues::default());
        let (a, b) = (builder.push(node(ROOT, 1)), builder.push(node(ROOT, 2)));
        builder.push(node(a, 3));
        builder.push(node(b, 4));
        let read = decode(&parts(&builder.finish()));
        assert_eq!(read.functions(), [0, 1, 3, 2, 4]);
        assert_eq!(read.parents(), [0, 0, 1, 0, 3]);
        assert_eq!(read.calls(4), 4 << 20);
    }

    #[test]
    fn a_part_that_ends_early_gives_what_stood_before() {
        let tree = tree(100);
        let (content, count) = parts(&tree).remove(0);
        let mut decoder = Decoder::new(0);
        assert!(!decoder.add(&content, count + 1));
        assert_eq!(decoder.finish(), tree);
    }
}
