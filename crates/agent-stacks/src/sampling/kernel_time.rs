//! Time in the kernel that perf events may not sample: the difference between the threads' CPU
//! clocks and their samples.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::os::fd::RawFd;

use clrscope_agent_base::os::threads::is_among;

use super::os::task::Task;

/// Number of intervals by which samples may lag behind a clock.
const SLACK: u64 = 3;
/// Most rounds in which an idle thread is skipped.
const LONGEST: u32 = 15;

/// The clocks of threads, and the weights of their samples.
pub(super) struct KernelTime {
    interval_ns: u64,
    /// Threads that the events don't cover.
    passed_over: HashSet<u32>,
    threads: HashMap<u32, Account>,
}

struct Account {
    task: Task,
    /// CPU time of the thread before sampling began.
    before_ns: u64,
    sampled_ns: u64,
    /// CPU time at the last look.
    ran_ns: u64,
    /// Rounds between two looks, and the remaining ones.
    pause: u32,
    rounds_left: u32,
}

impl KernelTime {
    /// Creates the clocks for the thread `first` and for threads that begin later. Other threads in
    /// `alive`, which lists all existing threads, are left out.
    pub(super) fn new(interval_ns: u64, first: u32, alive: &[u32]) -> Self {
        let passed_over = alive.iter().copied().filter(|&os_id| os_id != first).collect();
        let mut threads = HashMap::new();
        if let Some(account) = Account::open(first, true) {
            threads.insert(first, account);
        }
        Self { interval_ns, passed_over, threads }
    }

    /// File descriptors that this keeps open.
    pub(super) fn descriptors(&self) -> impl Iterator<Item = RawFd> {
        self.threads.values().map(|account| account.task.descriptor())
    }

    /// Call it when a sample of a thread was recorded.
    pub(super) fn sampled(&mut self, os_id: u32, weight_ns: u64) {
        if let Some(account) = self.account(os_id) {
            account.sampled_ns += weight_ns;
        }
    }

    /// Calls `take` for each thread whose CPU time without samples is more than a few intervals.
    /// Idle threads are looked at ever more rarely, unless `is_last`.
    pub(super) fn update(&mut self, alive: &[u32], is_last: bool, mut take: impl FnMut(u32, u64)) {
        let slack = SLACK * self.interval_ns;
        for &os_id in alive {
            let Some(account) = self.account(os_id) else { continue };
            if account.rounds_left > 0 && !is_last {
                account.rounds_left -= 1;
                continue;
            }
            let Some(schedule) = account.task.schedule() else { continue };
            account.pause = if schedule.ran_ns == account.ran_ns { (2 * account.pause + 1).min(LONGEST) } else { 0 };
            (account.rounds_left, account.ran_ns) = (account.pause, schedule.ran_ns);
            let missing = schedule.ran_ns.saturating_sub(account.before_ns).saturating_sub(account.sampled_ns);
            if missing > slack {
                account.sampled_ns += missing;
                take(os_id, missing);
            }
        }
        self.threads.retain(|os_id, _| is_among(alive, *os_id));
        self.passed_over.retain(|os_id| is_among(alive, *os_id));
    }

    fn account(&mut self, os_id: u32) -> Option<&mut Account> {
        if self.passed_over.contains(&os_id) {
            return None;
        }
        Some(match self.threads.entry(os_id) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(Account::open(os_id, false)?),
        })
    }
}

impl Account {
    fn open(os_id: u32, has_run: bool) -> Option<Self> {
        let task = Task::open(os_id)?;
        let before_ns = if has_run { task.schedule()?.ran_ns } else { 0 };
        Some(Self { task, before_ns, sampled_ns: 0, ran_ns: 0, pause: 0, rounds_left: 0 })
    }
}

#[cfg(test)]
mod tests {
    use clrscope_testkit::wait_until;

    use super::*;

    #[test]
    fn time_without_samples_is_found_once_and_time_with_samples_is_not() {
        let me = clrscope_agent_base::os::threads::thread_id();
        let alive = [1, me];
        let mut time = KernelTime::new(1_000_000, me, &alive);
        let begun = Task::open(me).and_then(|task| task.schedule()).expect("alive").ran_ns;
        wait_until("some work", || {
            Task::open(me).and_then(|task| task.schedule()).expect("alive").ran_ns > begun + 20_000_000
        });
        time.sampled(me, 10_000_000);
        let mut found = Vec::new();
        time.update(&alive, true, |os_id, missing| found.push((os_id, missing)));
        assert!(matches!(found[..], [(os_id, missing)] if os_id == me && missing >= 10_000_000), "{found:?}");
        time.sampled(me, 1 << 40);
        time.update(&alive, true, |os_id, missing| found.push((os_id, missing)));
        assert_eq!(found.len(), 1, "{found:?}");
    }
}
