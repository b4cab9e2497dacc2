//! The walk through one merged tree, with an explicit stack instead of recursion.

use std::iter;
use std::num::NonZeroU32;
use std::ops::Range;
use std::sync::Arc;

use clrscope_recording::model::{NodeValues, ROOT, Thread};
use clrscope_recording::parallel::fold;

use super::loaded::{self, FittedCosts, LoadedTree, RangeSums, add_values};
use super::share::{Claim, share_out};
use super::{Forest, PrunedPaths, TreeNode, TreeOptions};
use crate::allocations_by_call::AllocationTree;
use crate::catalog::{Catalog, Role, Slot};
use crate::columns::Columns;
use crate::cost::Hooks;
use crate::metric::{Column, Metric, Source, WALL};
use crate::paths::{PathTree, Paths, ThreadPaths};
use crate::query::{Query, Sort};
use crate::stack_trees::{StackTree, StateAmounts, StateTimes};
use crate::sums::{ByFunction, Summer};
use crate::times::Times;
use crate::views::conditions::share;

/// A node of some thread's tree: number of the tree, number of the node.
type Member = (u32, u32);

/// One node of the merged tree.
#[derive(Debug, Clone)]
struct Group {
    slot: Slot,
    /// Range of its members in the arena.
    members: Range<usize>,
    calls: u64,
    sums: RangeSums,
    /// Inclusive time of the node as shown.
    inclusive_ns: u64,
    /// Sort key of the node.
    key: u64,
    /// Index of the last allocation path that ends here, in the walk's list of these paths.
    allocating: Option<NonZeroU32>,
}

/// Adds an allocation path to the group's linked list.
fn link(all: &mut Vec<(u32, Option<NonZeroU32>)>, group: &mut Group, path: u32) {
    all.push((path, group.allocating));
    group.allocating = u32::try_from(all.len()).ok().and_then(NonZeroU32::new);
}

/// The children of a node on the current path that are still to be visited.
struct Level {
    groups: Range<usize>,
    /// Length of the arena to restore after the groups are visited.
    members: usize,
}

/// Order of names, which all walks through one process share.
pub(super) struct NameOrder<'a> {
    pub(super) catalog: Catalog<'a>,
    /// Whether the query selects each function, by slot; `None` if it selects all.
    wanted: Option<Vec<bool>>,
    /// Rank of each slot in the order of names.
    ranks: Arc<Vec<u32>>,
}

impl<'a> NameOrder<'a> {
    pub(super) fn new(paths: &Paths<'a>, query: &Query) -> Self {
        let catalog = Catalog::of_paths(paths.process, paths.metric);
        let wanted = query.filters_functions().then(|| catalog.wanted(query));
        // The order is the same for every query of the process, except for types.
        let key = if paths.metric.type_leaves { "order of names and types" } else { "order of names" };
        let ranks = paths.process.derived.get(key, || ranks(&catalog));
        Self { catalog, wanted, ranks }
    }

    /// Functions that the query selects, by slot; `None` if it selects all.
    pub(super) fn wanted(&self) -> Option<&[bool]> {
        self.wanted.as_deref()
    }

    /// Whether the query selects the function in a slot.
    pub(super) fn wants(&self, slot: Slot) -> bool {
        self.wanted.as_ref().is_none_or(|wanted| wanted.get(slot as usize) == Some(&true))
    }
}

/// Decoded trees of some threads, with the cost of hooks fitted into the time of each function.
pub(super) struct ThreadTrees {
    trees: Vec<LoadedTree>,
    costs: FittedCosts,
    /// Allocations of the threads; `None` if they were not recorded alongside calls.
    beside: Option<AllocationTree>,
}

impl ThreadTrees {
    /// The trees that are built from stacks.
    pub(super) fn stack_trees(&self) -> impl Iterator<Item = &Arc<StackTree>> {
        self.trees.iter().filter_map(|tree| match tree {
            LoadedTree::Stacks(tree) => Some(tree),
            LoadedTree::Calls(_) => None,
        })
    }

