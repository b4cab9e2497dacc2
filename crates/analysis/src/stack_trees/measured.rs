//! Events of a metric in a process, read once and kept as small as they can be.

use std::sync::Arc;

use clrscope_recording::model::{EventArena, Process, Stacks};

use crate::metric::{Metric, Source, StackEvent, StackEvents};
use crate::parallel::{each_mut, fold};

/// Events of a block at most.
const BLOCK: usize = 4_096;

/// Events of one metric in one process.
pub(crate) struct Measured {
    /// The stacks that the events refer to.
    pub(crate) table: Arc<Stacks>,
    /// Places in the table of the stacks that events have, in ascending order. The first stands for a stack that is not known.
    places: Vec<Option<u32>>,
    /// Places that some event has.
    met: Met,
    /// In the order of the recording.
    pub(crate) blocks: Vec<Block>,
    /// Whether some event has a stack that is not known.
    pub(crate) has_unknown: bool,
}

/// Events one after another.
pub(crate) struct Block {
    /// Begin of the first.
    pub(crate) first_ns: u64,
    /// End of the last.
    pub(crate) last_ns: u64,
    /// Some of them are of idle threads, or about objects of a type.
    pub(crate) is_mixed: bool,
    pub(crate) events: Vec<Event>,
}

/// One event; see [`StackEvent`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Event {
    pub(crate) time_ns: u64,
    pub(crate) lasted_ns: u64,
    pub(crate) amount: u64,
    /// Index into [`Process::threads`], their number where the thread is not known.
    pub(crate) thread: u32,
    /// Number of the stack among those of the events.
    pub(crate) stack: u32,
    pub(crate) samples: u32,
    /// Type of the object, and whether the thread was idle.
    about: u32,
}

/// Bit of an event of an idle thread.
const IDLE: u32 = 1 << 31;

impl Event {
    /// The event as it was read, but for its stack, which is still a number among those of the events.
    pub(crate) fn unpacked(&self) -> StackEvent {
        StackEvent {
            thread: self.thread,
            time_ns: self.time_ns,
            stack: self.stack,
            lasted_ns: self.lasted_ns,
            amount: self.amount,
            samples: self.samples.into(),
            idle: self.about & IDLE != 0,
            object_type: self.about & !IDLE,
        }
    }
}

impl Measured {
    /// The events of a process; `None` where the metric is not made of events.
    pub(crate) fn of(process: &Process, metric: &'static Metric) -> Option<Arc<Self>> {
        let Source::Stacks { read, .. } = metric.source else { return None };
        Some(process.derived.get(&name_of(metric), || Self::read(process, metric, read)))
    }

    fn read(process: &Process, metric: &Metric, read: fn(&Process, &EventArena) -> StackEvents) -> Self {
        // A reader makes one arena of an instrument, and a damaged recording has none.
        let Some(arena) = process.arenas(metric.instrument).next() else {
            return Self::new(Arc::default(), Vec::new());
        };
        if !metric.is_sampled() {
            let found = read(process, arena);
            let blocks = found.events.chunks(BLOCK).map(|events| Block::of(process, &found.table, events)).collect();
            return Self::new(found.table, blocks);
        }
        // Each sample stands for itself: chunks can be read in any order.
        let parts = fold(arena.chunks.len(), Vec::new, |blocks, at| {
            let one = EventArena { instrument: arena.instrument.clone(), chunks: vec![arena.chunks[at].clone()] };
            blocks.push((at, Block::of(process, &process.stacks, &read(process, &one).events)));
        });
        let mut blocks: Vec<(usize, Block)> = parts.into_iter().flatten().collect();
        blocks.sort_unstable_by_key(|(at, _)| *at);
        Self::new(Arc::clone(&process.stacks), blocks.into_iter().map(|(_, block)| block).collect())
    }

