//! Events of a metric in a process, read once and stored compactly.

mod block;
mod node_set;

use std::sync::Arc;

use clrscope_recording::model::{EventArena, Process, Stacks};
use clrscope_recording::parallel::{each_mut, fold};

use crate::metric::{Metric, Source, StackEvent, StackEvents};

pub(crate) use block::{Block, Event};
pub(crate) use node_set::NodeSet;

/// Maximum number of events in a block.
const BLOCK: usize = 4_096;

/// Events of one metric in one process.
pub(crate) struct MetricEvents {
    /// The stacks that the events refer to.
    pub(crate) table: Arc<Stacks>,
    /// The stack table's places of the events' stacks, in ascending order. The first entry
    /// represents an unknown stack.
    places: Vec<Option<u32>>,
    /// The places that events use.
    used: NodeSet,
    /// Blocks in the order of the recording.
    pub(crate) blocks: Vec<Block>,
    /// Whether some event has an unknown stack.
    pub(crate) has_unknown: bool,
}

impl MetricEvents {
    /// Returns the events of a process; `None` if the metric is not made of events.
    pub(crate) fn for_metric(process: &Process, metric: &'static Metric) -> Option<Arc<Self>> {
        let Source::Stacks { read, .. } = metric.source else { return None };
        Some(process.derived.get(&name_of(metric), || Self::read(process, metric, read)))
    }

    fn read(process: &Process, metric: &Metric, read: fn(&Process, &EventArena) -> StackEvents) -> Self {
        // A reader makes one arena of an instrument, and a damaged recording has none.
        let Some(arena) = process.arenas(metric.instrument).next() else {
            return Self::new(Arc::default(), Vec::new(), Vec::new());
        };
        if !metric.is_sampled() {
            let found = read(process, arena);
            let mut seen = ReadBlocks::new(&found.table);
            found.events.chunks(BLOCK).for_each(|events| seen.add(0, process, &found.table, events));
            return Self::new(found.table, vec![seen.used], seen.blocks);
        }
        // Each sample stands for itself: chunks can be read in any order.
        let new = || ReadBlocks::new(&process.stacks);
        let parts = fold(arena.chunks.len(), new, |seen, at| {
            let one = EventArena { instrument: arena.instrument.clone(), chunks: vec![arena.chunks[at].clone()] };
            seen.add(at, process, &process.stacks, &read(process, &one).events);
        });
        let (mut used, mut blocks) = (Vec::new(), Vec::new());
        for part in parts {
            used.push(part.used);
            blocks.extend(part.blocks);
        }
        blocks.sort_by_key(|(at, _)| *at);
        Self::new(Arc::clone(&process.stacks), used, blocks)
    }

    /// Creates the events. Their stacks are places in the table, from 1, each in one of the sets; 0
    /// represents an unknown stack.
    fn new(table: Arc<Stacks>, parts: Vec<NodeSet>, blocks: Vec<(usize, Block)>) -> Self {
        let joined = parts.into_iter().reduce(|mut all, part| {
            all.join(&part);
            all
        });
        let mut used = joined.unwrap_or_else(|| NodeSet::for_places(table.len()));
        used.count();
        let mut blocks: Vec<Block> = blocks.into_iter().map(|(_, block)| block).collect();
        each_mut(&mut blocks, |block| {
            for stack in block.stacks_mut() {
                *stack = stack.checked_sub(1).map_or(0, |place| used.number(place));
            }
        });
        let has_unknown = blocks.iter().any(|block| block.stacks().contains(&0));
        let places = std::iter::once(None).chain(used.iter().map(Some)).collect();
        Self { table, places, used, blocks, has_unknown }
    }

    /// The places in the table that events use.
    pub(crate) fn used_places(&self) -> &NodeSet {
        &self.used
    }

    /// Number of distinct stacks, plus one for an unknown stack.
    pub(crate) fn stacks(&self) -> usize {
        self.places.len()
    }

    /// Returns the position in the table for a stack number of the events; `None` for an unknown
    /// stack.
    #[inline]
    pub(crate) fn position_of_stack(&self, stack: u32) -> Option<usize> {
        self.places.get(stack as usize).copied().flatten().map(|place| place as usize)
    }

    /// Returns the number in the table for a stack number of the events; 0 for an unknown stack.
    pub(crate) fn number_in_table(&self, stack: u32) -> u32 {
        self.position_of_stack(stack).map_or(0, |place| self.table.number(place))
    }

    /// Returns the stack number of the events for a place in the table; `None` if no event uses the
    /// place.
    #[inline]
    pub(crate) fn stack_at(&self, place: u32) -> Option<u32> {
        self.used.has(place).then(|| self.used.number(place))
    }
}

/// Name under which data derived for a metric is cached.
pub(crate) fn name_of(metric: &Metric) -> String {
    let leaves = if metric.type_leaves { ", paths ending in types" } else { "" };
    format!("{} of {}{leaves}", metric.name, metric.instrument)
}

/// Blocks that one worker has read, each with the number of its chunk, and the places that their
/// events use.
struct ReadBlocks {
    blocks: Vec<(usize, Block)>,
    used: NodeSet,
}

impl ReadBlocks {
    fn new(table: &Stacks) -> Self {
        Self { blocks: Vec::new(), used: NodeSet::for_places(table.len()) }
    }

    fn add(&mut self, chunk: usize, process: &Process, table: &Stacks, events: &[StackEvent]) {
        let block = Block::new(process, table, events);
        block.stacks().iter().filter_map(|stack| stack.checked_sub(1)).for_each(|place| self.used.add(place));
        self.blocks.push((chunk, block));
    }
}
