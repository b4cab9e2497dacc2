//! Sums of waits: by lock, then for locks of one kind and type with waits at one place.

use std::collections::BTreeMap;

use clrscope_contract::request::Glob;
use clrscope_recording::model::{LossReason, Process};
use rustc_hash::FxHashMap;

use super::wait::Wait;
use super::{LockKind, LockPath, LockQuery, LockRow};
use crate::allocations::type_and_module;
use crate::exceptions::CallStack;

/// Number of locks that are distinguished; further locks of a type count as one.
const MOST_LOCKS: usize = 1 << 16;
/// Number of paths that a row keeps: those with the longest time.
const MOST_PATHS: usize = 100;

/// Name of the type of locks other than monitors.
const LOCK_TYPE: (&str, &str) = ("System.Threading.Lock", "System.Private.CoreLib");

/// Kind, type and its module, and module and signature of the waiting function.
type RowKey<'a> = (LockKind, &'a str, &'a str, Option<(&'a str, &'a str)>);
/// Number and nanoseconds of waits.
pub(super) type Sum = (u64, u64);

/// The waits for one lock.
#[derive(Debug, Default)]
pub(super) struct LockSum {
    locks: u64,
    /// Whether there are waits for locks that are not distinguished.
    has_others: bool,
    pub(super) count: u64,
    pub(super) total_ns: u64,
    pub(super) max_ns: u64,
    max_waiters: u64,
    pub(super) pending: u64,
    pub(super) without_stack: u64,
    without_holder: u64,
    pub(super) waiters: FxHashMap<u32, Sum>,
    holders: FxHashMap<u32, Sum>,
}

/// Sums of waits.
pub(super) struct Grouping<'q, 'a> {
    process: &'a Process,
    query: &'q LockQuery,
    /// Sums by lock number and type; the number is 0 for locks that are not distinguished.
    sums: FxHashMap<(u64, Option<u32>), LockSum>,
}

impl<'q, 'a> Grouping<'q, 'a> {
    pub(super) fn new(process: &'a Process, query: &'q LockQuery) -> Self {
        Self { process, query, sums: FxHashMap::default() }
    }

    pub(super) fn add(&mut self, wait: &Wait) {
        let start = wait.start;
        let Some(ns) = self.query.query.wanted_ns(self.process, start.time_ns, wait.end_ns) else { return };
        let thread = self.process.threads.get(start.thread as usize);
        let is_shown = self.process.shows_work(thread, start.time_ns);
        if !is_shown || !self.query.query.wants_thread_if_known(thread) || !self.wants_stack(start.stack) {
            return;
        }
        let is_told_apart = self.sums.len() < MOST_LOCKS || self.sums.contains_key(&(wait.lock, start.class));
        let number = if is_told_apart { wait.lock } else { 0 };
        let sum = self.sums.entry((number, start.class)).or_default();
        sum.add(wait, ns);
        (sum.locks, sum.has_others) = (u64::from(is_told_apart), !is_told_apart);
    }

    fn wants_stack(&self, stack: Option<u32>) -> bool {
        let query = &self.query.query;
        let is_named = |stack: u32| {
            self.stack(stack).functions().any(|function| query.wants_function(function.module(), function.function))
        };
        !query.filters_functions() || stack.is_some_and(is_named)
    }

