//! Waits below the program's own code, according to samples of `wall`: which function waits for
//! what, and on how many threads at the same time.
//!
//! Threads that wait by design are left out: consumers of queues, and threads that stay in one wait
//! all their life while others work, such as timers, loggers and the main thread.

use std::borrow::Cow;
use std::collections::BTreeMap;

use clrscope_recording::layout::instrument;
use clrscope_recording::model::{Process, Recording, Sample, ThreadRole, ThreadState};
use rustc_hash::FxHashMap;

use super::pool_times::{PoolQueue, is_worker};
use super::sampled::each_wanted;
use crate::at_once::most_at_once;
use crate::code_place::CodePlace;
use crate::function::FunctionRef;
use crate::idle_threads::{Blocked, ThreadTimes, WaitBelow, is_trouble, role_of};
use crate::parts::watched_ns;
use crate::query::{Query, QueryProblem};
use crate::waits::WaitReason;

/// Time within which the sampler finds all threads of an already running program.
const ALL_MET_NS: u64 = 100_000_000;

/// Waits of one own function for one reason, over all instantiations of the function.
#[derive(Debug, Clone)]
pub(super) struct WaitGroup<'a> {
    pub(super) function: FunctionRef<'a>,
    /// Place in the function where most of the time was spent.
    pub(super) place: CodePlace<'a>,
    pub(super) reason: WaitReason,
    pub(super) blocked: Blocked,
    /// The part of these waits on pool threads.
    pub(super) of_pool: Blocked,
    /// Largest number of threads that waited at the same time.
    pub(super) most_at_once: u64,
}

/// Pool threads that run work items.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct PoolThreads {
    /// Time that these threads were blocked.
    pub(super) blocked: Blocked,
    /// Largest number of these threads that were blocked at the same time.
    pub(super) most_blocked: u64,
    /// Number of these threads soon after the first of them was blocked.
    pub(super) at_first: u64,
    /// Largest number of these threads after that moment.
    pub(super) most: u64,
}

/// Waits of one process.
#[derive(Debug)]
pub(super) struct ProcessWaits<'a> {
    pub(super) process: &'a Process,
    /// Length of the watched time, in nanoseconds.
    pub(super) watched_ns: u64,
    /// The groups, ordered by time.
    pub(super) groups: Vec<WaitGroup<'a>>,
    pub(super) pool: PoolThreads,
    /// Lengths of the pool's queue, empty if they are not known.
    pub(super) queue: PoolQueue,
}

/// Returns the waits of each process that `wall` sampled.
///
/// # Errors
/// When the query matches no process or thread.
pub(super) fn process_waits<'a>(
    recording: &'a Recording,
    query: &Query,
) -> Result<Vec<ProcessWaits<'a>>, QueryProblem> {
    let mut all: BTreeMap<u32, (&'a Process, ThreadTimes<'a>)> = BTreeMap::new();
    each_wanted(recording, query, instrument::WALL, |process, sample| {
        all.entry(process.pid).or_insert_with(|| (process, ThreadTimes::new(process))).1.add(sample);
    })?;
    let mut found: BTreeMap<u32, Grouping<'a>> =
        all.into_iter().map(|(pid, (process, times))| (pid, grouping(process, &times, query))).collect();
    // The number of concurrent waits is known only once the idle threads are known.
    each_wanted(recording, query, instrument::WALL, |process, sample| {
        if let Some(grouping) = found.get_mut(&process.pid) {
            grouping.add_moment(sample);
        }
    })?;
    Ok(found.into_values().map(|grouping| grouping.finish(recording, query)).collect())
}