    pub(super) fn with_allocations(self, beside: Option<AllocationTree>) -> Self {
        Self { beside, ..self }
    }
}

/// A walk through the merged tree of some threads of a process.
pub(super) struct Walk<'f, 'a> {
    forest: &'f Forest<'a>,
    /// Nodes with a smaller share of `whole` are left out.
    min_share: f64,
    whole: u64,
    max_depth: Option<u32>,
    /// Number of levels above the outermost shown nodes.
    above: u32,
    thread: Option<&'a Thread>,
    names: &'f NameOrder<'a>,
    columns: Columns,
    costs: &'f FittedCosts,
    beside: Option<&'f AllocationTree>,
    /// Amounts of the tree by state; `None` if the caller does not want them.
    pub(super) states: Option<&'f StateAmounts>,
    trees: &'f [LoadedTree],
    members: Vec<Member>,
    groups: Vec<Group>,
    /// Allocation paths as linked lists, one list per group: each entry has the index of the
    /// previous path of the same group. Few recordings have allocations, and deep trees have many
    /// groups, so that a vector per group would be a waste.
    allocating: Vec<(u32, Option<NonZeroU32>)>,
    path: Vec<Level>,
    scratch: Vec<(Slot, u32, u32)>,
    pub(super) pruned: PrunedPaths,
}

impl<'f, 'a> Walk<'f, 'a> {
    pub(super) fn new(
        forest: &'f Forest<'a>,
        names: &'f NameOrder<'a>,
        columns: Columns,
        decoded: &'f ThreadTrees,
        thread: Option<&'a Thread>,
        options: &TreeOptions,
    ) -> Self {
        let TreeOptions { min_share, max_depth } = *options;
        Self {
            forest,
            min_share,
            whole: size_of_all(forest),
            max_depth,
            above: 0,
            thread,
            names,
            columns,
            costs: &decoded.costs,
            beside: decoded.beside.as_ref(),
            states: None,
            trees: &decoded.trees,
            members: Vec::new(),
            groups: Vec::new(),
            allocating: Vec::new(),
            path: Vec::new(),
            scratch: Vec::new(),
            pruned: PrunedPaths::default(),
        }
    }

