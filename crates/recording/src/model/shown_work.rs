//! The work that reports show of a process, if the recording was reduced to some requests.

use std::collections::{BTreeMap, BTreeSet};

/// The work that reports show, by threads and times.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShownWork {
    /// Ids of those selected requests that the program served: only for them can threads have
    /// worked.
    pub requests: BTreeSet<u64>,
    /// Whether the recording says for which request each thread of the process works. If not, none
    /// of their work can be shown.
    pub is_known: bool,
    /// By the number of the thread: the selected periods, each from and to a nanosecond since the
    /// start of the run, in order and disjoint.
    times: BTreeMap<u32, Vec<(u64, u64)>>,
}

impl ShownWork {
    /// Adds the period from `since_ns` to `until_ns` to the shown work of `thread`. Periods of a
    /// thread must be added in the order of time.
    pub fn push(&mut self, thread: u32, since_ns: u64, until_ns: u64) {
        let times = self.times.entry(thread).or_default();
        match times.last_mut() {
            Some((_, last)) if *last >= since_ns => *last = until_ns.max(*last),
            _ => times.push((since_ns, until_ns)),
        }
    }

    /// Whether the shown work includes what the thread with this number did at a time.
    #[must_use]
    pub fn has(&self, thread: u32, time_ns: u64) -> bool {
        let Some(times) = self.times.get(&thread) else { return false };
        let begun = times.partition_point(|(since, _)| *since <= time_ns);
        begun.checked_sub(1).is_some_and(|last| time_ns < times[last].1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_shown_from_its_beginning_up_to_its_end() {
        let mut work = ShownWork::default();
        work.push(3, 10, 20);
        work.push(3, 20, 30);
        work.push(3, 40, u64::MAX);
        let shown = [9, 10, 20, 29, 30, 39, 40, u64::MAX - 1].map(|time| work.has(3, time));
        assert_eq!(shown, [false, true, true, true, false, false, true, true]);
        assert!(!work.has(4, 10), "another thread");
    }
}
