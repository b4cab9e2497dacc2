//! Sums of one process by function and by thread, on which most views are based.

use std::sync::Arc;

use clrscope_recording::layout::instrument;
use clrscope_recording::model::{Process, Recording, SourceKind, Thread};
use clrscope_recording::parallel::fold;
use rustc_hash::FxHashMap;

use super::rows::{FunctionRow, ThreadOwn, ThreadRow, thread_row};
use crate::allocations_by_call::{AllocationPaths, AllocationTree, CallAllocations};
use crate::catalog::{Catalog, Role, Slot};
use crate::columns::Columns;
use crate::metric::{Amount, Metric, SampleCount};
use crate::metric_events::name_of;
use crate::owners::{OwnerSums, Owners};
use crate::paths::{self, Paths, ThreadPaths, UNKNOWN};
use crate::query::Query;
use crate::samples::FoldedFunctions;
use crate::stack_trees::{EventFilter, FunctionSum, FunctionSums, StackSum, StackVisitor, ThreadSum};
use crate::sums::{ByFunction, Summer, TreeSums};
use crate::tiers::{OfTier, TierSums, Tiers, tiers_of_functions};
use crate::times::{Times, Totals};

/// A row that is being built.
#[derive(Debug, Clone, Copy, Default)]
struct MergedRow {
    times: Times,
    max_recursion: u32,
    threads: u32,
}

impl MergedRow {
    fn add(&mut self, other: &Self) {
        self.times.add(&other.times);
        self.max_recursion = self.max_recursion.max(other.max_recursion);
        self.threads = self.threads.saturating_add(other.threads);
    }
}

/// The result of one walk along the stacks of a metric, for the views that start from sums of a
/// process.
struct StackWalkResult {
    functions: FunctionSums,
    /// Samples by tier, of the metrics whose stacks know tiers.
    tiers: Vec<OfTier>,
}

impl StackWalkResult {
    /// Returns the result, together with the result of `more` if the walk took place. Queries of
    /// the whole run share one walk, which is cached with the process. A later query gets the
    /// cached result, and no result of `more`.
    fn walk<A: StackVisitor>(
        paths: &Paths<'_>,
        merged: &paths::MergedStacks<'_>,
        query: &Query,
        catalog: &Catalog<'_>,
        more: A,
    ) -> (Arc<Self>, Option<A::Acc>) {
        let wanted = EventFilter::new(paths.process, query).with_states(paths.metric, &merged.stacks.measured);
        let mut found = None;
        let walk = || {
            let what = (tier_sums(paths), more);
            let (functions, (tiers, more)) = FunctionSums::new(&merged.stacks, &wanted, catalog, what);
            found = Some(more);
            Self { functions, tiers: tier_sums(paths).of_functions(&tiers) }
        };
        let walked = match wanted.is_everything() {
            true => paths.process.derived.get(&name_of_walk(paths.metric, query), walk),
            false => Arc::new(walk()),
        };
        (walked, found)
    }
}

fn name_of_walk(metric: &'static Metric, query: &Query) -> String {
    format!("{}{}, sums by function", name_of(metric), FoldedFunctions::name(query))
}

/// The sums of one process.
pub(crate) struct ProcessSums<'a> {
    pub(crate) catalog: Catalog<'a>,
    pub(crate) totals: Totals,
    pub(crate) threads: Vec<ThreadRow<'a>>,
    metric: &'static Metric,
    merged: Vec<MergedRow>,
    per_thread: Vec<(u32, &'a Thread, MergedRow)>,
    /// Calls of `async` methods, by the slots of the methods that have their code.
    starts: FxHashMap<Slot, u64>,
    /// Samples that were taken alongside calls, by slot.
    beside: Vec<SampleCount>,
    /// Samples by tier, by slot.
    tiers: FxHashMap<Slot, Tiers>,
    /// Allocations alongside calls, by slot.
    allocated: Option<FxHashMap<Slot, CallAllocations>>,
}