/// Groups the waits that are a problem.
fn grouping<'a>(process: &'a Process, times: &ThreadTimes<'a>, query: &Query) -> Grouping<'a> {
    let watched_ns = watched_ns(process, query).max(1);
    let idle = times.idle_threads(watched_ns, 0);
    let held = times.semaphores_held(watched_ns);
    let counts = |role: ThreadRole, wait: &WaitBelow<'_>| {
        is_trouble(role, wait.reason) || wait.reason == WaitReason::SEMAPHORE && held.contains(wait.function.name())
    };
    let mut sums: BTreeMap<GroupKey<'a>, (WaitGroup<'a>, BTreeMap<CodePlace<'a>, u64>)> = BTreeMap::new();
    let mut group_of_wait = FxHashMap::default();
    for (&(thread, stack, state), &blocked) in &times.blocked {
        let role = role_of(process, thread);
        let Some(wait) = times.wait(stack, state).filter(|wait| counts(role, wait)) else { continue };
        if idle.contains(&thread) {
            continue;
        }
        let key = (wait.function.module(), wait.function.label(), wait.reason);
        group_of_wait.insert((thread, stack, state), key.clone());
        let (group, places) = sums.entry(key).or_insert_with(|| (WaitGroup::new(wait), BTreeMap::new()));
        group.blocked.add(blocked);
        if role == ThreadRole::Pool {
            group.of_pool.add(blocked);
        }
        let at_place = places.entry(wait.place).or_default();
        *at_place = at_place.saturating_add(blocked.ns);
    }
    let keys: Vec<GroupKey<'a>> = sums.keys().cloned().collect();
    let number = |key: &GroupKey<'a>| keys.binary_search(key).unwrap_or_default();
    let groups = sums.into_values().map(|(group, places)| WaitGroup {
        place: places.iter().rev().max_by_key(|(_, ns)| **ns).map_or(group.place, |(place, _)| *place),
        ..group
    });
    Grouping {
        process,
        watched_ns,
        groups: groups.collect(),
        group_of_wait: group_of_wait.into_iter().map(|(wait, key)| (wait, number(&key))).collect(),
        moments: vec![Vec::new(); keys.len()],
        moments_of_pool: Vec::new(),
    }
}

/// Module and label of the function, and the reason of the wait.
type GroupKey<'a> = (&'a str, Cow<'a, str>, WaitReason);

/// Waits of a process in groups, with their times.
struct Grouping<'a> {
    process: &'a Process,
    watched_ns: u64,
    groups: Vec<WaitGroup<'a>>,
    /// Number of the group by thread, stack and state.
    group_of_wait: FxHashMap<(u32, u32, ThreadState), usize>,
    /// Begins and ends of the waits of each group.
    moments: Vec<Vec<(u64, i64)>>,
    /// Begins and ends of the waits of all pool threads.
    moments_of_pool: Vec<(u64, i64)>,
}

impl<'a> Grouping<'a> {
    fn add_moment(&mut self, sample: &Sample) {
        let Some(&group) = self.group_of_wait.get(&(sample.thread, sample.stack, sample.state)) else { return };
        let moments = [(sample.time_ns, 1), (sample.time_ns.saturating_add(sample.weight_ns), -1)];
        self.moments[group].extend(moments);
        if role_of(self.process, sample.thread) == ThreadRole::Pool {
            self.moments_of_pool.extend(moments);
        }
    }

    fn finish(mut self, recording: &Recording, query: &Query) -> ProcessWaits<'a> {
        for (group, moments) in self.groups.iter_mut().zip(&mut self.moments) {
            group.most_at_once = most_at_once(moments);
        }
        let pool = self.pool();
        self.groups.sort_by_key(|group| std::cmp::Reverse(group.blocked.ns));
        // Only sentences about blocked threads of the pool mention its queue.
        let is_blocked = pool.blocked.ns > 0;
        let queue = if is_blocked { PoolQueue::read(recording, self.process, query) } else { PoolQueue::default() };
        ProcessWaits { process: self.process, watched_ns: self.watched_ns, groups: self.groups, pool, queue }
    }

    fn pool(&mut self) -> PoolThreads {
        let mut blocked = Blocked::default();
        self.groups.iter().for_each(|group| blocked.add(group.of_pool));
        let most_blocked = most_at_once(&mut self.moments_of_pool);
        // Times of threads count from the start of the run, times of samples from the start of the
        // process.
        let first = self.moments_of_pool.first().map_or(0, |first| first.0).saturating_add(ALL_MET_NS);
        let first_ns = self.process.started_ns.saturating_add(first);
        let threads = self.process.threads.iter().filter(|thread| is_worker(thread));
        let mut changes: Vec<(u64, i64)> = threads
            .filter(|thread| thread.ended_ns.is_none_or(|ended_ns| ended_ns > first_ns))
            .flat_map(|thread| [(thread.created_ns.max(first_ns), 1), (thread.ended_ns.unwrap_or(u64::MAX), -1)])
            .collect();
        let at_first = changes.iter().filter(|change| **change == (first_ns, 1)).count() as u64;
        PoolThreads { blocked, most_blocked, at_first, most: most_at_once(&mut changes) }
    }
}

impl<'a> WaitGroup<'a> {
    fn new(wait: WaitBelow<'a>) -> Self {
        let WaitBelow { function, place, reason } = wait;
        let none = Blocked::default();
        Self { function, place, reason, blocked: none, of_pool: none, most_at_once: 0 }
    }
}
