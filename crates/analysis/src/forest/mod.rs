//! The view `tree`: the trees of threads, merged top-down and walked node by node.
//!
//! Nodes are merged only when they are visited. A node of the merged tree is the set of the
//! threads' nodes on the same path. Its children are found by sorting the children of these nodes.
//! So the memory consists of the decoded trees and the current path with its siblings, and the cost
//! of a pruned tree depends on the part that is shown.

mod loaded;
mod over_time;
mod share;
mod walk;

use std::sync::{Arc, OnceLock};

use clrscope_recording::model::{Recording, Thread};

use crate::allocations_by_call::{self, AllocationPaths, AllocationTree, CallAllocations};
use crate::catalog::{Catalog, Slot};
use crate::columns::Columns;
use crate::function::FunctionRef;
use crate::metric::{Amount, Metric};
use crate::metric_events::MetricEvents;
use crate::paths::{self, Paths, ThreadPaths};
use crate::query::{Query, QueryProblem, Sort};
use crate::stack_trees::{EventFilter, StackTree, StateAmounts, StateTimes};
use crate::time_states::{TimeStates, has_states};
use crate::times::Times;
use crate::views::conditions::{Conditions, conditions_of};
use crate::views::process::totals;
use walk::{NameOrder, ThreadTrees, Walk, load};

pub use over_time::NodePiece;

/// One node of the view `tree`. Nodes come in preorder: the children of a node at depth d are the
/// nodes at depth d + 1 that follow it, up to the next node at depth d or less.
#[derive(Debug, Clone)]
pub struct TreeNode<'a> {
    /// Depth of the node; 0 for the outermost functions.
    pub depth: u32,
    /// Number of the node's children that are shown.
    pub children: u32,
    /// The function.
    pub function: FunctionRef<'a>,
    /// The thread in per-thread reports; `None` if threads are merged.
    pub thread: Option<&'a Thread>,
    /// Calls and times of this path, if the metric is one of `calls`. Inclusive values cover the
    /// whole subtree.
    pub times: Times,
    /// Amount of the metric: the path's own amount, and the total of the whole subtree.
    pub amount: Amount,
    /// Times by state: the node's own, and those of the whole subtree. `None` unless the walk asked
    /// for them.
    pub states: Option<Box<[StateTimes; 2]>>,
    /// Objects that the path allocated, if allocations were recorded alongside calls. Boxed,
    /// because most nodes have none.
    pub allocated: Option<Box<CallAllocations>>,
    /// Whether this node was first reached by a tail call on every merged path. The function that
    /// made the call has ended by then: it is a sibling.
    pub by_tail_call: bool,
    /// The function's slot within its process.
    pub(crate) slot: Slot,
}

/// Identifies a node of a process's merged tree by indices: its index among the roots, then the
/// index among the children at each level.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct TreePlace {
    /// Id of the process.
    pub pid: u32,
    /// Indices, outermost level first.
    pub places: Vec<u32>,
}

/// Pruning options of a tree, which keep it readable.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TreeOptions {
    /// Nodes with a smaller share of the metric are left out, with everything below them. If the
    /// metric has no totals, the share of the time counts instead.
    pub min_share: f64,
    /// Nodes at this depth and beyond are left out; `None` keeps all.
    pub max_depth: Option<u32>,
}

/// Paths that were left out of a tree.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PrunedPaths {
    /// Number of subtrees that were left out. The nodes within them are not counted.
    pub subtrees: u64,
    /// Total of these subtrees. It is an amount of the metric that determines the size of paths,
    /// see [`Metric::sizes`].
    pub total: u64,
}

impl PrunedPaths {
    fn add(&mut self, other: Self) {
        self.subtrees = self.subtrees.saturating_add(other.subtrees);
        self.total = self.total.saturating_add(other.total);
    }
}

/// The view `tree` with all nodes at once. For a large tree use [`Forest::walk`] instead.
#[derive(Debug, Clone, Default)]
pub struct Tree<'a> {
    /// The nodes in preorder.
    pub nodes: Vec<TreeNode<'a>>,
    /// Paths that the options left out.
    pub pruned: PrunedPaths,
    /// How the selected part was recorded, and its totals.
    pub conditions: Conditions<'a>,
}

