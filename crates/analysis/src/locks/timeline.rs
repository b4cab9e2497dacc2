//! All waits of a process in the order of time. They show which threads wait together, and on which
//! path the holder waited for the lock.

use clrscope_recording::model::{Process, Thread};
use rustc_hash::FxHashMap;

use super::blocking::{BlockingStart, BlockingWaits};
use super::rows::Grouping;
use super::wait::{Wait, WaitStart};

/// Maximum number of locks that are remembered. If there are more, locks without waiters are
/// forgotten.
const MOST_LOCKS: usize = 1 << 16;

/// The known state of a lock.
#[derive(Debug, Default)]
struct LockState {
    /// Number among all locks.
    number: u64,
    class: Option<u32>,
    waiters: u64,
    /// The last thread that acquired the lock after a wait, and the stack of that wait.
    last: Option<(u32, Option<u32>)>,
}

/// The waits in the records read so far.
pub(super) struct Timeline<'q, 'a> {
    process: &'a Process,
    /// Indices of threads by operating system id. Ids are reused, so there may be several.
    threads: FxHashMap<u64, Vec<u32>>,
    /// Locks by the runtime's numbers.
    locks: FxHashMap<u64, LockState>,
    lock_count: u64,
    /// Pending waits, by thread.
    under_way: FxHashMap<u32, Wait>,
    grouping: Grouping<'q, 'a>,
    /// Waits for objects without a holder.
    blocking: BlockingWaits<'q, 'a>,
}

impl<'q, 'a> Timeline<'q, 'a> {
    pub(super) fn new(process: &'a Process, grouping: Grouping<'q, 'a>, blocking: BlockingWaits<'q, 'a>) -> Self {
        let mut threads: FxHashMap<u64, Vec<u32>> = FxHashMap::default();
        for (index, thread) in (0..).zip(&process.threads) {
            threads.entry(thread.os_id.into()).or_default().push(index);
        }
        let (locks, under_way) = (FxHashMap::default(), FxHashMap::default());
        Self { process, threads, locks, lock_count: 0, under_way, grouping, blocking }
    }

    /// A thread begins to wait for a lock. If the thread already has a pending wait, that wait ends
    /// now, because the event of its end is missing.
    pub(super) fn started(&mut self, start: WaitStart) {
        self.ended(start.thread, start.time_ns);
        let holder = self.thread_at(start.holder, start.time_ns);
        let lock = self.lock(&start);
        lock.waiters += 1;
        let (number, waiters) = (lock.number, lock.waiters);
        let last = lock.last.filter(|(thread, _)| holder == Some(*thread));
        let holder_stack = last.and_then(|(_, stack)| stack);
        let end_ns = start.time_ns;
        self.under_way
            .insert(start.thread, Wait { start, lock: number, end_ns, is_pending: false, waiters, holder_stack });
    }

    /// A thread has acquired the lock that it waited for. A wait that began before the recording is
    /// left out.
    pub(super) fn ended(&mut self, thread: u32, time_ns: u64) {
        let Some(wait) = self.under_way.remove(&thread) else { return };
        if let Some(lock) = self.locks.get_mut(&wait.start.lock).filter(|lock| lock.number == wait.lock) {
            lock.waiters = lock.waiters.saturating_sub(1);
            lock.last = Some((thread, wait.start.stack));
        }
        self.grouping.add(&Wait { end_ns: time_ns, ..wait });
    }

    /// A thread begins to wait for a handle or a condition. If the thread waits for a lock, the new
    /// wait is part of the wait for the lock.
    pub(super) fn blocks(&mut self, start: BlockingStart) {
        if !self.under_way.contains_key(&start.thread) {
            self.blocking.started(start);
        }
    }

    /// A thread ends its wait for a handle or a condition.
    pub(super) fn unblocks(&mut self, thread: u32, time_ns: u64) {
        self.blocking.ended(thread, time_ns);
    }

    /// The recording is over, which ends the pending waits.
    pub(super) fn finish(mut self) -> (Grouping<'q, 'a>, BlockingWaits<'q, 'a>) {
        let end_ns = self.process.started_ns.saturating_add(self.process.duration_ns);
        let mut pending: Vec<Wait> = self.under_way.into_values().collect();
        pending.sort_unstable_by_key(|wait| (wait.start.time_ns, wait.start.thread));
        for wait in pending {
            self.grouping.add(&Wait { end_ns: end_ns.max(wait.start.time_ns), is_pending: true, ..wait });
        }
        (self.grouping, self.blocking)
    }

    fn lock(&mut self, start: &WaitStart) -> &mut LockState {
        if self.locks.len() >= MOST_LOCKS {
            self.locks.retain(|_, lock| lock.waiters > 0);
        }
        let lock = self.locks.entry(start.lock).or_default();
        if lock.number == 0 || lock.class != start.class {
            self.lock_count += 1;
            *lock = LockState { number: self.lock_count, class: start.class, ..LockState::default() };
        }
        lock
    }

    /// Index of the thread that had this operating system id at this time.
    fn thread_at(&self, os_id: u64, time_ns: u64) -> Option<u32> {
        let lived = |thread: &Thread| {
            thread.created_ns <= time_ns && thread.ended_ns.is_none_or(|ended_ns| time_ns <= ended_ns)
        };
        let mut candidates = self.threads.get(&os_id)?.iter().copied();
        candidates.find(|index| self.process.threads.get(*index as usize).is_some_and(lived))
    }
}
