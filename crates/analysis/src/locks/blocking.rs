//! Waits of threads for semaphores, events, readers-writer locks and tasks. All of them end in a
//! wait for a handle or in `Monitor.Wait`, for which .NET 9 and later raise events.
//!
//! The framework's methods on the stack show the kind of the wait. If the compiler has inlined them
//! into own methods, another stack with the same call shows the kind. A wait for a lock also
//! contains such a wait, and counts only as a wait for the lock. Threads without own code on their
//! stacks wait for work and are left out: threads of the pool, timers and the like.

use std::collections::BTreeMap;

use clrscope_contract::request::Glob;
use clrscope_recording::model::{FunctionKind, LossReason, Process};
use rustc_hash::FxHashMap;

use super::rows::{LockSum, path_list};
use super::{LockKind, LockQuery, LockRow};
use crate::exceptions::CallStack;

/// Kinds of waits, by prefixes of names of framework methods.
const METHODS: &[(LockKind, &str)] = &[
    (LockKind::ReaderWriterLockSlim, "System.Threading.ReaderWriterLockSlim::"),
    (LockKind::SemaphoreSlim, "System.Threading.SemaphoreSlim::"),
    (LockKind::ManualResetEventSlim, "System.Threading.ManualResetEventSlim::"),
    (LockKind::MonitorWait, "System.Threading.Monitor::Wait"),
    (LockKind::WaitHandle, "System.Threading.WaitHandle::"),
    (LockKind::Task, "System.Threading.Tasks.Task::"),
    (LockKind::Task, "System.Runtime.CompilerServices.TaskAwaiter::"),
    (LockKind::Thread, "System.Threading.Thread::Join"),
];

/// Module and signature of a function.
pub(super) type Own<'a> = (&'a str, &'a str);

/// What a stack shows about a wait.
#[derive(Debug, Clone, Copy)]
pub(super) struct WaitPlace<'a> {
    /// Kind of the wait; `None` if no framework method on the stack shows it.
    pub(super) kind: Option<LockKind>,
    /// The innermost own function.
    pub(super) own: Own<'a>,
    /// Offset of the waiting call in the function's IL.
    il_offset: Option<u32>,
}

/// The begin of a wait.
#[derive(Debug, Clone, Copy)]
pub(super) struct BlockingStart {
    pub(super) thread: u32,
    pub(super) time_ns: u64,
    /// The thread's stack; `None` if it was not captured.
    pub(super) stack: Option<u32>,
}

/// Sums of waits.
pub(super) struct BlockingWaits<'q, 'a> {
    process: &'a Process,
    query: &'q LockQuery,
    under_way: FxHashMap<u32, BlockingStart>,
    /// Places by stack; `None` for stacks without own code.
    places: FxHashMap<u32, Option<WaitPlace<'a>>>,
    sums: FxHashMap<Option<u32>, LockSum>,
    /// For each function, the number of threads that wait in it now, and the maximum so far. The
    /// key is `None` for waits whose stack was not captured.
    waiters: FxHashMap<Option<Own<'a>>, (u64, u64)>,
}

impl<'q, 'a> BlockingWaits<'q, 'a> {
    pub(super) fn new(process: &'a Process, query: &'q LockQuery) -> Self {
        let (under_way, places, sums, waiters) = Default::default();
        Self { process, query, under_way, places, sums, waiters }
    }

    /// A thread begins to wait. If it already waits, the new wait is part of the current one.
    pub(super) fn started(&mut self, start: BlockingStart) {
        if self.under_way.contains_key(&start.thread) || !self.wants(start) {
            return;
        }
        self.under_way.insert(start.thread, start);
        let own = self.own(start.stack);
        let (now, most) = self.waiters.entry(own).or_default();
        *now += 1;
        *most = (*most).max(*now);
    }

    /// A thread ends its wait.
    pub(super) fn ended(&mut self, thread: u32, time_ns: u64) {
        if let Some(start) = self.under_way.remove(&thread) {
            let own = self.own(start.stack);
            let (now, _) = self.waiters.entry(own).or_default();
            *now = now.saturating_sub(1);
            self.add(start, time_ns, false);
        }
    }

    fn wants(&mut self, start: BlockingStart) -> bool {
        let (process, query) = (self.process, &self.query.query);
        let is_meant = match start.stack {
            Some(stack) => self.places.entry(stack).or_insert_with(|| wait_place(process, self.query, stack)).is_some(),
            None => !query.filters_functions(),
        };
        let thread = process.threads.get(start.thread as usize);
        is_meant && query.wants_thread_if_known(thread) && process.shows_work(thread, start.time_ns)
    }