/// The merged trees of the selected part of a recording, for walks.
pub struct Forest<'a> {
    paths: Vec<Paths<'a>>,
    /// Allocations of the same processes in the same order. Empty if the metric is not one of
    /// `calls`, or if no allocations were recorded.
    allocations: Vec<AllocationPaths<'a>>,
    query: Query,
    sort: Sort,
    conditions: Conditions<'a>,
    /// Trees that [`walk_again`](Self::walk_again) keeps, process by process.
    kept: OnceLock<Vec<DecodedTrees<'a>>>,
    /// Amounts by state, for the trees that are kept.
    states: OnceLock<Vec<Vec<Arc<StateAmounts>>>>,
}

/// Trees of one process that are kept decoded.
struct DecodedTrees<'a> {
    names: NameOrder<'a>,
    columns: Columns,
    sets: Vec<(ThreadTrees, Option<&'a Thread>)>,
}

/// Trees of a process, for drawing pictures.
pub(crate) struct PictureTrees<'f, 'a> {
    pub(crate) catalog: &'f Catalog<'a>,
    /// Functions whose outermost nodes are the roots, by slot; `None` if all functions count.
    pub(crate) wanted: Option<&'f [bool]>,
    /// The trees; empty for `calls`.
    pub(crate) trees: Vec<&'f Arc<StackTree>>,
    /// Amounts of the trees by state; empty if states are not known.
    pub(crate) states: &'f [Arc<StateAmounts>],
}

impl<'a> Forest<'a> {
    /// Trees of each process, for drawing pictures; they are kept decoded.
    pub(crate) fn picture_trees(&self) -> Vec<PictureTrees<'_, 'a>> {
        let states = self.states();
        (self.kept().iter().enumerate())
            .map(|(at, kept)| PictureTrees {
                catalog: &kept.names.catalog,
                wanted: kept.names.wanted(),
                trees: kept.sets.iter().flat_map(|(decoded, _)| decoded.stack_trees()).collect(),
                states: states.get(at).map_or(&[], Vec::as_slice),
            })
            .collect()
    }

    /// Whether the metric is one of `calls`, whose trees were recorded.
    pub(crate) fn is_of_calls(&self) -> bool {
        self.conditions.metric.is_of_calls()
    }

    /// Sort keys that trees support. Other keys would need the children of a node before the node.
    pub const SORTS: [Sort; 8] = [
        Sort::Own,
        Sort::Total,
        Sort::Inclusive,
        Sort::InclusiveCpu,
        Sort::Exclusive,
        Sort::Calls,
        Sort::Name,
        Sort::Module,
    ];

    /// Selects trees. With function or module filters, the roots are the outermost nodes that
    /// match. Children are ordered by their total of the metric unless the query sorts by `self`,
    /// `inclusive`, `calls`, `exclusive` (as measured), `inclusive-cpu`, `name` or `module`.
    ///
    /// # Errors
    /// When the query selects no process or thread, a part of the time that the metric does not
    /// support, a metric that was not recorded, or an order that trees do not have.
    pub fn open(recording: &'a Recording, query: &Query) -> Result<Self, QueryProblem> {
        let metric = Metric::of_paths(recording, query, "tree")?;
        let sort = query.order(metric, "tree", Sort::Total)?;
        if !Self::SORTS.contains(&sort) {
            let why =
                "its nodes can be ordered by total, self, inclusive, inclusive-cpu, exclusive, calls, name or module";
            return Err(QueryProblem::NotAvailable { option: "this --sort", view: "tree", why });
        }
        let paths = paths::select(recording, query, metric)?;
        let allocations = allocations_by_call::select(recording, query, metric)?;
        let plain = Query { per_thread: false, ..query.clone() };
        let totals: Vec<_> = paths.iter().map(|p| (p.process, totals(p, &plain))).collect();
        let conditions = conditions_of(recording, query, metric, &totals);
        Ok(Self {
            paths,
            allocations,
            query: query.clone(),
            sort,
            conditions,
            kept: OnceLock::new(),
            states: OnceLock::new(),
        })
    }

    /// Whether nodes have allocations.
    #[must_use]
    pub fn has_allocations(&self) -> bool {
        !self.allocations.is_empty()
    }

