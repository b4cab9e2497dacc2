//! Trees of paths, whatever they are made from: what views sum up and walk.
//!
//! `calls` records trees. Other instruments record stacks, and a tree is made of those: a node per distinct path, measured by
//! the metric. The sums know one kind of tree: its nodes have a value of the metric, which in the trees of `calls` is wall
//! time; CPU time and calls stand beside it there, and nowhere else.

use std::sync::LazyLock;

use clrscope_recording::model::{
    CallTree, CallTreeBuilder, Node, NodeFlags, NodeValues, Process, ROOT, Recording, StackFrame, Thread, TreeSource,
};
use rustc_hash::FxHashMap;

use crate::allocations::is_wanted;
use crate::metric::{Metric, Source, StackEvent, StackEvents};
use crate::query::{Query, QueryProblem};
use crate::samples::Folded;
use crate::select::{self, Selected};

/// A thread with the tree of its paths.
#[derive(Clone)]
pub(crate) struct ThreadPaths<'a> {
    pub(crate) thread: &'a Thread,
    tree: TreeSource,
}

impl ThreadPaths<'_> {
    /// The tree. Decoded again at each call: ask once and drop it after use.
    pub(crate) fn load(&self) -> CallTree {
        self.tree.load()
    }
}

/// A process with the trees of the threads that a query means.
pub(crate) struct Paths<'a> {
    pub(crate) process: &'a Process,
    pub(crate) threads: Vec<ThreadPaths<'a>>,
    pub(crate) metric: &'static Metric,
}

/// The thread of events whose thread is not known.
pub(crate) static UNKNOWN: LazyLock<Thread> =
    LazyLock::new(|| Thread { name: "(other threads)".to_owned(), ..Thread::default() });

/// The trees of the processes and threads that a query means, in the recording's order.
pub(crate) fn select<'a>(
    recording: &'a Recording,
    query: &Query,
    metric: &'static Metric,
) -> Result<Vec<Paths<'a>>, QueryProblem> {
    let paths = |selected: Selected<'a>| {
        let threads = match StackPaths::of(recording, selected.process, query, metric) {
            None => of_calls(&selected),
            Some(stacks) => of_stacks(&selected, query, &stacks),
        };
        Paths { process: selected.process, threads, metric }
    };
    Ok(select::threads(recording, query)?.into_iter().map(paths).collect())
}

fn of_calls<'a>(selected: &Selected<'a>) -> Vec<ThreadPaths<'a>> {
    selected.threads.iter().map(|&thread| ThreadPaths { thread, tree: thread.tree.clone() }).collect()
}

/// Trees of the events that a query means, for the selected threads and for events whose thread is not known.
fn of_stacks<'a>(selected: &Selected<'a>, query: &Query, stacks: &StackPaths) -> Vec<ThreadPaths<'a>> {
    let all = &selected.process.threads;
    let sums = sums_by_thread(selected.process, query, &stacks.found);
    let tree = |number: usize| {
        let first = sums.partition_point(|((thread, _), _)| *thread < number);
        let mine = sums[first..].iter().take_while(|((thread, _), _)| *thread == number);
        TreeSource::ready(tree_of(stacks, mine.map(|&((_, stack), sum)| (stack, sum))))
    };
    let is_selected = |thread: &Thread| selected.threads.iter().any(|known| std::ptr::eq(*known, thread));
    let known = all.iter().enumerate().filter(|(_, thread)| is_selected(thread));
    let unknown = (query.wants_thread_if_known(None)).then_some((all.len(), &*UNKNOWN));
    let unknown = unknown.filter(|(number, _)| sums.last().is_some_and(|((thread, _), _)| thread == number));
    known.chain(unknown).map(|(number, thread)| ThreadPaths { thread, tree: tree(number) }).collect()
}

