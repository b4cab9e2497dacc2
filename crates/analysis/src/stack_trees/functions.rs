//! Sums by function over the paths of stacks: one pass over the tree, whatever the number of threads.

use clrscope_recording::model::Thread;

use super::amounts::{StackSum, Wanted};
use super::measured::Measured;
use super::{Shape, StackTree};
use crate::catalog::{Catalog, Slot};
use crate::parallel::fold;

/// Pieces of a tree that are summed apart from one another.
const PIECES: u32 = 16;
/// Threads that are told apart in one pass.
const THREADS: usize = 512;

/// Sums of one function.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FunctionSum {
    pub(crate) own: StackSum,
    /// Of outermost nodes with everything below them.
    pub(crate) total: StackSum,
    pub(crate) max_recursion: u32,
    /// Threads with something on a stack that the function is on.
    pub(crate) threads: u32,
    /// Nodes of the function on the path.
    open: u32,
}

/// Sums of one thread.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ThreadSum {
    pub(crate) sum: StackSum,
    /// Most functions on a stack.
    pub(crate) max_depth: u32,
    is_there: bool,
}

/// Sums of a process by function, and by thread.
pub(crate) struct FunctionSums {
    /// By slot.
    pub(crate) functions: Vec<FunctionSum>,
    /// By index of the thread; the last is of threads that are not known.
    pub(crate) threads: Vec<ThreadSum>,
}

impl FunctionSums {
    pub(crate) fn new(tree: &StackTree, measured: &Measured, wanted: &Wanted<'_>, catalog: &Catalog<'_>) -> Self {
        let shape = &*tree.shape;
        let slots: Vec<Slot> = catalog.slot_roles().iter().map(|place| place.slot).collect();
        let new = || vec![FunctionSum::default(); catalog.len()];
        let parts = fold(PIECES as usize, new, |sums, piece| sum_piece(tree, &slots, piece as u32, sums));
        let mut functions = new();
        for part in parts {
            for (sum, more) in functions.iter_mut().zip(part) {
                sum.own.add(more.own);
                sum.total.add(more.total);
                sum.max_recursion = sum.max_recursion.max(more.max_recursion);
            }
        }
        let threads = thread_sums(measured, wanted, &depths(shape, catalog, measured.stacks()));
        let met: Vec<usize> = (0..threads.len()).filter(|&thread| threads[thread].is_there).collect();
        if let [_] = met.as_slice() {
            functions.iter_mut().for_each(|sum| sum.threads = u32::from(sum.total != StackSum::default()));
        } else {
            for group in met.chunks(THREADS) {
                count_threads(shape, measured, wanted, group, &slots, &mut functions);
            }
        }
        Self { functions, threads }
    }

    /// Threads with events among the `threads` of a process, and `unknown` where some have events, with their sums.
    pub(crate) fn by_thread<'a>(
        &self,
        threads: &'a [Thread],
        unknown: &'a Thread,
    ) -> impl Iterator<Item = (&'a Thread, ThreadSum)> {
        let is_there = self.threads.last().is_some_and(|last| last.is_there);
        threads.iter().chain(is_there.then_some(unknown)).zip(self.threads.iter().copied())
    }
}

/// Nodes of a piece of the tree.
fn nodes_of(shape: &Shape, piece: u32) -> std::ops::Range<u32> {
    let part = |piece: u32| (u64::from(shape.len()) * u64::from(piece) / u64::from(PIECES)) as u32;
    part(piece).max(1)..part(piece + 1).max(1)
}

/// The nodes above a node, the outermost first, without the first of all.
fn above(shape: &Shape, node: u32) -> Vec<u32> {
    let (mut path, mut at) = (Vec::new(), 1);
    while at < node {
        if shape.end(at) > node {
            path.push(at);
            at += 1;
        } else {
            at = shape.end(at);
        }
    }
    path
}

fn sum_piece(tree: &StackTree, slots: &[Slot], piece: u32, sums: &mut [FunctionSum]) {
    let shape = &*tree.shape;
    let slot = |node: u32| slots.get(shape.function(node) as usize).copied().unwrap_or_default() as usize;
    let nodes = nodes_of(shape, piece);
    sums.iter_mut().for_each(|sum| sum.open = 0);
    let mut open: Vec<(u32, usize)> = Vec::new();
    for node in above(shape, nodes.start) {
        sums[slot(node)].open += 1;
        open.push((shape.end(node), slot(node)));
    }
    let mut node = nodes.start;
    while node < nodes.end {
        while let Some((_, slot)) = open.pop_if(|last| last.0 <= node) {
            sums[slot].open -= 1;
        }
        let end = shape.end(node);
        let total = tree.subtree(node);
        if total == StackSum::default() {
            node = end;
            continue;
        }
        let at = slot(node);
        let sum = &mut sums[at];
        sum.own.add(tree.own(node));
        if sum.open == 0 {
            sum.total.add(total);
        }
        sum.max_recursion = sum.max_recursion.max(sum.open + 1);
        if end > node + 1 {
            sum.open += 1;
            open.push((end, at));
        }
        node += 1;
    }
}