    /// How the selected part was recorded, and its totals.
    #[must_use]
    pub fn conditions(&self) -> &Conditions<'a> {
        &self.conditions
    }

    /// Calls `visit` with every node in preorder, process by process, and in per-thread queries
    /// thread by thread. Stops at the first error of `visit`.
    ///
    /// # Errors
    /// The error of `visit`.
    pub fn walk<E>(
        &self,
        options: &TreeOptions,
        mut visit: impl FnMut(&TreeNode<'a>) -> Result<(), E>,
    ) -> Result<PrunedPaths, E> {
        let mut pruned = PrunedPaths::default();
        for (at, paths) in self.paths.iter().enumerate() {
            let names = NameOrder::new(paths, &self.query);
            let columns = Columns::new(paths, &names.catalog, &self.query);
            for (threads, shown) in self.sets(paths) {
                let decoded = self.load(at, (threads, shown), &names, &columns);
                let mut walk = Walk::new(self, &names, columns.clone(), &decoded, shown, options);
                walk.run(&mut visit)?;
                pruned.add(walk.pruned);
            }
        }
        Ok(pruned)
    }

    /// Like [`walk`](Self::walk), for repeated walks: the trees are kept decoded, so that the cost
    /// of a walk depends on the part that is shown. `below` limits the walk to one node and its
    /// subtree, and the smallest share then relates to that node. If there is no such node, nothing
    /// is visited.
    ///
    /// # Errors
    /// The error of `visit`.
    pub fn walk_again<E>(
        &self,
        below: Option<&TreePlace>,
        options: &TreeOptions,
        visit: impl FnMut(&TreeNode<'a>) -> Result<(), E>,
    ) -> Result<PrunedPaths, E> {
        self.walk_kept(below, options, &[], visit)
    }

    /// Like [`walk_again`](Self::walk_again), with the times of each node by state, if states are
    /// known ([`has_states`](Self::has_states)).
    ///
    /// # Errors
    /// The error of `visit`.
    pub fn walk_states<E>(
        &self,
        below: Option<&TreePlace>,
        options: &TreeOptions,
        visit: impl FnMut(&TreeNode<'a>) -> Result<(), E>,
    ) -> Result<PrunedPaths, E> {
        self.walk_kept(below, options, self.states(), visit)
    }

    fn walk_kept<E>(
        &self,
        below: Option<&TreePlace>,
        options: &TreeOptions,
        states: &[Vec<Arc<StateAmounts>>],
        mut visit: impl FnMut(&TreeNode<'a>) -> Result<(), E>,
    ) -> Result<PrunedPaths, E> {
        let mut pruned = PrunedPaths::default();
        for (at, (paths, kept)) in self.paths.iter().zip(self.kept()).enumerate() {
            if below.is_some_and(|place| place.pid != paths.process.pid) {
                continue;
            }
            for (set, (decoded, thread)) in kept.sets.iter().enumerate() {
                let mut walk = Walk::new(self, &kept.names, kept.columns.clone(), decoded, *thread, options);
                walk.states = states.get(at).and_then(|states| states.get(set)).map(Arc::as_ref);
                match below {
                    None => walk.run(&mut visit)?,
                    Some(place) => _ = walk.run_below(&place.places, &mut visit)?,
                }
                pruned.add(walk.pruned);
            }
        }
        Ok(pruned)
    }

    /// A forest of only the large paths, if building all trees from stacks would take long;
    /// otherwise `None`. For walks that leave out paths below `least_share` of the whole: these
    /// show the same nodes in either forest.
    #[must_use]
    pub fn peaks(&self, least_share: f64) -> Option<Self> {
        let is_whole = !self.query.filters_functions() && self.allocations.is_empty();
        if !is_whole || self.sort != Sort::Total || self.kept.get().is_some() {
            return None;
        }
        let paths = self.paths.iter().map(|paths| paths.peaks(least_share)).collect::<Option<Vec<_>>>()?;
        let (query, conditions) = (self.query.clone(), self.conditions.clone());
        Some(Self {
            paths,
            allocations: Vec::new(),
            query,
            sort: self.sort,
            conditions,
            kept: OnceLock::new(),
            states: OnceLock::new(),
        })
    }

    /// Whether the times of paths are known by thread state.
    #[must_use]
    pub fn has_states(&self) -> bool {
        has_states(self.conditions.metric)
    }

    /// Amounts by state of the kept trees, for each process and set of threads; empty if states are
    /// not known.
    pub(crate) fn states(&self) -> &[Vec<Arc<StateAmounts>>] {
        if !self.has_states() {
            return &[];
        }
        self.states.get_or_init(|| self.paths.iter().zip(self.kept()).map(|one| self.states_of(one)).collect())
    }

    fn states_of(&self, (paths, kept): (&Paths<'a>, &DecodedTrees<'a>)) -> Vec<Arc<StateAmounts>> {
        let Some(measured) = MetricEvents::for_metric(paths.process, paths.metric) else { return Vec::new() };
        let states = TimeStates::for_process(paths.process, &measured);
        let wanted = EventFilter::new(paths.process, &self.query).with_states(paths.metric, &measured);
        let trees = kept.sets.iter().filter_map(|(decoded, thread)| Some((decoded.stack_trees().next()?, *thread)));
        if !self.query.per_thread {
            return trees.map(|(tree, _)| Arc::new(StateAmounts::of_all(&measured, &states, &wanted, tree))).collect();
        }
        let trees: Vec<_> = trees.collect();
        let Some((first, _)) = trees.first() else { return Vec::new() };
        // All trees have the same shape.
        let mut of_threads = StateAmounts::by_thread(&measured, &states, &wanted, first);
        let index = |thread: Option<&Thread>| {
            let is_it = |known: &Thread| thread.is_some_and(|thread| std::ptr::eq(thread, known));
            paths.process.threads.iter().position(is_it).unwrap_or(paths.process.threads.len())
        };
        trees.iter().map(|(_, thread)| Arc::new(std::mem::take(&mut of_threads[index(*thread)]))).collect()
    }

    /// Builds the trees that [`walk_again`](Self::walk_again) keeps. Without this call, the first
    /// walk builds them.
    pub fn make_trees(&self) {
        self.kept();
    }

    fn kept(&self) -> &[DecodedTrees<'a>] {
        self.kept.get_or_init(|| (0..self.paths.len()).map(|at| self.keep(at)).collect())
    }

    fn keep(&self, at: usize) -> DecodedTrees<'a> {
        let paths = &self.paths[at];
        let names = NameOrder::new(paths, &self.query);
        let columns = Columns::new(paths, &names.catalog, &self.query);
        let sets = self.sets(paths).into_iter();
        let sets = sets.map(|set| (self.load(at, set, &names, &columns), set.1)).collect();
        DecodedTrees { names, columns, sets }
    }

    /// Decodes the trees of some threads of the process with this index, with their allocations.
    fn load(
        &self,
        at: usize,
        (threads, shown): (&[ThreadPaths<'a>], Option<&'a Thread>),
        names: &NameOrder<'a>,
        columns: &Columns,
    ) -> ThreadTrees {
        let beside = self.allocations.get(at).map(|of| AllocationTree::new(of, shown, &names.catalog));
        load(threads, &names.catalog, columns).with_allocations(beside)
    }

    /// The sets of threads that are merged, each with the thread that its nodes name.
    fn sets<'s>(&self, paths: &'s Paths<'a>) -> Vec<(&'s [ThreadPaths<'a>], Option<&'a Thread>)> {
        if self.query.per_thread {
            paths.threads.iter().map(|t| (std::slice::from_ref(t), t.thread)).collect()
        } else {
            vec![(&paths.threads, None)]
        }
    }
}

/// The merged tree as a list of nodes.
///
/// # Errors
/// As for [`Forest::open`].
pub fn tree<'a>(recording: &'a Recording, query: &Query, options: &TreeOptions) -> Result<Tree<'a>, QueryProblem> {
    let forest = Forest::open(recording, query)?;
    let mut nodes = Vec::new();
    let keep = |node: &TreeNode<'a>| -> Result<(), std::convert::Infallible> {
        nodes.push(node.clone());
        Ok(())
    };
    let pruned = match forest.walk(options, keep) {
        Ok(pruned) => pruned,
        Err(never) => match never {},
    };
    Ok(Tree { nodes, pruned, conditions: forest.conditions })
}
