//! Decodes the blocks of the arena into a tree in preorder.

use super::parts::PartGains;
use super::segment::SegmentBytes;
use crate::layout::{block, function, time, u32_at, u64_at};
use crate::model::{CallTree, CallTreeBuilder, Node, NodeFlags, NodeValues, ROOT};

/// State that all trees of a process share.
#[derive(Debug)]
pub(crate) struct TreeSources {
    pub(crate) arena: SegmentBytes,
    pub(crate) stride: usize,
    pub(crate) times: EdgeTimes,
    /// Edges whose count passed 2^32, each with how often that happened; sorted by edge.
    pub(crate) carries: Vec<(u32, u32)>,
    /// Nanoseconds per tick of the time stamp counter, with `clock=tsc`.
    pub(crate) ns_per_tick: f64,
}

impl TreeSources {
    /// Nanoseconds per tick; `None` unless blocks hold ticks.
    pub(super) fn ticks(&self) -> Option<f64> {
        (self.stride == block::STRIDE_TSC).then_some(self.ns_per_tick)
    }
}

/// Sampled times, sorted by edge and found by their block.
#[derive(Debug, Default)]
pub(crate) struct EdgeTimes {
    times: Vec<(u32, NodeValues)>,
    groups: Vec<Group>,
}

/// A group of sixty-four blocks: a bit for each block that has times, and the place in the table
/// where the group's times begin.
#[derive(Debug, Clone, Copy, Default)]
struct Group {
    blocks: u64,
    first: u32,
}

impl EdgeTimes {
    /// Reads the table of times. `arena_bytes` bounds the number of edges.
    pub(crate) fn read(records: &[u8], arena_bytes: usize) -> Self {
        let most_blocks = arena_bytes / block::STRIDE_SAMPLED;
        let mut times = Vec::new();
        for record in records.chunks_exact(time::BYTES) {
            if u32_at(record, time::VALID) != 1 {
                break;
            }
            let edge = u32_at(record, time::EDGE);
            if edge as usize / 8 < most_blocks {
                let time = NodeValues { metric: u64_at(record, time::WALL), cpu_ns: u64_at(record, time::CPU) };
                times.push((edge, time));
            }
        }
        times.sort_unstable_by_key(|t| t.0);
        let mut groups = vec![Group::default(); if times.is_empty() { 0 } else { most_blocks / 64 + 1 }];
        for (at, (edge, _)) in (0..).zip(&times) {
            let of_block = edge / 8;
            let group = &mut groups[of_block as usize / 64];
            if group.blocks == 0 {
                group.first = at;
            }
            group.blocks |= 1 << (of_block % 64);
        }
        Self { times, groups }
    }

    fn values_of_edge(&self, edge: u32) -> NodeValues {
        let of_block = edge / 8;
        let Some(group) = self.groups.get(of_block as usize / 64) else { return NodeValues::default() };
        if group.blocks >> (of_block % 64) & 1 == 0 {
            return NodeValues::default();
        }
        // Edges of a group are adjacent: at most 320, usually a few.
        let rest = &self.times[group.first as usize..];
        let rest = &rest[..rest.len().min(64 * 8)];
        rest.binary_search_by_key(&edge, |t| t.0).map_or(NodeValues::default(), |at| rest[at].1)
    }
}

/// Start of a thread's tree, and the maximum number of blocks that it may have.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TreeRoot {
    pub(crate) offset: u32,
    pub(crate) blocks: u32,
}

/// After this many blocks, the decoder gives their pages back to the system. So a large arena is
/// never completely in memory together with the tree decoded from it.
const RELEASE_BLOCKS: u32 = 1 << 20;

/// Maximum number of blocks full of [`function::PADDING`] in a tree, in addition to the blocks that
/// the thread claims.
const DOSES: u32 = 8;

/// Current position in a chain of blocks, which holds the edges of one caller.
struct Chain {
    block: u32,
    slot: usize,
    node: u32,
}

/// Decodes one tree. Work is bounded by the number of blocks the thread claims, and those claims
/// are bounded by the arena when the recording is opened. With `gains` the tree holds only the
/// gains of one part.
pub(crate) fn decode(sources: &TreeSources, root: TreeRoot, gains: Option<&PartGains>) -> CallTree {
    decode_and_note(sources, root, gains, None)
}

/// [`decode`], with the edge of each node.
fn decode_and_note(
    sources: &TreeSources,
    root: TreeRoot,
    gains: Option<&PartGains>,
    edges: Option<&mut Vec<u32>>,
) -> CallTree {
    let mut walk = Walk {
        arena: &sources.arena,
        sources,
        gains,
        edges,
        left: root.blocks,
        doses: DOSES,
        builder: CallTreeBuilder::default(),
        visited: 0,
    };
    walk.run(root);
    sources.arena.release();
    walk.builder.finish()
}

/// A whole tree with an index from edges to nodes. With this index, the tree of one part can be
/// made without walking over the whole tree.
#[derive(Debug)]
pub(super) struct EdgedTree {
    tree: CallTree,
    /// Edges and their nodes, in the order of the edges.
    nodes: Vec<(u32, u32)>,
}

impl EdgedTree {
    pub(super) fn decode(sources: &TreeSources, root: TreeRoot) -> Self {
        let mut edges = Vec::new();
        let tree = decode_and_note(sources, root, None, Some(&mut edges));
        let mut nodes: Vec<(u32, u32)> = edges.into_iter().zip(0..).collect();
        nodes.sort_unstable();
        Self { tree, nodes }
    }

