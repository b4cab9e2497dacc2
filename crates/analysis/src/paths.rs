//! Trees of paths from any source, which views sum up and walk.
//!
//! `calls` records trees. Other instruments record stacks, from which a tree is built with one node
//! per distinct path. In both kinds of tree, nodes have a value of the metric. In the trees of
//! `calls` this is wall time, and only these trees also have CPU time and numbers of calls.

use std::sync::{Arc, LazyLock, OnceLock};

use clrscope_recording::model::{CallTree, Process, Recording, StackFrame, Thread, TreeSource};

use crate::catalog::Catalog;
use crate::cpu_within_wall::cpu_within_wall;
use crate::metric::Metric;
use crate::metric_events::MetricEvents;
use crate::query::{Query, QueryProblem};
use crate::samples::FoldedFunctions;
use crate::select::{self, SelectedProcess};
use crate::stack_trees::{Amounts, EventFilter, Shape, StackSum, StackTree, SummedStacks, large_paths};
use crate::time_states::has_states;

/// A tree of paths: of one thread, or of all threads that a query selects.
#[derive(Clone)]
pub(crate) struct ThreadPaths<'a> {
    /// The thread; `None` if the tree merges the paths of several threads.
    pub(crate) thread: Option<&'a Thread>,
    pub(crate) tree: PathTree<'a>,
}

/// Source of a tree of paths.
#[derive(Clone)]
pub(crate) enum PathTree<'a> {
    /// A tree that was recorded.
    Calls(TreeSource),
    /// A tree built from the stacks of one thread.
    Stacks(Arc<StackTree>),
    /// A tree that can be built from the stacks of all threads together.
    Merged(Arc<MergedStacks<'a>>),
}

/// Stacks of all threads together. The tree is built on demand, because sums do not need it.
pub(crate) struct MergedStacks<'a> {
    process: &'a Process,
    metric: &'static Metric,
    /// Name of the folding that is applied.
    folds: &'static str,
    pub(crate) stacks: SummedStacks,
    tree: OnceLock<Arc<StackTree>>,
}

impl MergedStacks<'_> {
    /// The tree.
    pub(crate) fn tree(&self) -> &Arc<StackTree> {
        self.tree.get_or_init(|| {
            let SummedStacks { measured, folded, .. } = &self.stacks;
            let shape = Shape::build(self.process, self.metric, measured, folded.as_ref(), self.folds);
            Arc::new(StackTree { amounts: Amounts::new(&self.stacks, &shape), shape, lumps: Vec::new() })
        })
    }

    /// Whether the tree, or the data from which it is built, already exists.
    pub(crate) fn is_made(&self) -> bool {
        self.tree.get().is_some() || Shape::is_made(self.process, self.metric, self.folds)
    }
}

impl ThreadPaths<'_> {
    /// Builds and returns the tree. Each call builds it again, so call once and drop the tree after
    /// use.
    pub(crate) fn load(&self) -> CallTree {
        match &self.tree {
            PathTree::Calls(tree) => {
                let mut tree = tree.load();
                cpu_within_wall(&mut tree);
                tree
            }
            PathTree::Stacks(tree) => tree.to_call_tree(),
            PathTree::Merged(merged) => merged.tree().to_call_tree(),
        }
    }
}

/// A process with the trees of the threads that a query selects.
pub(crate) struct Paths<'a> {
    pub(crate) process: &'a Process,
    /// A tree for each thread. One tree for all threads if the metric is made of stacks and the
    /// query does not separate threads.
    pub(crate) threads: Vec<ThreadPaths<'a>>,
    pub(crate) metric: &'static Metric,
}

impl<'a> Paths<'a> {
    /// The merged stacks of all threads, if this process has them instead of separate trees.
    pub(crate) fn merged(&self) -> Option<&MergedStacks<'a>> {
        match self.threads.as_slice() {
            [ThreadPaths { tree: PathTree::Merged(merged), .. }] => Some(merged),
            _ => None,
        }
    }

    /// Trees of the large paths only, which have at least `least_share` of the whole. All callees
    /// of a large path are included, but smaller callees have no callees themselves. `None` if the
    /// whole tree is already built from stacks.
    pub(crate) fn peaks(&self, least_share: f64) -> Option<Paths<'a>> {
        let merged = self.merged().filter(|merged| !merged.is_made())?;
        let catalog = Catalog::of_paths(self.process, self.metric);
        let tree = Arc::new(large_paths(&merged.stacks, least_share, has_states(self.metric), |function| {
            catalog.slot(function)
        }));
        let threads = vec![ThreadPaths { thread: None, tree: PathTree::Stacks(tree) }];
        Some(Paths { process: self.process, threads, metric: self.metric })
    }

    /// Sum over the whole tree, if the metric is made of stacks.
    pub(crate) fn sum(&self) -> Option<StackSum> {
        let mut all = StackSum::default();
        for paths in &self.threads {
            match &paths.tree {
                PathTree::Calls(_) => return None,
                PathTree::Stacks(tree) => all.add(tree.amounts.whole()),
                PathTree::Merged(merged) => all.add(merged.stacks.whole()),
            }
        }
        (!self.metric.is_of_calls()).then_some(all)
    }
}

