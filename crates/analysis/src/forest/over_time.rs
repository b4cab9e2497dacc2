//! Amounts of a tree's nodes over time. Viewers use them to select a part of the time without the
//! recording.

use std::convert::Infallible;

use clrscope_recording::model::{Recording, Thread};
use rustc_hash::FxHashMap;

use super::walk::{NameOrder, Walk, load};
use super::{Forest, TreeNode, TreeOptions};
use crate::catalog::Slot;
use crate::columns::Columns;
use crate::metric::StackEvent;
use crate::metric_events::{Block, Event};
use crate::paths::{Paths, StackPaths, UNKNOWN};
use crate::pieces::Pieces;
use crate::stack_trees::wanted_part;
use crate::time_states::TimeStates;
use crate::waits::TimeState;

/// A node's own amount in one of the equal pieces of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NodePiece {
    /// Number of the node in the order of the walk, from 0. The number after the last node
    /// represents all paths without a shown node.
    pub node: u32,
    /// Number of the piece of the run, from 0.
    pub piece: u32,
    /// State of the threads; `None` if the state is not known.
    pub state: Option<TimeState>,
    /// Amount of the metric in the piece.
    pub amount: u64,
}

/// Paths of the nodes of one process, each stored once for all threads: there are many stacks, and
/// each may be on all threads.
#[derive(Default)]
struct SharedPaths {
    /// Number of a path by its callers' path and its function. The callers' path is [`OUTSIDE`] for
    /// the outermost functions.
    paths: FxHashMap<(u32, Slot), u32>,
    /// For each path, the path of its callers.
    callers: Vec<u32>,
    /// The node of a thread at a path.
    nodes: FxHashMap<(*const Thread, u32), u32>,
}

/// Number of the empty path.
const OUTSIDE: u32 = u32::MAX;
/// Stands for "no node" until the number of nodes is known.
const BESIDE: u32 = u32::MAX;

impl<'a> Forest<'a> {
    /// Amounts of the nodes that [`walk`](Self::walk) shows with these options, for each of
    /// these pieces of the recording's time. The amount of a node that is left out counts for the
    /// nearest shown node above it. Empty if the metric has no events: trees of `calls` are totals
    /// of the whole run.
    #[must_use]
    pub fn over_time(&self, recording: &Recording, options: &TreeOptions, pieces: Pieces) -> Vec<NodePiece> {
        let mut sums: FxHashMap<(u32, u32, Option<TimeState>), u64> = FxHashMap::default();
        let mut shown = 0_u32;
        for paths in &self.paths {
            let Some(stacks) = StackPaths::for_metric(recording, paths.process, &self.query, paths.metric) else {
                continue;
            };
            let states = self.has_states().then(|| TimeStates::for_process(paths.process, &stacks.measured));
            let names = NameOrder::new(paths, &self.query);
            let known = self.nodes(paths, &names, options, &mut shown);
            let mut nodes: FxHashMap<(*const Thread, u32), Option<u32>> = FxHashMap::default();
            let mut path_of: FxHashMap<u32, Option<u32>> = FxHashMap::default();
            let mut path = Vec::new();
            let events = stacks.measured.blocks.iter().flat_map(Block::events);
            for event in events {
                let state = states.as_ref().map(|states| states.state_of(&event));
                let event = Event::unpacked(event);
                let Some(part) = wanted_part(paths.process, &self.query, &event) else { continue };
                let Some(thread) = self.thread_of(paths, &event) else { continue };
                let at = *path_of.entry(event.stack).or_insert_with(|| {
                    stacks.path(event.stack, &mut path);
                    let slots = path.iter().rev().map(|&function| names.catalog.slot(function));
                    let mut wanted = slots.skip_while(|slot| !names.wants(*slot)).peekable();
                    wanted.peek().is_some().then(|| known.path_of(wanted))
                });
                let Some(at) = at else { continue };
                let node = *nodes.entry((thread, at)).or_insert_with(|| known.node_at(thread, at));
                let node = node.unwrap_or(BESIDE);
                pieces.share_out(event.time_ns, event.lasted_ns, part.amount, |piece, amount| {
                    let piece = piece.min(pieces.count - 1) as u32;
                    let sum = sums.entry((node, piece, state)).or_default();
                    *sum = sum.saturating_add(amount);
                });
            }
        }
        let number = |node: u32| if node == BESIDE { shown } else { node };
        let piece = |((node, piece, state), amount)| NodePiece { node: number(node), piece, state, amount };
        let mut all: Vec<NodePiece> = sums.into_iter().map(piece).collect();
        all.sort_unstable_by_key(|one| (one.piece, one.node, one.state));
        all
    }

    /// The shown nodes of a process, numbered from `shown` on.
    fn nodes(&self, paths: &Paths<'a>, names: &NameOrder<'a>, options: &TreeOptions, shown: &mut u32) -> SharedPaths {
        let (mut known, mut above) = (SharedPaths::default(), Vec::new());
        let columns = Columns::new(paths, &names.catalog, &self.query);
        for (threads, thread) in self.sets(paths) {
            let decoded = load(threads, &names.catalog, &columns);
            let mut walk = Walk::new(self, names, columns.clone(), &decoded, thread, options);
            let walked = walk.run(&mut |node: &TreeNode<'_>| -> Result<(), Infallible> {
                above.truncate(node.depth as usize);
                let path = known.add(above.last().copied().unwrap_or(OUTSIDE), node.slot);
                known.nodes.insert((key(thread), path), *shown);
                above.push(path);
                *shown += 1;
                Ok(())
            });
            let Ok(()) = walked;
        }
        known
    }

    /// The thread that the nodes of an event's set of threads name; `None` if the event's thread is
    /// not in the forest.
    fn thread_of(&self, paths: &Paths<'a>, event: &StackEvent) -> Option<*const Thread> {
        let known = paths.process.threads.get(event.thread as usize);
        let is_wanted = self.query.wants_thread_if_known(known);
        is_wanted.then(|| key(self.query.per_thread.then_some(known.unwrap_or(&UNKNOWN))))
    }
}

fn key(thread: Option<&Thread>) -> *const Thread {
    thread.map_or(std::ptr::null(), std::ptr::from_ref)
}

impl SharedPaths {
    /// Adds the path that extends `callers` by a function.
    fn add(&mut self, callers: u32, slot: Slot) -> u32 {
        let number = self.callers.len() as u32;
        let path = *self.paths.entry((callers, slot)).or_insert(number);
        if path == number {
            self.callers.push(callers);
        }
        path
    }

    /// The longest known path that is a prefix of a stack. The stack is given from the outermost
    /// function on.
    fn path_of(&self, stack: impl Iterator<Item = Slot>) -> u32 {
        let mut path = OUTSIDE;
        for slot in stack {
            match self.paths.get(&(path, slot)) {
                Some(longer) => path = *longer,
                None => break,
            }
        }
        path
    }

    /// The innermost shown node of a thread on a path.
    fn node_at(&self, thread: *const Thread, mut path: u32) -> Option<u32> {
        while path != OUTSIDE {
            if let Some(node) = self.nodes.get(&(thread, path)) {
                return Some(*node);
            }
            path = self.callers[path as usize];
        }
        None
    }
}