    /// Events whose stacks are places in the table, from 1; 0 for one that is not known.
    fn new(table: Arc<Stacks>, mut blocks: Vec<Block>) -> Self {
        let parts = fold(
            blocks.len(),
            || (Met::of(table.len()), false),
            |(met, unknown), at| {
                for event in &blocks[at].events {
                    match event.stack.checked_sub(1) {
                        Some(place) => met.add(place),
                        None => *unknown = true,
                    }
                }
            },
        );
        let (mut met, mut has_unknown) = (Met::of(table.len()), false);
        for (part, unknown) in parts {
            met.join(&part);
            has_unknown |= unknown;
        }
        met.count();
        each_mut(&mut blocks, |block| {
            for event in &mut block.events {
                event.stack = event.stack.checked_sub(1).map_or(0, |place| met.number(place));
            }
        });
        let places = std::iter::once(None).chain(met.iter().map(Some)).collect();
        Self { table, places, met, blocks, has_unknown }
    }

    /// Number of distinct stacks; one more for a stack that is not known.
    pub(crate) fn stacks(&self) -> usize {
        self.places.len()
    }

    /// Number in the table of a stack of events; 0 for one that is not known.
    pub(crate) fn number_in_table(&self, stack: u32) -> u32 {
        self.places.get(stack as usize).copied().flatten().map_or(0, |place| self.table.number(place as usize))
    }

    /// Number among those of the events of the stack at a place of the table, if an event has it.
    #[inline]
    pub(crate) fn stack_at(&self, place: u32) -> Option<u32> {
        self.met.has(place).then(|| self.met.number(place))
    }
}

/// Name of what is derived for a metric.
pub(super) fn name_of(metric: &Metric) -> String {
    format!("{} of {}", metric.name, metric.instrument)
}

impl Block {
    fn of(process: &Process, table: &Stacks, found: &[StackEvent]) -> Self {
        let threads = process.threads.len() as u32;
        let mut block =
            Self { first_ns: u64::MAX, last_ns: 0, is_mixed: false, events: Vec::with_capacity(found.len()) };
        for event in found {
            let StackEvent { time_ns, lasted_ns, amount, samples, .. } = *event;
            block.first_ns = block.first_ns.min(time_ns);
            block.last_ns = block.last_ns.max(time_ns.saturating_add(lasted_ns));
            let about = event.object_type & !IDLE | if event.idle { IDLE } else { 0 };
            block.is_mixed |= about != 0;
            block.events.push(Event {
                time_ns,
                lasted_ns,
                amount,
                thread: event.thread.min(threads),
                stack: table.place(event.stack).map_or(0, |place| place as u32 + 1),
                samples: u32::try_from(samples).unwrap_or(u32::MAX),
                about,
            });
        }
        block
    }
}

/// Set of places in a stack table, each with its number among those that are in it.
struct Met {
    bits: Vec<u64>,
    /// Members before each word.
    before: Vec<u32>,
}

impl Met {
    fn of(places: usize) -> Self {
        Self { bits: vec![0; places.div_ceil(64)], before: Vec::new() }
    }

    #[inline]
    fn add(&mut self, place: u32) {
        self.bits[place as usize / 64] |= 1 << (place % 64);
    }

    #[inline]
    fn has(&self, place: u32) -> bool {
        self.bits[place as usize / 64] >> (place % 64) & 1 != 0
    }

    fn join(&mut self, other: &Self) {
        self.bits.iter_mut().zip(&other.bits).for_each(|(all, more)| *all |= more);
    }

    fn count(&mut self) {
        let mut all = 0;
        let before = |word: &u64| {
            all += word.count_ones();
            all - word.count_ones()
        };
        self.before = self.bits.iter().map(before).collect();
    }

    /// Number of a member, from 1.
    #[inline]
    fn number(&self, place: u32) -> u32 {
        let (word, bit) = (place as usize / 64, place % 64);
        1 + self.before[word] + (self.bits[word] & ((1 << bit) - 1)).count_ones()
    }

    fn iter(&self) -> impl Iterator<Item = u32> {
        (0..).zip(&self.bits).flat_map(|(at, &word)| {
            let mut left = word;
            std::iter::from_fn(move || {
                let bit = (left != 0).then(|| left.trailing_zeros())?;
                left &= left - 1;
                Some(at * 64 + bit)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_have_their_numbers_in_order() {
        let mut met = Met::of(300);
        let all = [0, 1, 63, 64, 130, 299];
        all.iter().for_each(|&place| met.add(place));
        met.count();
        assert_eq!(met.iter().collect::<Vec<_>>(), all);
        assert_eq!(all.map(|place| met.number(place)), [1, 2, 3, 4, 5, 6]);
        assert!(met.has(299) && !met.has(298));
    }
}