    fn stack(&self, number: u32) -> CallStack<'a> {
        CallStack::new(self.process, &self.process.stacks, number)
    }

    /// The rows, in the order of kind, type and place.
    pub(super) fn finish(&self) -> Vec<LockRow<'a>> {
        let mut rows: BTreeMap<RowKey<'_>, LockSum> = BTreeMap::new();
        for ((_, class), sum) in &self.sums {
            let (kind, (type_name, module)) = self.kind(*class);
            if Glob::any_matches(&self.query.types, type_name) {
                rows.entry((kind, type_name, module, self.place(sum))).or_default().join(sum);
            }
        }
        let is_exact = self.process.losses.iter().all(|loss| loss.reason != LossReason::EventDropped);
        let row = |((kind, type_name, module, _), sum): (RowKey<'a>, LockSum)| LockRow {
            process: self.process,
            kind,
            type_name,
            module,
            locks: sum.locks,
            has_more_locks: sum.has_others,
            count: sum.count,
            is_exact,
            is_sampled: false,
            total_ns: sum.total_ns,
            bounds_ns: (sum.total_ns, sum.total_ns),
            max_ns: sum.max_ns,
            max_waiters: sum.max_waiters,
            pending: sum.pending,
            waiters: path_list(self.process, kind, sum.waiters),
            without_stack: sum.without_stack,
            holders: path_list(self.process, kind, sum.holders),
            without_holder: sum.without_holder,
        };
        rows.into_iter().map(row).collect()
    }

    fn kind(&self, class: Option<u32>) -> (LockKind, (&'a str, &'a str)) {
        let Some(class) = class else { return (LockKind::Lock, LOCK_TYPE) };
        (LockKind::Monitor, type_and_module(self.process, class))
    }

    /// Module and signature of the innermost own function with the most waiting time.
    fn place(&self, sum: &LockSum) -> Option<(&'a str, &'a str)> {
        let (stack, _) = sum.waiters.iter().max_by_key(|(stack, (_, ns))| (*ns, **stack))?;
        self.stack(*stack).innermost_own().map(|(function, _)| (function.module(), function.signature()))
    }
}

/// The paths with the longest times, longest first.
pub(super) fn path_list(process: &Process, kind: LockKind, sums: FxHashMap<u32, Sum>) -> Vec<LockPath<'_>> {
    let mut sums: Vec<(u32, Sum)> = sums.into_iter().collect();
    sums.sort_unstable_by_key(|(stack, (count, ns))| (std::cmp::Reverse((*ns, *count)), *stack));
    sums.truncate(MOST_PATHS);
    let stack = |number| CallStack::new(process, &process.stacks, number);
    sums.into_iter().map(|(number, (count, ns))| LockPath { count, ns, kind, stack: stack(number) }).collect()
}

impl LockSum {
    fn add(&mut self, wait: &Wait, ns: u64) {
        self.count += 1;
        self.total_ns = self.total_ns.saturating_add(ns);
        self.max_ns = self.max_ns.max(ns);
        self.max_waiters = self.max_waiters.max(wait.waiters);
        self.pending += u64::from(wait.is_pending);
        match wait.start.stack {
            Some(stack) => add(&mut self.waiters, stack, (1, ns)),
            None => self.without_stack += 1,
        }
        match wait.holder_stack {
            Some(stack) => add(&mut self.holders, stack, (1, ns)),
            None => self.without_holder += 1,
        }
    }

    /// Adds a wait for an object without a holder.
    pub(super) fn add_blocking(&mut self, stack: Option<u32>, ns: u64, is_pending: bool) {
        self.count += 1;
        self.total_ns = self.total_ns.saturating_add(ns);
        self.max_ns = self.max_ns.max(ns);
        self.pending += u64::from(is_pending);
        match stack {
            Some(stack) => add(&mut self.waiters, stack, (1, ns)),
            None => self.without_stack += 1,
        }
    }

    /// Adds a sample of a wait. Earlier samples may have shown the same wait.
    pub(super) fn add_sampled(&mut self, stack: u32, waits: u64, ns: u64) {
        self.count += waits;
        self.total_ns = self.total_ns.saturating_add(ns);
        add(&mut self.waiters, stack, (waits, ns));
    }

    pub(super) fn join(&mut self, other: &Self) {
        self.locks += other.locks;
        self.has_others |= other.has_others;
        self.count += other.count;
        self.total_ns = self.total_ns.saturating_add(other.total_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        self.max_waiters = self.max_waiters.max(other.max_waiters);
        self.pending += other.pending;
        self.without_stack += other.without_stack;
        self.without_holder += other.without_holder;
        other.waiters.iter().for_each(|(stack, sum)| add(&mut self.waiters, *stack, *sum));
        other.holders.iter().for_each(|(stack, sum)| add(&mut self.holders, *stack, *sum));
    }
}

fn add(sums: &mut FxHashMap<u32, Sum>, stack: u32, (count, ns): Sum) {
    let sum = sums.entry(stack).or_default();
    *sum = (sum.0 + count, sum.1.saturating_add(ns));
}
