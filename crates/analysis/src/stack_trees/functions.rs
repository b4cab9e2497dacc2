//! Sums by function over the stacks of events, computed in one walk for any number of threads.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use clrscope_recording::model::Thread;
use clrscope_recording::parallel::fold;

use super::amounts::{EventFilter, StackSum, SummedStacks};
use super::stack_visitor::{Frame, StackVisitor};
use crate::catalog::Catalog;
use crate::metric_events::MetricEvents;

/// Threads that are distinguished in one walk.
const THREADS: usize = 512;

/// Sums of one function.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct FunctionSum {
    pub(crate) own: StackSum,
    /// Sum of the outermost frames, callees included.
    pub(crate) total: StackSum,
    pub(crate) max_recursion: u32,
    /// Number of threads with a wanted event whose stack has the function.
    pub(crate) threads: u32,
    /// Number of frames of the function on the current path.
    open: u32,
}

/// Sums of one thread.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ThreadSum {
    pub(crate) sum: StackSum,
    /// Largest number of functions on a stack.
    pub(crate) max_depth: u32,
    is_there: bool,
}

/// Sums of a process by function, and by thread.
pub(crate) struct FunctionSums {
    /// By slot.
    pub(crate) functions: Vec<FunctionSum>,
    /// By thread index; the last entry is for unknown threads.
    pub(crate) threads: Vec<ThreadSum>,
}

impl FunctionSums {
    /// Computes the sums, and the result of another visitor on the same walk.
    pub(crate) fn new<A: StackVisitor>(
        stacks: &SummedStacks,
        wanted: &EventFilter<'_>,
        catalog: &Catalog<'_>,
        more: A,
    ) -> (Self, A::Acc) {
        let measured = &*stacks.measured;
        let met = threads_met(measured, wanted);
        // A single thread is on all stacks.
        let mut groups = if met.len() > 1 { met.chunks(THREADS) } else { [].chunks(THREADS) };
        let depths = (0..measured.stacks()).map(|_| AtomicU32::new(0)).collect();
        let by_function = ByFunction { slots: catalog.len() };
        let first = ThreadsOf::new(measured, wanted, groups.next().unwrap_or_default(), catalog.len());
        let depths = Depths { catalog, depths };
        let what = (by_function, ((first, depths), more));
        let (mut functions, ((found, ()), more_found)) = stacks.visit_stacks(catalog, &what);
        let ((first, depths), _) = what.1;
        if met.len() > 1 {
            first.count(&found, &mut functions);
        } else {
            functions.iter_mut().for_each(|sum| sum.threads = u32::from(sum.total != StackSum::default()));
        }
        for group in groups {
            let threads = ThreadsOf::new(measured, wanted, group, catalog.len());
            threads.count(&stacks.visit_stacks(catalog, &threads), &mut functions);
        }
        (Self { functions, threads: thread_sums(measured, wanted, &depths.depths) }, more_found)
    }

    /// The threads of a process that have events, each with its sums. `unknown` is included if
    /// there are events of unknown threads.
    pub(crate) fn by_thread<'a>(
        &self,
        threads: &'a [Thread],
        unknown: &'a Thread,
    ) -> impl Iterator<Item = (&'a Thread, ThreadSum)> {
        let is_there = self.threads.last().is_some_and(|last| last.is_there);
        threads.iter().chain(is_there.then_some(unknown)).zip(self.threads.iter().copied())
    }
}

/// Sums by slot.
struct ByFunction {
    slots: usize,
}

impl StackVisitor for ByFunction {
    type Acc = Vec<FunctionSum>;
    type Inherited = ();

    fn begin(&self) -> Self::Acc {
        vec![FunctionSum::default(); self.slots]
    }

    fn outside(&self) {}

    #[inline]
    fn enter(&self, sums: &mut Self::Acc, (): (), frame: &Frame) {
        sums[frame.slot as usize].open += 1;
    }

    #[inline]
    fn stack(&self, sums: &mut Self::Acc, (): (), frame: &Frame, _: u32, sum: StackSum) {
        sums[frame.slot as usize].own.add(sum);
    }

    #[inline]
    fn leave(&self, sums: &mut Self::Acc, (): (), frame: &Frame, sum: StackSum) {
        let function = &mut sums[frame.slot as usize];
        if sum != StackSum::default() {
            function.max_recursion = function.max_recursion.max(function.open);
        }
        function.open -= 1;
        if function.open == 0 {
            function.total.add(sum);
        }
    }

    fn join(&self, all: &mut Self::Acc, part: Self::Acc) {
        for (sum, more) in all.iter_mut().zip(part) {
            sum.own.add(more.own);
            sum.total.add(more.total);
            sum.max_recursion = sum.max_recursion.max(more.max_recursion);
        }
    }
}

/// Finds the number of functions on each stack.
struct Depths<'c> {
    catalog: &'c Catalog<'c>,
    /// By number of the stack among the events' stacks.
    depths: Vec<AtomicU32>,
}

impl StackVisitor for Depths<'_> {
    type Acc = ();
    type Inherited = u32;

    fn begin(&self) {}

    fn outside(&self) -> u32 {
        0
    }

    #[inline]
    fn enter(&self, (): &mut (), caller: u32, frame: &Frame) -> u32 {
        caller + u32::from(self.catalog.role(frame.slot).is_call())
    }

    #[inline]
    fn stack(&self, (): &mut (), here: u32, _: &Frame, stack: u32, _: StackSum) {
        self.depths[stack as usize].store(here, Ordering::Relaxed);
    }

    fn leave(&self, (): &mut (), _: u32, _: &Frame, _: StackSum) {}
    fn join(&self, (): &mut (), (): ()) {}
}