    pub(super) fn run<E>(&mut self, visit: &mut impl FnMut(&TreeNode<'a>) -> Result<(), E>) -> Result<(), E> {
        self.start();
        self.visit_path(visit)
    }

    /// Like [`run`](Self::run), for one node and its subtree. The node is given by its index among
    /// the roots, then by the index among the children at each level. Returns whether there is such
    /// a node.
    pub(super) fn run_below<E>(
        &mut self,
        places: &[u32],
        visit: &mut impl FnMut(&TreeNode<'a>) -> Result<(), E>,
    ) -> Result<bool, E> {
        let (min_share, max_depth) = (self.min_share, self.max_depth);
        (self.min_share, self.max_depth) = (0.0, None);
        self.start();
        let Some((last, above)) = places.split_last() else { return Ok(false) };
        for place in above {
            let Some(at) = self.only(*place) else { return Ok(false) };
            if let Some(level) = self.path.last_mut() {
                level.groups = at + 1..at + 1;
            }
            self.expand(at);
        }
        let Some(at) = self.only(*last) else { return Ok(false) };
        (self.min_share, self.max_depth) = (min_share, max_depth);
        self.whole = self.size(&self.groups[at]);
        self.above = above.len() as u32;
        self.visit_path(visit)?;
        Ok(true)
    }

    /// Keeps only the group with this index in the innermost level.
    fn only(&mut self, place: u32) -> Option<usize> {
        let level = self.path.last_mut()?;
        let at = level.groups.start.checked_add(place as usize).filter(|at| level.groups.contains(at))?;
        level.groups = at..at + 1;
        Some(at)
    }

    fn visit_path<E>(&mut self, visit: &mut impl FnMut(&TreeNode<'a>) -> Result<(), E>) -> Result<(), E> {
        while let Some(level) = self.path.last_mut() {
            let Some(at) = level.groups.next() else {
                self.members.truncate(level.members);
                self.path.pop();
                self.groups.truncate(self.path.last().map_or(0, |l| l.groups.end));
                continue;
            };
            let node = self.expand(at);
            visit(&node)?;
        }
        Ok(())
    }

    /// Adds the roots to the current path: the children of the threads, or the outermost selected
    /// nodes.
    fn start(&mut self) {
        let live = (0..self.trees.len() as u32).filter(|&t| self.trees[t as usize].len() > 0);
        if self.names.wanted.is_some() {
            for tree in live {
                let loaded = &self.trees[tree as usize];
                let mut node = 1;
                while node < loaded.len() {
                    if !loaded.is_there(node) {
                        node = loaded.end(node);
                        continue;
                    }
                    let slot = loaded.slot(node, &self.names.catalog);
                    let hit = self.names.wants(slot);
                    if hit {
                        self.scratch.push((slot, tree, node));
                    }
                    node = if hit { loaded.end(node) } else { node + 1 };
                }
            }
            let groups = self.group_scratch(0);
            let allocating = self.beside.map(|beside| beside.outermost(|slot| self.names.wants(slot)));
            self.hand_on(groups.clone(), &allocating.unwrap_or_default());
            self.push_level(groups, 0);
            return;
        }
        self.members = live.map(|tree| (tree, ROOT)).collect();
        let members = 0..self.members.len();
        let mut root = self.group(self.names.catalog.root(), members);
        link(&mut self.allocating, &mut root, AllocationTree::ROOT);
        self.groups.push(root);
        self.expand(0);
    }

    /// Finds the children of a group, distributes its time, adds the children to the current path,
    /// and returns the node.
    fn expand(&mut self, at: usize) -> TreeNode<'a> {
        let group = self.groups[at].clone();
        let members_before = self.members.len();
        self.gather_children(group.members.clone());
        let children = self.group_scratch(members_before);
        let joined = self.beside.map(|beside| {
            let callees = &self.groups[children.clone()];
            beside.join(&self.allocating_of(&group), |slot| {
                callees.binary_search_by_key(&slot, |group| group.slot).is_ok()
            })
        });
        self.hand_on(children.clone(), joined.as_ref().map_or(&[], |joined| &joined.callees));
        let own = self.own_values(group.members.clone());
        let hooks = Hooks {
            leaves: if self.names.catalog.role(group.slot) == Role::Managed { group.calls } else { 0 },
            enters: self.managed_calls(children.clone()),
        };
        let (times, amount) = self.share(&group, own, hooks, children.clone()).by(self.metric());
        let states = self.states.map(|states| Box::new(self.times_by_state(states, group.members.clone())));
        let by_tail_call = self.members[group.members].iter().all(|&(t, n)| self.trees[t as usize].is_by_tail_call(n));
        let depth = self.path.len() as u32;
        let kept = self.push_level(children, members_before);
        TreeNode {
            // The threads themselves are below depth 0 and never shown.
            depth: depth.wrapping_sub(1).wrapping_sub(self.above),
            children: kept,
            slot: group.slot,
            function: self.names.catalog.function(group.slot),
            thread: self.thread,
            times,
            amount,
            states,
            allocated: joined.map(|joined| Box::new(joined.allocated)),
            by_tail_call,
        }
    }

    /// Passes allocation paths to the groups of their functions, which are in the order of slots.
    fn hand_on(&mut self, groups: Range<usize>, callees: &[(Slot, u32)]) {
        let groups = &mut self.groups[groups];
        for &(slot, path) in callees {
            if let Ok(at) = groups.binary_search_by_key(&slot, |group| group.slot) {
                link(&mut self.allocating, &mut groups[at], path);
            }
        }
    }

    fn allocating_of(&self, group: &Group) -> Vec<u32> {
        let linked = |at: Option<NonZeroU32>| at.map(|at| self.allocating[at.get() as usize - 1]);
        iter::successors(linked(group.allocating), |&(_, before)| linked(before)).map(|(path, _)| path).collect()
    }

    fn gather_children(&mut self, members: Range<usize>) {
        for &(tree, node) in &self.members[members] {
            let loaded = &self.trees[tree as usize];
            let end = loaded.end(node);
            let mut child = node + 1;
            while child < end {
                if loaded.is_there(child) {
                    self.scratch.push((loaded.slot(child, &self.names.catalog), tree, child));
                }
                child = loaded.end(child);
            }
        }
    }

    /// Makes a group of each run of equal functions in the scratch list, and empties the list.
    fn group_scratch(&mut self, members_before: usize) -> Range<usize> {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.sort_unstable();
        debug_assert_eq!(self.members.len(), members_before);
        let first = self.groups.len();
        for run in scratch.chunk_by(|a, b| a.0 == b.0) {
            let start = self.members.len();
            self.members.extend(run.iter().map(|&(_, tree, node)| (tree, node)));
            let members = start..self.members.len();
            self.groups.push(self.group(run[0].0, members));
        }
        scratch.clear();
        self.scratch = scratch;
        first..self.groups.len()
    }

    /// The group of these members with their sums; its inclusive time is its claim.
    fn group(&self, slot: Slot, members: Range<usize>) -> Group {
        let (mut calls, mut sums) = (0_u64, RangeSums::default());
        for &(tree, node) in &self.members[members.clone()] {
            let loaded = &self.trees[tree as usize];
            calls = calls.saturating_add(loaded.calls(node));
            sums.add(&loaded.subtree(node, &self.names.catalog, self.costs));
        }
        let cost = if self.columns.raw { 0 } else { sums.cost_ns.round() as u64 };
        let inclusive_ns = sums.values.metric.saturating_sub(cost);
        Group { slot, members, calls, sums, inclusive_ns, key: 0, allocating: None }
    }

    fn own_values(&self, members: Range<usize>) -> NodeValues {
        let values = self.members[members].iter().map(|&(t, n)| self.trees[t as usize].own(n));
        values.fold(NodeValues::default(), add_values)
    }

    /// Own times of some nodes, and times of their subtrees.
    fn times_by_state(&self, states: &StateAmounts, members: Range<usize>) -> [StateTimes; 2] {
        let [mut own, mut total] = [StateTimes::default(); 2];
        for &(tree, node) in &self.members[members] {
            if let LoadedTree::Stacks(tree) = &self.trees[tree as usize] {
                own += states.sum(tree.shape.at(node));
                total += states.sum(tree.shape.below(node));
            }
        }
        [own, total]
    }

    fn managed_calls(&self, groups: Range<usize>) -> u64 {
        let managed = self.groups[groups].iter().filter(|g| self.names.catalog.role(g.slot) == Role::Managed);
        managed.fold(0, |sum, g| sum.saturating_add(g.calls))
    }

    /// The columns of a node; its children's inclusive times become their shares.
    fn share(&mut self, group: &Group, own: NodeValues, hooks: Hooks, children: Range<usize>) -> Times {
        let share = self.columns.cost.share(group.slot, hooks, own.metric);
        let within_suspension = self.names.catalog.role(group.slot) == Role::Suspended;
        let is_suspension = |slot| !within_suspension && self.names.catalog.role(slot) == Role::Suspended;
        let mut claims: Vec<Claim> = self.groups[children.clone()]
            .iter()
            .map(|g| Claim { ns: g.inclusive_ns, suspension: is_suspension(g.slot) })
            .collect();
        let own_cost = hooks.leaves as f64 * self.costs.leave_ns[group.slot as usize]
            + hooks.enters as f64 * self.costs.enter_ns[group.slot as usize];
        let claim = if self.columns.raw { own.metric } else { own.metric.saturating_sub(own_cost.round() as u64) };
        let shared = share_out(group.inclusive_ns, claim, &mut claims);
        for (child, claim) in self.groups[children].iter_mut().zip(&claims) {
            child.inclusive_ns = claim.ns;
        }
        let profiler = share.likely.min(shared.exclusive_ns);
        let exclusive_cpu = if self.columns.raw { own.cpu_ns } else { own.cpu_ns.saturating_sub(share.likely) };
        let cost_cpu = if self.columns.raw { 0 } else { group.sums.cost_ns.round() as u64 };
        let inclusive_cpu = group.sums.values.cpu_ns.saturating_sub(cost_cpu).max(exclusive_cpu);
        Times {
            calls: group.calls,
            inclusive_ns: group.inclusive_ns,
            exclusive_ns: shared.exclusive_ns - if self.columns.raw { profiler } else { 0 },
            callee_ns: shared.callee_ns,
            suspended_ns: shared.suspended_ns,
            profiler_ns: if self.columns.raw { profiler } else { share.likely },
            profiler_low_ns: share.low,
            profiler_high_ns: share.high,
            inclusive_cpu_ns: self.columns.cpu.then_some(inclusive_cpu),
            exclusive_cpu_ns: self.columns.cpu.then_some(exclusive_cpu),
            exclusive_bounds_ns: self.columns.wall_bounds(own, share),
            exclusive_cpu_bounds_ns: self.columns.cpu_bounds(own, share),
        }
    }

    /// Sorts and prunes the groups of a level, adds the level to the current path, and returns the
    /// number of groups kept.
    fn push_level(&mut self, groups: Range<usize>, members_before: usize) -> u32 {
        for at in groups.clone() {
            self.groups[at].key = self.key(&self.groups[at]);
        }
        let by_module = self.forest.sort == Sort::Module;
        let (catalog, ranks) = (&self.names.catalog, &self.names.ranks);
        let module = |group: &Group| by_module.then(|| catalog.function(group.slot).module());
        self.groups[groups.start..].sort_unstable_by(|a, b| {
            let by_key = b.key.cmp(&a.key).then_with(|| module(a).cmp(&module(b)));
            by_key.then_with(|| ranks[a.slot as usize].cmp(&ranks[b.slot as usize]))
        });
        let depth = self.path.len() as u64 - u64::from(self.above);
        let too_deep = self.max_depth.is_some_and(|max| depth >= u64::from(max));
        let limit = if too_deep { 0 } else { self.forest.query.limit.unwrap_or(usize::MAX) };
        let (all, least) = (self.whole, self.min_share);
        let mut kept = groups.start;
        for at in groups.clone() {
            let size = self.size(&self.groups[at]);
            if kept - groups.start < limit && (least <= 0.0 || share(size, all) >= least) {
                self.groups.swap(kept, at);
                kept += 1;
            } else {
                self.pruned.subtrees += 1;
                self.pruned.total = self.pruned.total.saturating_add(size);
            }
        }
        self.groups.truncate(kept);
        self.path.push(Level { groups: groups.start..kept, members: members_before });
        (kept - groups.start) as u32
    }

    fn key(&self, group: &Group) -> u64 {
        match self.forest.sort {
            Sort::Own => self.own(group, self.metric()),
            Sort::Total => self.total(group, self.metric()),
            Sort::Calls => group.calls,
            Sort::Exclusive => self.own(group, &WALL),
            Sort::InclusiveCpu => group.sums.values.cpu_ns,
            Sort::Name | Sort::Module => 0,
            _ => group.inclusive_ns,
        }
    }

    fn metric(&self) -> &'static Metric {
        self.forest.conditions.metric
    }

    /// The group's own amount of a metric, as measured.
    fn own(&self, group: &Group, metric: &Metric) -> u64 {
        match metric.source {
            Source::Calls(Column::Calls) => group.calls,
            Source::Calls(Column::Cpu) => self.own_values(group.members.clone()).cpu_ns,
            Source::Calls(Column::Wall) | Source::Stacks { .. } => self.own_values(group.members.clone()).metric,
        }
    }

    /// Amount of a metric of the group and everything below it; CPU time as measured.
    fn total(&self, group: &Group, metric: &Metric) -> u64 {
        match metric.source {
            Source::Calls(Column::Calls) => group.calls,
            Source::Calls(Column::Cpu) => group.sums.values.cpu_ns,
            Source::Calls(Column::Wall) | Source::Stacks { .. } => group.inclusive_ns,
        }
    }

    /// Size of a group, which decides whether it is shown.
    fn size(&self, group: &Group) -> u64 {
        self.total(group, self.metric().sizes())
    }
}

/// Size of the whole forest.
fn size_of_all(forest: &Forest<'_>) -> u64 {
    let conditions = &forest.conditions;
    if conditions.metric.exclusive { conditions.totals.functions_ns } else { conditions.total }
}

/// Decodes the trees of some threads and fits the cost of hooks into the time of each function.
pub(super) fn load(threads: &[ThreadPaths<'_>], catalog: &Catalog<'_>, columns: &Columns) -> ThreadTrees {
    let slots = catalog.len() + 1;
    let of_stacks = threads.iter().map(|paths| match &paths.tree {
        PathTree::Stacks(tree) => Some(LoadedTree::Stacks(Arc::clone(tree))),
        PathTree::Merged(merged) => Some(LoadedTree::Stacks(Arc::clone(merged.tree()))),
        PathTree::Calls(_) => None,
    });
    if let Some(trees) = of_stacks.collect() {
        let costs = FittedCosts { leave_ns: vec![0.0; slots], enter_ns: vec![0.0; slots] };
        return ThreadTrees { trees, costs, beside: None };
    }
    let new = || (Summer::default(), Vec::new(), vec![(Hooks::default(), 0u64); slots]);
    let parts = fold(threads.len(), new, |(summer, trees, fits), at| {
        let mut tree = threads[at].load();
        let mut keys = ByFunction { root: catalog.root() };
        let summed = summer.sum(&mut tree, catalog, &columns.cost, &mut keys);
        for (slot, sums) in summed.entries() {
            let (hooks, taken) = &mut fits[slot as usize];
            hooks.add_leaves(sums.hooks.leaves);
            hooks.add_enters(sums.hooks.enters);
            *taken = taken.saturating_add(columns.cost.share(slot, sums.hooks, sums.own.metric).likely);
        }
        trees.push((at, loaded::DecodedTree::new(tree)));
    });
    let mut trees = Vec::new();
    let mut fits = vec![(Hooks::default(), 0u64); slots];
    for (_, part, part_fits) in parts {
        trees.extend(part);
        for ((hooks, taken), (more, took)) in fits.iter_mut().zip(part_fits) {
            hooks.add_leaves(more.leaves);
            hooks.add_enters(more.enters);
            *taken = taken.saturating_add(took);
        }
    }
    trees.sort_by_key(|(at, _)| *at);
    let fit = |slot, &(hooks, taken): &(Hooks, u64)| columns.cost.fit(slot, hooks, taken);
    let costs = FittedCosts {
        leave_ns: (0..).zip(&fits).map(|(slot, f)| fit(slot, f) * columns.cost.leave_ns(slot)).collect(),
        enter_ns: (0..).zip(&fits).map(|(slot, f)| fit(slot, f) * columns.cost.enter_ns(slot)).collect(),
    };
    let with_costs = |(_, mut tree): (usize, loaded::DecodedTree)| {
        tree.set_costs(catalog, &costs);
        LoadedTree::Calls(tree)
    };
    ThreadTrees { trees: trees.into_iter().map(with_costs).collect(), costs, beside: None }
}

/// The rank of each slot in the order of names.
fn ranks(catalog: &Catalog<'_>) -> Vec<u32> {
    let mut order: Vec<Slot> = (0..catalog.len() as Slot).collect();
    order.sort_by(|&a, &b| catalog.function(a).compare(&catalog.function(b)));
    let mut ranks = vec![0; catalog.len() + 1];
    for (rank, slot) in order.into_iter().enumerate() {
        ranks[slot as usize] = rank as u32;
    }
    ranks
}
