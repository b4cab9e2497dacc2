//! From the blocks of the arena to a tree in preorder.

use std::collections::HashMap;
use std::sync::Arc;

use super::segment::SegmentBytes;
use crate::layout::{block, time, u32_at, u64_at};
use crate::model::{CallTree, CallTreeBuilder, Node, NodeFlags, NodeTime, ROOT};

/// What all trees of a process share.
#[derive(Debug)]
pub(crate) struct TreeSources {
    pub(crate) arena: SegmentBytes,
    pub(crate) stride: usize,
    pub(crate) times: EdgeTimes,
    /// Edges whose count passed 2^32, with how often.
    pub(crate) carries: HashMap<u32, u32>,
    /// Nanoseconds per tick of the time stamp counter, with `clock=tsc`.
    pub(crate) ns_per_tick: f64,
}

/// Sampled times, sorted by edge, with a bit per block so that most blocks need no search.
#[derive(Debug, Default)]
pub(crate) struct EdgeTimes {
    times: Vec<(u32, NodeTime)>,
    blocks: Vec<u64>,
}

impl EdgeTimes {
    /// Reads the table of times. `arena_bytes` bounds the edges there can be.
    pub(crate) fn read(records: &[u8], arena_bytes: usize) -> Self {
        let most_blocks = arena_bytes / block::STRIDE_SAMPLED;
        let mut found = Self { times: Vec::new(), blocks: vec![0; most_blocks / 64 + 1] };
        for record in records.chunks_exact(time::BYTES) {
            if u32_at(record, time::VALID) != 1 {
                break;
            }
            let edge = u32_at(record, time::EDGE);
            let of_block = edge as usize / 8;
            if of_block < most_blocks {
                found.blocks[of_block / 64] |= 1 << (of_block % 64);
                let time = NodeTime { wall_ns: u64_at(record, time::WALL), cpu_ns: u64_at(record, time::CPU) };
                found.times.push((edge, time));
            }
        }
        found.times.sort_unstable_by_key(|t| t.0);
        found
    }

    fn of(&self, edge: u32) -> NodeTime {
        let of_block = edge as usize / 8;
        let any = self.blocks.get(of_block / 64).is_some_and(|bits| bits >> (of_block % 64) & 1 == 1);
        match any.then(|| self.times.binary_search_by_key(&edge, |t| t.0)) {
            Some(Ok(at)) => self.times[at].1,
            _ => NodeTime::default(),
        }
    }
}

/// Where one thread's tree begins and how many blocks it may have.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TreeRoot {
    pub(crate) offset: u32,
    pub(crate) blocks: u32,
}

/// A chain of blocks that is being walked: the edges of one caller.
struct Chain {
    block: u32,
    slot: usize,
    node: u32,
}

/// Decodes one tree. Work is bounded by the number of blocks the thread claims, and those claims are
/// bounded by the arena when the recording is opened.
pub(crate) fn decode(sources: &Arc<TreeSources>, root: TreeRoot) -> CallTree {
    let mut walk = Walk { sources, left: root.blocks, builder: CallTreeBuilder::default() };
    walk.run(root);
    walk.builder.finish()
}

struct Walk<'a> {
    sources: &'a TreeSources,
    left: u32,
    builder: CallTreeBuilder,
}

impl Walk<'_> {
    fn run(&mut self, root: TreeRoot) {
        if !self.enter_block(root.offset) {
            return;
        }
        self.push_node(root.offset, 0, ROOT, 0, 0);
        let mut stack = Vec::new();
        self.descend(&mut stack, root.offset, 0, ROOT);
        while let Some(chain) = stack.last_mut() {
            if chain.slot == block::EDGES {
                let next = u32_at(&self.sources.arena, chain.block as usize + block::NEXT) & !block::MARKS;
                if next == 0 || !self.enter_block(next) {
                    stack.pop();
                } else if let Some(chain) = stack.last_mut() {
                    (chain.block, chain.slot) = (next, 0);
                }
                continue;
            }
            let (at, slot, parent) = (chain.block, chain.slot, chain.node);
            chain.slot += 1;
            let function = u32_at(&self.sources.arena, at as usize + block::KEYS + slot * 4);
            if function == 0 {
                // Edges fill a block in order, and only a full block has a next one.
                stack.pop();
                continue;
            }
            let marks = u32_at(&self.sources.arena, at as usize + block::NEXT) & block::MARKS;
            let node = self.push_node(at, slot, parent, function, marks);
            self.descend(&mut stack, at, slot, node);
        }
    }

    fn descend(&mut self, stack: &mut Vec<Chain>, at: u32, slot: usize, node: u32) {
        let child = u32_at(&self.sources.arena, at as usize + block::CHILDREN + slot * 4);
        if child != 0 && self.enter_block(child) {
            stack.push(Chain { block: child, slot: 0, node });
        }
    }

    /// Whether the block exists and may still be followed.
    fn enter_block(&mut self, offset: u32) -> bool {
        let whole = (offset as usize).is_multiple_of(block::STRIDE_SAMPLED)
            && offset as usize + self.sources.stride <= self.sources.arena.len();
        if !whole || offset == 0 || self.left == 0 {
            return false;
        }
        self.left -= 1;
        true
    }

    fn push_node(&mut self, at: u32, slot: usize, parent: u32, function: u32, marks: u32) -> u32 {
        let edge = block::edge_id(at, slot as u32);
        let low = u32_at(&self.sources.arena, at as usize + block::COUNTS + slot * 4);
        let high = self.sources.carries.get(&edge).copied().unwrap_or(0);
        let mut time = self.sources.times.of(edge);
        if self.sources.stride == block::STRIDE_TSC {
            let ticks = u64_at(&self.sources.arena, at as usize + block::TICKS + slot * 8);
            time.wall_ns = (ticks as f64 * self.sources.ns_per_tick) as u64;
        }
        self.builder.push(Node {
            parent,
            function,
            calls: u64::from(high) << 32 | u64::from(low),
            time,
            flags: NodeFlags { by_tail_call: marks >> slot & 1 == 1 },
        })
    }
}