/// Indices of the threads with wanted events.
fn threads_met(measured: &MetricEvents, wanted: &EventFilter<'_>) -> Vec<usize> {
    let new = || vec![false; wanted.threads.len()];
    let parts = fold(measured.blocks.len(), new, |met, at| {
        wanted.each(&measured.blocks[at], |event, _| met[event.thread as usize] = true);
    });
    (0..wanted.threads.len()).filter(|&thread| parts.iter().any(|met| met[thread])).collect()
}

fn thread_sums(measured: &MetricEvents, wanted: &EventFilter<'_>, depths: &[AtomicU32]) -> Vec<ThreadSum> {
    let new = || vec![ThreadSum::default(); wanted.threads.len()];
    let parts = fold(measured.blocks.len(), new, |sums, at| {
        wanted.each(&measured.blocks[at], |event, part| {
            let sum = &mut sums[event.thread as usize];
            sum.sum.add(part);
            sum.max_depth = sum.max_depth.max(depths[event.stack as usize].load(Ordering::Relaxed));
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

/// Sets of threads of a group, by function.
struct ThreadsOf {
    /// Words per set; 0 if threads are not counted.
    words: usize,
    slots: usize,
    /// By number of the stack among the events' stacks. All workers fill one shared list, because
    /// memory does not allow a list per worker.
    of_stacks: Vec<AtomicU64>,
}

/// Entry of a frame that no thread was found for yet.
const NO_SET: u32 = u32::MAX;

/// Sets of the threads found so far, by slot, and for the frames on the path.
struct ThreadSets {
    functions: Vec<u64>,
    /// For each frame, the index of its set in `sets`. Most frames have a single callee and reuse
    /// its set.
    path: Vec<u32>,
    sets: Vec<u64>,
}

impl ThreadsOf {
    fn new(measured: &MetricEvents, wanted: &EventFilter<'_>, group: &[usize], slots: usize) -> Self {
        let words = group.len().div_ceil(64);
        let mut bit_of = vec![None; wanted.threads.len()];
        for (bit, &thread) in group.iter().enumerate() {
            bit_of[thread] = Some(bit);
        }
        let of_stacks = if words == 0 { Vec::new() } else { threads_of_stacks(measured, wanted, &bit_of, words) };
        Self { words, slots, of_stacks }
    }

    /// Adds the number of threads to each function.
    fn count(&self, found: &ThreadSets, functions: &mut [FunctionSum]) {
        for (sum, set) in functions.iter_mut().zip(found.functions.chunks(self.words.max(1))) {
            sum.threads += set.iter().map(|word| word.count_ones()).sum::<u32>();
        }
    }
}

impl StackVisitor for ThreadsOf {
    type Acc = ThreadSets;
    type Inherited = ();

    fn begin(&self) -> ThreadSets {
        ThreadSets { functions: vec![0; self.slots * self.words], path: Vec::new(), sets: Vec::new() }
    }

    fn outside(&self) {}

    #[inline]
    fn enter(&self, found: &mut ThreadSets, (): (), _: &Frame) {
        if self.words > 0 {
            found.path.push(NO_SET);
        }
    }

    #[inline]
    fn stack(&self, found: &mut ThreadSets, (): (), _: &Frame, stack: u32, _: StackSum) {
        let Some(top) = found.path.last_mut() else { return };
        let set = self.of_stacks[stack as usize * self.words..][..self.words].iter();
        let set = set.map(|word| word.load(Ordering::Relaxed));
        if *top == NO_SET {
            *top = (found.sets.len() / self.words) as u32;
            found.sets.extend(set);
        } else {
            let all = &mut found.sets[*top as usize * self.words..];
            all.iter_mut().zip(set).for_each(|(all, more)| *all |= more);
        }
    }

    #[inline]
    fn leave(&self, found: &mut ThreadSets, (): (), frame: &Frame, _: StackSum) {
        let Some(mine) = found.path.pop().filter(|mine| *mine != NO_SET) else { return };
        let (others, set) = found.sets.split_at_mut(mine as usize * self.words);
        add_set(&mut found.functions[frame.slot as usize * self.words..], &set[..self.words]);
        match found.path.last_mut() {
            Some(caller) if *caller == NO_SET => *caller = mine,
            Some(caller) => {
                add_set(&mut others[*caller as usize * self.words..], &set[..self.words]);
                found.sets.truncate(mine as usize * self.words);
            }
            None => found.sets.clear(),
        }
    }

    fn join(&self, all: &mut ThreadSets, part: ThreadSets) {
        add_set(&mut all.functions, &part.functions);
    }
}

/// Adds the members of one set to another, up to the shorter length.
#[inline]
fn add_set(all: &mut [u64], more: &[u64]) {
    all.iter_mut().zip(more).for_each(|(all, more)| *all |= more);
}

/// Finds the set of threads with events on each stack.
fn threads_of_stacks(
    measured: &MetricEvents,
    wanted: &EventFilter<'_>,
    bit_of: &[Option<usize>],
    words: usize,
) -> Vec<AtomicU64> {
    let sets: Vec<AtomicU64> = (0..measured.stacks() * words).map(|_| AtomicU64::new(0)).collect();
    fold(
        measured.blocks.len(),
        || (),
        |(), at| {
            wanted.each(&measured.blocks[at], |event, part| {
                let Some(bit) = bit_of[event.thread as usize].filter(|_| part != StackSum::default()) else { return };
                let (word, bit) = (&sets[event.stack as usize * words + bit / 64], 1 << (bit % 64));
                // Most bits are set already.
                if word.load(Ordering::Relaxed) & bit == 0 {
                    word.fetch_or(bit, Ordering::Relaxed);
                }
            });
        },
    );
    sets
}