    /// The tree of the gains of one part: the result of [`decode`], without subtrees that gained
    /// nothing.
    pub(super) fn of_part(&self, gains: &PartGains, ns_per_tick: Option<f64>) -> CallTree {
        let mut own: Vec<(u32, u64, NodeValues)> = Vec::new();
        let mut take = |edge: u32, node: u32| {
            let (calls, values) = gains.gain_of_edge(edge, 0, NodeValues::default(), ns_per_tick);
            own.extend((calls > 0 || values != NodeValues::default()).then_some((node, calls, values)));
        };
        // Other threads may have gained much more than this tree has nodes.
        if gains.edges().count() < self.nodes.len() {
            let found = |edge: u32| Some((edge, self.nodes[self.nodes.binary_search_by_key(&edge, |of| of.0).ok()?].1));
            gains.edges().filter_map(found).for_each(|(edge, node)| take(edge, node));
        } else {
            self.nodes.iter().for_each(|&(edge, node)| take(edge, node));
        }
        own.sort_unstable_by_key(|of| of.0);
        own.dedup_by_key(|of| of.0);
        self.tree.with_own(&own)
    }
}

struct Walk<'a> {
    sources: &'a TreeSources,
    gains: Option<&'a PartGains>,
    /// Receives the edges of the nodes, if the caller wants them.
    edges: Option<&'a mut Vec<u32>>,
    arena: &'a [u8],
    left: u32,
    doses: u32,
    builder: CallTreeBuilder,
    visited: u32,
}

impl<'a> Walk<'a> {
    fn run(&mut self, root: TreeRoot) {
        let Some(first) = self.enter_block(root.offset) else { return };
        self.push_node(first, root.offset, 0, ROOT, 0);
        // Next to the root edge: time for which there was no room anywhere on its path.
        if u32_at(first, block::KEYS + 4) == function::TRUNCATED {
            self.push_node(first, root.offset, 1, ROOT, function::TRUNCATED);
        }
        let mut stack = Vec::new();
        self.descend(&mut stack, first, 0, ROOT);
        while let Some(chain) = stack.last_mut() {
            let block = self.block(chain.block);
            if chain.slot == block::EDGES {
                let next = u32_at(block, block::NEXT) & block::OFFSET;
                if next != 0 && self.enter_block(next).is_some() {
                    (chain.block, chain.slot) = (next, 0);
                } else {
                    stack.pop();
                }
                continue;
            }
            let (at, slot, parent) = (chain.block, chain.slot, chain.node);
            chain.slot += 1;
            let function = u32_at(block, block::KEYS + slot * 4);
            if function == 0 {
                // Edges fill a block in order. Full blocks may follow after a block that is not
                // full yet.
                chain.slot = block::EDGES;
                continue;
            }
            if function == function::PADDING {
                // This block was there for a measurement when the recording was cut off; it is not
                // one of the thread's blocks.
                if slot == 0 && self.doses > 0 {
                    self.doses -= 1;
                    self.left += 1;
                }
                continue;
            }
            let node = self.push_node(block, at, slot, parent, function);
            self.descend(&mut stack, block, slot, node);
        }
    }

    fn descend(&mut self, stack: &mut Vec<Chain>, block: &[u8], slot: usize, node: u32) {
        let child = u32_at(block, block::CHILDREN + slot * 4);
        if child != 0 && self.enter_block(child).is_some() {
            stack.push(Chain { block: child, slot: 0, node });
        }
    }

    /// A block that was entered before.
    fn block(&self, offset: u32) -> &'a [u8] {
        self.arena.get(offset as usize..).and_then(|rest| rest.get(..self.sources.stride)).unwrap_or(&[])
    }

    /// The block at `offset`, if the offset is that of a block and the thread's limit of blocks is
    /// not reached.
    fn enter_block(&mut self, offset: u32) -> Option<&'a [u8]> {
        let block = self.block(offset);
        if offset == 0 || !offset.is_multiple_of(block::STRIDE_SAMPLED as u32) || block.is_empty() {
            return None;
        }
        self.left = self.left.checked_sub(1)?;
        self.visited += 1;
        if self.visited == RELEASE_BLOCKS {
            self.visited = 0;
            self.sources.arena.release();
        }
        Some(block)
    }

    fn push_node(&mut self, block: &[u8], at: u32, slot: usize, parent: u32, function: u32) -> u32 {
        let edge = block::edge_id(at, slot as u32);
        let low = u32_at(block, block::COUNTS + slot * 4);
        let carries = &self.sources.carries;
        let high = carries.binary_search_by_key(&edge, |carry| carry.0).map_or(0, |at| carries[at].1);
        let mut time = self.sources.times.values_of_edge(edge);
        if self.sources.stride == block::STRIDE_TSC {
            let ticks = u64_at(block, block::TICKS + slot * 8);
            time.metric = (ticks as f64 * self.sources.ns_per_tick) as u64;
        }
        let mut calls = u64::from(high) << 32 | u64::from(low);
        if let Some(gains) = self.gains {
            let ns_per_tick = self.sources.ticks();
            (calls, time) = gains.gain_of_edge(edge, calls, time, ns_per_tick);
        }
        if let Some(edges) = &mut self.edges {
            edges.push(edge);
        }
        let marks = u32_at(block, block::NEXT) & block::MARKS;
        self.builder.push(Node {
            parent,
            function,
            calls,
            values: time,
            flags: NodeFlags { by_tail_call: function != 0 && marks >> slot & 1 == 1 },
        })
    }
}