impl<'a> ProcessSums<'a> {
    /// Sums the selected threads of a process. Rows per thread are kept only if the query requests
    /// them.
    pub(crate) fn new(paths: &Paths<'a>, query: &Query) -> Self {
        let catalog = Catalog::of_paths(paths.process, paths.metric);
        match paths.merged() {
            Some(merged) => {
                let (walked, _) = StackWalkResult::walk(paths, merged, query, &catalog, ());
                Self::of_stacks(paths, query, catalog, &walked.functions)
            }
            None => Self::of_trees(paths, query, catalog),
        }
    }

    /// The sums with the tiers of functions, and the owners of their work.
    pub(crate) fn with_owners(recording: &Recording, paths: &Paths<'a>, query: &Query) -> (Self, Owners) {
        let catalog = Catalog::of_paths(paths.process, paths.metric);
        let Some(merged) = paths.merged() else {
            let owners = Owners::from_paths(paths, &catalog);
            let mut sums = Self::of_trees(paths, query, catalog);
            sums.put_tiers(recording, paths.process, query);
            return (sums, owners);
        };
        let owners = OwnerSums::new(paths, &catalog);
        let (walked, found) = StackWalkResult::walk(paths, merged, query, &catalog, &owners);
        let owners = found.unwrap_or_else(|| merged.stacks.visit_stacks(&catalog, &owners));
        let mut sums = Self::of_stacks(paths, query, catalog, &walked.functions);
        sums.add_tiers(&walked.tiers);
        (sums, owners)
    }

    /// The sums with the tiers of functions.
    pub(crate) fn with_tiers(recording: &Recording, paths: &Paths<'a>, query: &Query) -> Self {
        let catalog = Catalog::of_paths(paths.process, paths.metric);
        let Some(merged) = paths.merged() else {
            let mut sums = Self::of_trees(paths, query, catalog);
            sums.put_tiers(recording, paths.process, query);
            return sums;
        };
        let (walked, _) = StackWalkResult::walk(paths, merged, query, &catalog, ());
        let mut sums = Self::of_stacks(paths, query, catalog, &walked.functions);
        sums.add_tiers(&walked.tiers);
        sums
    }

    fn of_trees(paths: &Paths<'a>, query: &Query, catalog: Catalog<'a>) -> Self {
        let columns = Columns::new(paths, &catalog, query);
        let new = || (Summer::default(), Part { keeps_rows: query.per_thread, ..Part::default() });
        let parts = fold(paths.threads.len(), new, |(summer, part), at| {
            let mut tree = paths.threads[at].load();
            let mut keys = ByFunction { root: catalog.root() };
            let summed = summer.sum(&mut tree, &catalog, &columns.cost, &mut keys);
            let thread = paths.threads[at].thread.unwrap_or(&UNKNOWN);
            part.add_thread(paths.process.pid, thread, &catalog, &columns, &summed);
        });
        let mut all = Part::default();
        for (_, part) in parts {
            all.join(part);
        }
        let is_of = |known: &ThreadPaths<'_>, row: &ThreadRow<'_>| {
            known.thread.is_some_and(|thread| std::ptr::eq(thread, row.thread))
        };
        let order = |row: &ThreadRow<'_>| paths.threads.iter().position(|known| is_of(known, row));
        all.threads.sort_by_cached_key(order);
        Self::of_part(catalog, paths.metric, all)
    }

    fn of_part(catalog: Catalog<'a>, metric: &'static Metric, all: Part<'a>) -> Self {
        Self {
            starts: starts(&catalog, &all.merged),
            catalog,
            totals: all.totals,
            threads: all.threads,
            metric,
            merged: all.merged,
            per_thread: all.per_thread,
            beside: Vec::new(),
            tiers: FxHashMap::default(),
            allocated: None,
        }
    }