    /// The own function that waits; `None` if the stack was not captured.
    fn own(&self, stack: Option<u32>) -> Option<Own<'a>> {
        let place = self.places.get(&stack?).copied().flatten()?;
        Some(place.own)
    }

    fn add(&mut self, start: BlockingStart, end_ns: u64, is_pending: bool) {
        if let Some(ns) = self.query.query.wanted_ns(self.process, start.time_ns, end_ns) {
            self.sums.entry(start.stack).or_default().add_blocking(start.stack, ns, is_pending);
        }
    }

    /// Whether the runtime reported no waits.
    pub(super) fn is_empty(&self) -> bool {
        self.sums.is_empty() && self.under_way.is_empty()
    }

    /// The rows, in the order of kind and place.
    pub(super) fn finish(mut self) -> Vec<LockRow<'a>> {
        let end_ns = self.process.started_ns.saturating_add(self.process.duration_ns);
        let mut pending: Vec<BlockingStart> = self.under_way.drain().map(|(_, start)| start).collect();
        pending.sort_unstable_by_key(|start| (start.time_ns, start.thread));
        for start in pending {
            self.add(start, end_ns.max(start.time_ns), true);
        }
        let is_dropped = self.process.has_lost(LossReason::EventDropped);
        // A wait without a stack may be one of any kind.
        let is_exact = !is_dropped && !self.sums.contains_key(&None);
        let mut rows: BTreeMap<(LockKind, Option<Own<'a>>), LockSum> = BTreeMap::new();
        let kinds = self.kinds_by_call();
        for (stack, sum) in &self.sums {
            let place = stack.and_then(|stack| self.places.get(&stack).copied().flatten());
            let by_call = place.and_then(|place| kinds.get(&(place.own, place.il_offset?)).copied());
            let kind = place.and_then(|place| place.kind).or(by_call).unwrap_or(LockKind::Unknown);
            rows.entry((kind, place.map(|place| place.own))).or_default().join(sum);
        }
        let rows = rows.into_iter().map(|((kind, own), sum)| {
            let most = self.waiters.get(&own).map_or(0, |(_, most)| *most);
            row(self.process, kind, sum, (most, is_exact))
        });
        rows.filter(|row| Glob::any_matches(&self.query.types, row.type_name)).collect()
    }

    /// Kinds of waits by call place: a call place calls one method.
    fn kinds_by_call(&self) -> FxHashMap<(Own<'a>, u32), LockKind> {
        let known = self.places.values().flatten();
        known.filter_map(|place| Some(((place.own, place.il_offset?), place.kind?))).collect()
    }
}

/// The row of a kind of waits. `max_waiters` is the number of threads that waited at once,
/// `is_exact` tells whether each wait was recorded.
pub(super) fn row(
    process: &Process,
    kind: LockKind,
    sum: LockSum,
    (max_waiters, is_exact): (u64, bool),
) -> LockRow<'_> {
    LockRow {
        process,
        kind,
        type_name: kind.class(),
        module: if kind == LockKind::Unknown { "" } else { "System.Private.CoreLib" },
        locks: 0,
        has_more_locks: false,
        count: sum.count,
        is_exact,
        is_sampled: false,
        total_ns: sum.total_ns,
        bounds_ns: (sum.total_ns, sum.total_ns),
        max_ns: sum.max_ns,
        max_waiters,
        pending: sum.pending,
        waiters: path_list(process, kind, sum.waiters),
        without_stack: sum.without_stack,
        holders: Vec::new(),
        without_holder: sum.count,
    }
}

/// Kind and place of a wait; `None` for threads without own code, and if filters exclude the wait.
pub(super) fn wait_place<'a>(process: &'a Process, query: &LockQuery, stack: u32) -> Option<WaitPlace<'a>> {
    let stack = CallStack::new(process, &process.stacks, stack);
    let (own, place) = stack.innermost_own()?;
    let managed = stack.functions().filter(|function| function.kind() == FunctionKind::Managed);
    let framework = managed.take_while(|function| function.module.framework);
    let kind_of = |name: &str| METHODS.iter().find(|(_, start)| name.starts_with(start)).map(|(kind, _)| *kind);
    // The outermost method decides: `Task.Wait` waits in an event, and the event in a monitor.
    let kind = framework.filter_map(|function| kind_of(function.name())).last();
    let filters = &query.query;
    let is_named = || stack.functions().any(|function| filters.wants_function(function.module(), function.function));
    let place = WaitPlace { kind, own: (own.module(), own.signature()), il_offset: place.il_offset };
    (!filters.filters_functions() || is_named()).then_some(place)
}