/// Placeholder for events whose thread is not known.
pub(crate) static UNKNOWN: LazyLock<Thread> =
    LazyLock::new(|| Thread { name: "(other threads)".to_owned(), ..Thread::default() });

/// The trees of the processes and threads that a query selects, in the recording's order.
pub(crate) fn select<'a>(
    recording: &'a Recording,
    query: &Query,
    metric: &'static Metric,
) -> Result<Vec<Paths<'a>>, QueryProblem> {
    let paths = |selected: SelectedProcess<'a>| {
        let threads = match metric.is_of_calls() {
            true => of_calls(&selected),
            false => of_stacks(recording, selected.process, query, metric).unwrap_or_default(),
        };
        Paths { process: selected.process, threads, metric }
    };
    Ok(select::threads(recording, query)?.into_iter().map(paths).collect())
}

fn of_calls<'a>(selected: &SelectedProcess<'a>) -> Vec<ThreadPaths<'a>> {
    let paths = |&thread: &&'a Thread| ThreadPaths { thread: Some(thread), tree: PathTree::Calls(thread.tree.clone()) };
    selected.threads.iter().map(paths).collect()
}

/// Trees of the events that a query selects: events of the selected threads, and events whose
/// thread is not known.
fn of_stacks<'a>(
    recording: &Recording,
    process: &'a Process,
    query: &Query,
    metric: &'static Metric,
) -> Option<Vec<ThreadPaths<'a>>> {
    let folds = FoldedFunctions::name(query);
    if !query.per_thread {
        let stacks = SummedStacks::for_metric(recording, process, query, metric)?;
        let merged = MergedStacks { process, metric, folds, stacks, tree: OnceLock::new() };
        return Some(vec![ThreadPaths { thread: None, tree: PathTree::Merged(Arc::new(merged)) }]);
    }
    let StackPaths { measured, folded } = StackPaths::for_metric(recording, process, query, metric)?;
    let shape = Shape::build(process, metric, &measured, folded.as_ref(), folds);
    let wanted = EventFilter::new(process, query).with_states(metric, &measured);
    let tree =
        |amounts| PathTree::Stacks(Arc::new(StackTree { shape: Arc::clone(&shape), amounts, lumps: Vec::new() }));
    let threads = process.threads.iter().map(|thread| (thread, query.wants_thread(thread))).chain([(&*UNKNOWN, false)]);
    let all = threads.zip(Amounts::by_thread(&measured, &shape, &wanted));
    let selected = all.filter(|((_, is_wanted), amounts)| *is_wanted || !amounts.is_empty());
    Some(selected.map(|((thread, _), amounts)| ThreadPaths { thread: Some(thread), tree: tree(amounts) }).collect())
}

/// Events of a metric in a process, and the paths of their stacks as in its trees.
pub(crate) struct StackPaths {
    pub(crate) measured: Arc<MetricEvents>,
    folded: Option<FoldedFunctions>,
}

impl StackPaths {
    /// Reads the events of a process; `None` if the metric is not made of events.
    pub(crate) fn for_metric(
        recording: &Recording,
        process: &Process,
        query: &Query,
        metric: &'static Metric,
    ) -> Option<Self> {
        let measured = MetricEvents::for_metric(process, metric)?;
        let folded = FoldedFunctions::for_query(recording, process, query, metric);
        Some(Self { measured, folded })
    }

    /// Writes the functions of a stack of the events into `path`, the innermost first. Function 0
    /// represents an unknown stack, for the missing frames of a truncated stack, and for frames
    /// without a function.
    pub(crate) fn path(&self, stack: u32, path: &mut Vec<u32>) {
        let (table, number) = (&self.measured.table, self.measured.number_in_table(stack));
        path.clear();
        path.extend(table.frames(number).map(function_of));
        if path.is_empty() || table.is_cut(number) {
            path.push(0);
        }
        if let Some(folded) = &self.folded {
            folded.fold(path);
        }
    }
}

/// Sums of the selected events, by stack number of the process.
pub(crate) fn sums_of_stacks(
    recording: &Recording,
    process: &Process,
    query: &Query,
    metric: &'static Metric,
) -> Vec<(u32, StackSum)> {
    let stacks = SummedStacks::for_metric(recording, process, query, metric);
    stacks.iter().flat_map(SummedStacks::by_number).collect()
}

fn function_of(frame: StackFrame) -> u32 {
    match frame {
        StackFrame::Method { function, .. } => function,
        _ => 0,
    }
}