    /// Rows of sums over the stacks of all threads.
    fn of_stacks(paths: &Paths<'a>, query: &Query, catalog: Catalog<'a>, sums: &FunctionSums) -> Self {
        let (process, metric) = (paths.process, paths.metric);
        let samples = |sum: StackSum| metric.counts_beside().then_some(sum.samples);
        let merged = |sum: &FunctionSum| match sum.total == StackSum::default() {
            true => MergedRow::default(),
            false => MergedRow {
                times: Times {
                    inclusive_ns: sum.total.amount,
                    exclusive_ns: sum.own.amount,
                    inclusive_cpu_ns: samples(sum.total),
                    exclusive_cpu_ns: samples(sum.own),
                    ..Times::default()
                },
                max_recursion: sum.max_recursion,
                threads: sum.threads,
            },
        };
        let threads = sums
            .by_thread(&process.threads, &UNKNOWN)
            .filter(|(thread, _)| std::ptr::eq(*thread, &*UNKNOWN) || query.wants_thread(thread));
        let row = |(thread, found): (&'a Thread, ThreadSum)| {
            let totals = totals_of(found.sum, metric);
            let own = ThreadOwn { running_ns: found.sum.amount, outside_ns: 0 };
            let row = thread_row(process.pid, thread, &totals, own, found.max_depth);
            if metric.is_sampled() { sampled_row(row, &totals, metric) } else { row }
        };
        let part = Part {
            merged: sums.functions.iter().map(merged).collect(),
            threads: threads.map(row).collect(),
            totals: totals_of(paths.sum().unwrap_or_default(), metric),
            ..Part::default()
        };
        Self::of_part(catalog, metric, part)
    }

    /// Adds the samples from `samples`, which are sums of the same process, to the rows of calls.
    pub(crate) fn put_beside(&mut self, samples: &Self) {
        let count = |merged: &MergedRow| merged.times.by(samples.metric).1.samples;
        self.beside = samples.merged.iter().map(count).collect();
        self.merged.resize(self.merged.len().max(self.beside.len()), MergedRow::default());
        // A function without calls has zero CPU time, if CPU time was measured.
        let none = self.totals.cpu_ns.map(|_| 0);
        for merged in self.merged.iter_mut().filter(|merged| merged.threads == 0) {
            (merged.times.inclusive_cpu_ns, merged.times.exclusive_cpu_ns) = (none, none);
            merged.times.exclusive_cpu_bounds_ns = none.map(|ns| (ns, ns));
        }
    }

    /// Adds the allocations of the same process to the rows of calls.
    pub(crate) fn put_allocations(&mut self, allocations: &AllocationPaths<'_>) {
        let beside = AllocationTree::new(allocations, None, &self.catalog);
        let is_called = |slot: Slot| self.merged.get(slot as usize).is_some_and(|merged| merged.threads > 0);
        self.allocated = Some(beside.by_function(is_called));
    }

    /// Adds to each function the tiers of its samples.
    fn put_tiers(&mut self, recording: &Recording, process: &Process, query: &Query) {
        let tiers = tiers_of_functions(recording, process, query, self.metric, &self.catalog);
        self.add_tiers(&tiers);
    }

    fn add_tiers(&mut self, all: &[OfTier]) {
        for &(function, tier, samples) in all {
            self.tiers.entry(self.catalog.slot(function)).or_default().add(tier, samples);
        }
    }

    fn samples_beside(&self, slot: usize) -> SampleCount {
        self.beside.get(slot).copied().unwrap_or_default()
    }