/// Functions on each stack of the events.
fn depths(shape: &Shape, catalog: &Catalog<'_>, stacks: usize) -> Vec<u32> {
    let mut depths = vec![0; stacks];
    let mut open: Vec<(u32, u32)> = Vec::new();
    for node in 1..shape.len() {
        while open.pop_if(|last| last.0 <= node).is_some() {}
        let is_call = catalog.place(shape.function(node)).role.is_call();
        let depth = open.last().map_or(0, |last| last.1) + u32::from(is_call);
        for &stack in &shape.stacks[shape.at(node).start as usize..shape.at(node).end as usize] {
            depths[stack as usize] = depth;
        }
        if shape.end(node) > node + 1 {
            open.push((shape.end(node), depth));
        }
    }
    depths
}

fn thread_sums(measured: &Measured, wanted: &Wanted<'_>, depths: &[u32]) -> Vec<ThreadSum> {
    let new = || vec![ThreadSum::default(); wanted.threads.len()];
    let parts = fold(measured.blocks.len(), new, |sums, at| {
        wanted.each(&measured.blocks[at], |event, part| {
            let sum = &mut sums[event.thread as usize];
            sum.sum.add(part);
            sum.max_depth = sum.max_depth.max(depths[event.stack as usize]);
            sum.is_there = true;
        });
    });
    let mut all = new();
    for part in parts {
        for (sum, more) in all.iter_mut().zip(part) {
            sum.sum.add(more.sum);
            sum.max_depth = sum.max_depth.max(more.max_depth);
            sum.is_there |= more.is_there;
        }
    }
    all
}

/// Adds to each function the threads of a group that something of it is of.
fn count_threads(
    shape: &Shape,
    measured: &Measured,
    wanted: &Wanted<'_>,
    group: &[usize],
    slots: &[Slot],
    functions: &mut [FunctionSum],
) {
    let words = group.len().div_ceil(64);
    let mut bit_of = vec![None; wanted.threads.len()];
    for (bit, &thread) in group.iter().enumerate() {
        bit_of[thread] = Some(bit);
    }
    let sets = threads_of_stacks(measured, wanted, &bit_of, words);
    let new = || vec![0_u64; functions.len() * words];
    let parts = fold(PIECES as usize, new, |met, piece| {
        let mut path = Path { words, open: Vec::new(), sets: Vec::new(), met };
        let slot = |node: u32| slots.get(shape.function(node) as usize).copied().unwrap_or_default() as usize;
        let nodes = nodes_of(shape, piece as u32);
        above(shape, nodes.start).into_iter().for_each(|node| path.open(shape.end(node), slot(node)));
        for node in nodes {
            path.close(node);
            path.open(shape.end(node), slot(node));
            for &stack in &shape.stacks[shape.at(node).start as usize..shape.at(node).end as usize] {
                path.add(&sets[stack as usize * words..][..words]);
            }
        }
        path.close(u32::MAX);
    });
    if let Some(met) = joined(parts) {
        for (sum, set) in functions.iter_mut().zip(met.chunks(words)) {
            sum.threads += set.iter().map(|word| word.count_ones()).sum::<u32>();
        }
    }
}

/// Sets of threads of the nodes above, each `words` long.
struct Path<'m> {
    words: usize,
    /// Ends and slots.
    open: Vec<(u32, usize)>,
    sets: Vec<u64>,
    /// Sets of the functions.
    met: &'m mut [u64],
}

impl Path<'_> {
    fn open(&mut self, end: u32, slot: usize) {
        self.open.push((end, slot));
        self.sets.resize(self.open.len() * self.words, 0);
    }

    fn add(&mut self, set: &[u64]) {
        let from = self.sets.len() - self.words;
        self.sets[from..].iter_mut().zip(set).for_each(|(all, more)| *all |= more);
    }

    /// Leaves the nodes that end before a node: what is in their sets is in those of their functions and callers.
    fn close(&mut self, node: u32) {
        while let Some((_, slot)) = self.open.pop_if(|last| last.0 <= node) {
            let (above, mine) = self.sets.split_at_mut(self.open.len() * self.words);
            let met = &mut self.met[slot * self.words..][..self.words];
            met.iter_mut().zip(&*mine).for_each(|(all, more)| *all |= more);
            if let Some(from) = above.len().checked_sub(self.words) {
                above[from..].iter_mut().zip(mine).for_each(|(all, more)| *all |= *more);
            }
            self.sets.truncate(self.open.len() * self.words);
        }
    }
}

/// Sets of the threads that each stack of the events is of.
fn threads_of_stacks(measured: &Measured, wanted: &Wanted<'_>, bit_of: &[Option<usize>], words: usize) -> Vec<u64> {
    let parts = fold(
        measured.blocks.len(),
        || vec![0_u64; measured.stacks() * words],
        |sets, at| {
            wanted.each(&measured.blocks[at], |event, part| {
                if let Some(bit) = bit_of[event.thread as usize].filter(|_| part != StackSum::default()) {
                    sets[event.stack as usize * words + bit / 64] |= 1 << (bit % 64);
                }
            });
        },
    );
    joined(parts).unwrap_or_default()
}

/// Union of lists of sets, set by set.
fn joined(parts: Vec<Vec<u64>>) -> Option<Vec<u64>> {
    parts.into_iter().reduce(|mut all, part| {
        all.iter_mut().zip(part).for_each(|(all, more)| *all |= more);
        all
    })
}