/// Sums by thread, with the number of threads for those that are not known, and stack, in this order.
fn sums_by_thread(process: &Process, query: &Query, found: &StackEvents) -> Vec<((usize, u32), StackSum)> {
    let threads = process.threads.len();
    let mut sums: FxHashMap<(usize, u32), StackSum> = FxHashMap::default();
    for (event, part) in found.events.iter().filter_map(|event| Some((event, wanted_part(process, query, event)?))) {
        sums.entry(((event.thread as usize).min(threads), event.stack)).or_default().add(part);
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_unstable();
    sums
}

/// Events of a metric in a process, and the paths of their stacks as its trees have them.
pub(crate) struct StackPaths {
    pub(crate) found: StackEvents,
    folded: Option<Folded>,
}

impl StackPaths {
    /// The events of a process; `None` where the metric is not made of events.
    pub(crate) fn of(recording: &Recording, process: &Process, query: &Query, metric: &'static Metric) -> Option<Self> {
        let Source::Stacks { read, .. } = metric.source else { return None };
        // A reader makes one arena of an instrument, and a damaged recording has none.
        let arena = process.arenas(metric.instrument).next();
        let found = arena.map_or_else(StackEvents::default, |arena| read(process, arena));
        let folded = metric.is_sampled().then(|| Folded::of(recording, process, query)).flatten();
        Some(Self { found, folded })
    }

    /// Puts the functions of a stack into `path`, the innermost first. A stack that is not known, and the missing frames of one
    /// that was cut, are a frame of function 0, as are frames of no function.
    pub(crate) fn path(&self, stack: u32, path: &mut Vec<u32>) {
        path.clear();
        path.extend(self.found.table.frames(stack).map(function_of));
        if path.is_empty() || self.found.table.is_cut(stack) {
            path.push(0);
        }
        if let Some(folded) = &self.folded {
            folded.fold(path);
        }
    }
}

/// Sums by stack of the events that a query means in a process, in the order of threads.
pub(crate) fn sums_of_stacks(process: &Process, query: &Query, metric: &Metric) -> Vec<(u32, StackSum)> {
    let Source::Stacks { read, .. } = metric.source else { return Vec::new() };
    let arena = process.arenas(metric.instrument).next();
    let found = arena.map_or_else(StackEvents::default, |arena| read(process, arena));
    let sums = sums_by_thread(process, query, &found).into_iter();
    let wanted = sums.filter(|((thread, _), _)| query.wants_thread_if_known(process.threads.get(*thread)));
    wanted.map(|((_, stack), sum)| (stack, sum)).collect()
}

/// Amounts and samples that are added up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct StackSum {
    pub(crate) amount: u64,
    pub(crate) samples: u64,
}

impl StackSum {
    pub(crate) fn add(&mut self, other: Self) {
        self.amount = self.amount.saturating_add(other.amount);
        self.samples = self.samples.saturating_add(other.samples);
    }
}

/// The part of an event that lies in the time that a query wants; `None` where nothing of it does, and for idle threads.
pub(crate) fn wanted_part(process: &Process, query: &Query, event: &StackEvent) -> Option<StackSum> {
    let is_idle = event.idle && query.threads.is_empty();
    if is_idle || !is_wanted(&query.types, process, event.object_type) {
        return None;
    }
    let whole = StackSum { amount: event.amount, samples: event.samples };
    let (first, last) = (event.time_ns, event.time_ns.saturating_add(event.lasted_ns));
    let within = query.wanted_ns(process, first, last)?;
    if within >= event.lasted_ns {
        return Some(whole);
    }
    let part = |of: u64| (u128::from(of) * u128::from(within) / u128::from(event.lasted_ns)) as u64;
    Some(StackSum { amount: part(whole.amount), samples: part(whole.samples).max(1) })
}

/// One tree of stacks with their amounts.
fn tree_of(stacks: &StackPaths, amounts: impl Iterator<Item = (u32, StackSum)>) -> CallTree {
    let mut nodes: Vec<(u32, u32, StackSum)> = vec![(ROOT, 0, StackSum::default())];
    let mut children: FxHashMap<(u32, u32), u32> = FxHashMap::default();
    let mut path: Vec<u32> = Vec::new();
    for (stack, amount) in amounts {
        stacks.path(stack, &mut path);
        let node = path.iter().rev().fold(ROOT, |parent, &function| {
            *children.entry((parent, function)).or_insert_with(|| {
                nodes.push((parent, function, StackSum::default()));
                nodes.len() as u32 - 1
            })
        });
        nodes[node as usize].2.add(amount);
    }
    let mut builder = CallTreeBuilder::default();
    for (parent, function, sum) in nodes {
        // Where trees of `calls` have CPU time, those of samples have numbers of samples.
        let values = NodeValues { metric: sum.amount, cpu_ns: sum.samples };
        builder.push(Node { parent, function, calls: 0, values, flags: NodeFlags::default() });
    }
    builder.finish().in_preorder().into_owned()
}

fn function_of(frame: StackFrame) -> u32 {
    match frame {
        StackFrame::Method { function, .. } => function,
        _ => 0,
    }
}