    /// One row per wanted function that was called or has time.
    pub(crate) fn rows(&self, wanted: &[bool]) -> impl Iterator<Item = FunctionRow<'a>> {
        let is_there = |slot: usize, merged: &MergedRow| merged.threads > 0 || self.samples_beside(slot).total > 0;
        let all = self.merged.iter().enumerate();
        let seen = all.filter(move |(slot, merged)| is_there(*slot, merged) && wanted.get(*slot) == Some(&true));
        seen.map(|(slot, merged)| self.row(slot as u32, merged, None))
    }

    /// The row of one function over all threads, if the function was called or has time.
    pub(crate) fn row_of(&self, slot: Slot) -> Option<FunctionRow<'a>> {
        let merged = self.merged.get(slot as usize).filter(|m| m.threads > 0)?;
        Some(self.row(slot, merged, None))
    }

    /// Rows of functions for each thread that has any. Empty unless the query asks for rows per
    /// thread.
    pub(crate) fn rows_per_thread(&self, wanted: &[bool]) -> impl Iterator<Item = FunctionRow<'a>> {
        let seen = self.per_thread.iter().filter(|(slot, ..)| wanted.get(*slot as usize) == Some(&true));
        seen.map(|(slot, thread, merged)| self.row(*slot, merged, Some(*thread)))
    }

    fn row(&self, slot: u32, merged: &MergedRow, thread: Option<&'a Thread>) -> FunctionRow<'a> {
        let (times, mut amount) = merged.times.by(self.metric);
        if self.metric.is_of_calls() && thread.is_none() {
            amount.samples = self.samples_beside(slot as usize);
        }
        FunctionRow {
            function: self.catalog.function(slot),
            thread,
            times,
            amount,
            max_recursion: merged.max_recursion,
            threads: merged.threads,
            inlined: self.catalog.is_inlined(slot),
            tail_recursive: self.catalog.is_tail_recursive(slot),
            starts: self.starts.get(&slot).copied().filter(|_| thread.is_none()),
            allocated: self
                .allocated
                .as_ref()
                .filter(|_| thread.is_none())
                .map(|all| all.get(&slot).copied().unwrap_or_default()),
            tiers: self.tiers.get(&slot).copied().filter(|_| thread.is_none()).unwrap_or_default(),
        }
    }
}

/// Finder of the tiers of functions along the stacks of a metric.
fn tier_sums(paths: &Paths<'_>) -> TierSums {
    if paths.metric.is_sampled() { TierSums::new(paths.process) } else { TierSums::none() }
}

/// Sums over all paths of a process.
pub(crate) fn totals(paths: &Paths<'_>, query: &Query) -> Totals {
    match paths.sum() {
        Some(sum) => totals_of(sum, paths.metric),
        None => ProcessSums::new(paths, query).totals,
    }
}

fn totals_of(sum: StackSum, metric: &Metric) -> Totals {
    let cpu_ns = metric.counts_beside().then_some(sum.samples);
    Totals { functions_ns: sum.amount, cpu_ns, ..Totals::default() }
}

/// Key that an `async` method shares with the method that has its code: module, name, signature,
/// and the marker of the method (for instance of a lambda).
type AsyncKey<'a> = (&'a str, &'a str, &'a str, Option<&'a str>);

/// Calls of `async` methods, by the slots of the methods that have their code. Inlined methods are
/// left out, because they were called more often than counted.
fn starts(catalog: &Catalog<'_>, merged: &[MergedRow]) -> FxHashMap<Slot, u64> {
    let mut code: FxHashMap<AsyncKey<'_>, Slot> = FxHashMap::default();
    let slots = || (0..catalog.len() as Slot).map(|slot| (slot, catalog.function(slot)));
    for (slot, function) in slots().filter(|(_, function)| function.function.source == SourceKind::Async) {
        let of = function.marker().and_then(|marker| marker.strip_prefix("async")).map(str::trim_start);
        let of = of.filter(|marker| !marker.is_empty());
        code.insert((function.module(), function.name(), function.plain_signature(), of), slot);
    }
    let mut starts = FxHashMap::default();
    for (slot, function) in slots().filter(|(_, function)| function.function.source != SourceKind::Async) {
        let key = (function.module(), function.name(), function.plain_signature(), function.marker());
        let Some(&code) = code.get(&key).filter(|_| !catalog.is_inlined(slot)) else { continue };
        let calls = merged.get(slot as usize).map_or(0, |merged| merged.times.calls);
        let sum: &mut u64 = starts.entry(code).or_default();
        *sum = sum.saturating_add(calls);
    }
    starts.retain(|_, calls| *calls > 0);
    starts
}

