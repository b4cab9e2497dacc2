//! Trees of paths, whatever they are made from: what views sum up and walk.
//!
//! `calls` records trees. Other instruments record stacks, and a tree is made of those: a node per distinct path, measured by
//! the metric. The sums know one kind of tree: its nodes have a value of the metric, which in the trees of `calls` is wall
//! time; CPU time and calls stand beside it there, and nowhere else.

use std::sync::LazyLock;

use clrscope_recording::model::{
    CallTree, CallTreeBuilder, Node, NodeFlags, NodeValues, Process, ROOT, Recording, StackFrame, Stacks, Thread,
    TreeSource,
};
use rustc_hash::FxHashMap;

use crate::metric::{Metric, Source, StackEvents};
use crate::query::{Query, QueryProblem};
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
static UNKNOWN: LazyLock<Thread> = LazyLock::new(Thread::default);

/// The trees of the processes and threads that a query means, in the recording's order.
pub(crate) fn select<'a>(
    recording: &'a Recording,
    query: &Query,
    metric: &'static Metric,
) -> Result<Vec<Paths<'a>>, QueryProblem> {
    let paths = |selected: Selected<'a>| {
        let threads = match metric.source {
            Source::Calls(_) => of_calls(&selected),
            Source::Stacks { read, .. } => {
                // A reader makes one arena of an instrument, and a damaged recording has none.
                let arena = selected.process.arenas(metric.instrument).next();
                let found = arena.map_or_else(StackEvents::default, |arena| read(selected.process, arena));
                of_stacks(&selected, query, &found)
            }
        };
        Paths { process: selected.process, threads, metric }
    };
    Ok(select::threads(recording, query)?.into_iter().map(paths).collect())
}

fn of_calls<'a>(selected: &Selected<'a>) -> Vec<ThreadPaths<'a>> {
    selected.threads.iter().map(|&thread| ThreadPaths { thread, tree: thread.tree.clone() }).collect()
}

/// Trees of the events that a query means, for the selected threads and for events whose thread is not known.
fn of_stacks<'a>(selected: &Selected<'a>, query: &Query, found: &StackEvents) -> Vec<ThreadPaths<'a>> {
    let all = &selected.process.threads;
    // By thread, with the number of threads for those that are not known, and stack.
    let mut sums: FxHashMap<(usize, u32), u64> = FxHashMap::default();
    for event in found.events.iter().filter(|event| query.wants_time(event.time_ns)) {
        let sum = sums.entry(((event.thread as usize).min(all.len()), event.stack)).or_default();
        *sum = sum.saturating_add(event.amount);
    }
    let mut sums: Vec<_> = sums.into_iter().collect();
    sums.sort_unstable();
    let tree = |number: usize| {
        let first = sums.partition_point(|((thread, _), _)| *thread < number);
        let mine = sums[first..].iter().take_while(|((thread, _), _)| *thread == number);
        TreeSource::ready(tree_of(&found.table, mine.map(|&((_, stack), amount)| (stack, amount))))
    };
    let is_selected = |thread: &Thread| selected.threads.iter().any(|known| std::ptr::eq(*known, thread));
    let known = all.iter().enumerate().filter(|(_, thread)| is_selected(thread));
    let unknown = (query.wants_thread_if_known(None)).then_some((all.len(), &*UNKNOWN));
    let unknown = unknown.filter(|(number, _)| sums.last().is_some_and(|((thread, _), _)| thread == number));
    known.chain(unknown).map(|(number, thread)| ThreadPaths { thread, tree: tree(number) }).collect()
}

/// One tree of stacks with their amounts. A stack that is not known, and the missing frames of one that was cut, are a frame
/// of function 0, as are frames of no function.
fn tree_of(table: &Stacks, amounts: impl Iterator<Item = (u32, u64)>) -> CallTree {
    let mut nodes: Vec<(u32, u32, u64)> = vec![(ROOT, 0, 0)];
    let mut children: FxHashMap<(u32, u32), u32> = FxHashMap::default();
    let mut path: Vec<u32> = Vec::new();
    for (stack, amount) in amounts {
        path.clear();
        path.extend(table.frames(stack).map(function_of));
        if path.is_empty() || table.is_cut(stack) {
            path.push(0);
        }
        let node = path.iter().rev().fold(ROOT, |parent, &function| {
            *children.entry((parent, function)).or_insert_with(|| {
                nodes.push((parent, function, 0));
                nodes.len() as u32 - 1
            })
        });
        let sum = &mut nodes[node as usize].2;
        *sum = sum.saturating_add(amount);
    }
    let mut builder = CallTreeBuilder::default();
    for (parent, function, amount) in nodes {
        let values = NodeValues { metric: amount, cpu_ns: 0 };
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