/// Sums of one worker. Sums of several workers may be joined in any order.
#[derive(Default)]
struct Part<'a> {
    /// Whether rows per thread are wanted.
    keeps_rows: bool,
    merged: Vec<MergedRow>,
    per_thread: Vec<(u32, &'a Thread, MergedRow)>,
    threads: Vec<ThreadRow<'a>>,
    totals: Totals,
}

impl<'a> Part<'a> {
    fn add_thread(
        &mut self,
        pid: u32,
        thread: &'a Thread,
        catalog: &Catalog<'_>,
        columns: &Columns,
        summed: &TreeSums<'_, ByFunction>,
    ) {
        let mut totals = Totals { cpu_ns: columns.cpu.then_some(0), ..Totals::default() };
        let mut own = ThreadOwn::default();
        self.merged.resize(self.merged.len().max(catalog.len()), MergedRow::default());
        for (slot, sums) in summed.entries() {
            let times = columns.times(slot, &sums);
            count(&mut totals, catalog, slot, &times, columns.raw);
            if slot == catalog.root() {
                own.outside_ns = times.exclusive_ns;
                continue;
            }
            if catalog.role(slot) != Role::Suspended {
                own.running_ns = own.running_ns.saturating_add(times.exclusive_ns);
            }
            let called = times.calls > 0 || sums.own != Default::default();
            if !called && sums.inclusive == Default::default() {
                continue;
            }
            let row = MergedRow { times, max_recursion: sums.max_recursion, threads: 1 };
            self.merged[slot as usize].add(&row);
            if self.keeps_rows {
                self.per_thread.push((slot, thread, row));
            }
        }
        self.totals.add(&totals);
        let row = thread_row(pid, thread, &totals, own, summed.max_depth);
        self.threads.push(columns.sampled.map_or(row, |metric| sampled_row(row, &totals, metric)));
    }

    fn join(&mut self, other: Self) {
        self.merged.resize(self.merged.len().max(other.merged.len()), MergedRow::default());
        for (mine, theirs) in self.merged.iter_mut().zip(&other.merged) {
            mine.add(theirs);
        }
        self.per_thread.extend(other.per_thread);
        self.threads.extend(other.threads);
        self.totals.add(&other.totals);
    }
}

/// The row of a sampled thread: its only time is the metric.
fn sampled_row<'a>(row: ThreadRow<'a>, totals: &Totals, metric: &Metric) -> ThreadRow<'a> {
    let samples = totals.cpu_ns.unwrap_or(0);
    let samples = SampleCount { own: samples, total: samples };
    let amount = Amount { own: totals.functions_ns, total: totals.functions_ns, samples };
    let sampled_ns = (metric.instrument == instrument::CPU).then_some(amount.own);
    ThreadRow { amount, cpu_ns: row.cpu_ns.or(sampled_ns), running_ns: 0, outside_ns: 0, ..row }
}

/// Adds a function's row, or the thread's own time, to the totals of its thread.
fn count(totals: &mut Totals, catalog: &Catalog<'_>, slot: u32, times: &Times, raw: bool) {
    let share = Totals {
        profiler_ns: times.profiler_ns,
        profiler_low_ns: times.profiler_low_ns,
        profiler_high_ns: times.profiler_high_ns,
        ..Totals::default()
    };
    totals.add(&share);
    let own = times.exclusive_ns.saturating_add(if raw { times.profiler_ns } else { 0 });
    if slot == catalog.root() {
        totals.outside_ns = totals.outside_ns.saturating_add(own);
        return;
    }
    let role = catalog.role(slot);
    let sums = Totals {
        calls: if role.is_call() { times.calls } else { 0 },
        entries: times.calls,
        functions_ns: own,
        jit_ns: if role == Role::Jit { times.exclusive_ns } else { 0 },
        suspended_ns: if role == Role::Suspended { times.exclusive_ns } else { 0 },
        cpu_ns: times.exclusive_cpu_ns,
        truncated_calls: if role == Role::Truncated { times.calls } else { 0 },
        truncated_ns: if role == Role::Truncated { times.exclusive_ns } else { 0 },
        ..Totals::default()
    };
    totals.add(&sums);
}
