//! Size of the thread pool and length of its queue over time.
//!
//! The size comes from the threads that `wall` has met. The length of the queue is a counter of the
//! runtime, once a second, so it is known only if `counters` was recorded too.

use clrscope_contract::request::Glob;
use clrscope_recording::model::{Process, Recording, Thread, ThreadRole};

use crate::counters::counters;
use crate::numbers::number;
use crate::parts::watched_times;
use crate::query::Query;

/// The runtime's counter for the length of the queue: the event counter, and the instrument of its
/// meter that 9 and later have too.
const QUEUE: [&str; 2] = ["System.Runtime/threadpool-queue-length", "System.Runtime/dotnet.thread_pool.queue.length"];
/// Most steps into which the time is divided, and the shortest step.
const MOST_STEPS: u64 = 100;
const LEAST_STEP_NS: u64 = 1_000_000_000;
/// Pool threads that run no work items.
const NO_WORKERS: [&str; 3] = [".NET TP Gate", ".NET TP Wait", ".NET Timer"];

/// Size of the thread pool and length of its queue in one step of the displayed time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct PoolStep {
    /// End of the step, in nanoseconds since the start of the run.
    pub time_ns: u64,
    /// Number of threads that the pool had at the end of the step.
    pub threads: u64,
    /// Largest measured number of work items in the queue during the step; `None` if it was not
    /// measured.
    pub queue: Option<u64>,
}

/// Measured lengths of a pool's queue, each with its time in nanoseconds since the start of the
/// run, in the order of time.
#[derive(Debug, Clone, Default)]
pub(super) struct PoolQueue {
    lengths: Vec<(u64, u64)>,
}

impl PoolQueue {
    /// Reads the lengths in a process that a query shows; empty if they were not recorded.
    pub(super) fn read(recording: &Recording, process: &Process, query: &Query) -> Self {
        let all = Query { limit: None, metric: None, sort: None, ..query.clone() };
        let lengths = |name: &str| {
            let name = Glob::new(name);
            let (rows, _) = counters(recording, &all, &[name]).ok()?;
            let rows = rows.into_iter().filter(|row| std::ptr::eq(row.process, process));
            let points = rows.flat_map(|row| row.points);
            let mut lengths: Vec<_> = points.map(|point| (point.time_ns, point.value.max(0.0) as u64)).collect();
            lengths.sort_unstable();
            Some(lengths).filter(|lengths| !lengths.is_empty())
        };
        Self { lengths: QUEUE.into_iter().find_map(lengths).unwrap_or_default() }
    }

    /// Text about the queue; `None` if its length is not known.
    pub(super) fn text(&self) -> Option<String> {
        let (first, last) = (self.lengths.first()?.1, self.lengths.last()?.1);
        let most = self.lengths.iter().map(|(_, length)| *length).max()?;
        let items = if most == 1 { "work item" } else { "work items" };
        Some(match self.lengths.len() {
            _ if most == 0 => "nothing waited in its queue".to_owned(),
            1 => format!("{} {items} waited in its queue", number(most)),
            _ => format!(
                "up to {} {items} waited in its queue, {} at first and {} at the end",
                number(most),
                number(first),
                number(last)
            ),
        })
    }

    /// Length of the queue and size of the pool over the time that a query shows.
    pub(super) fn steps(&self, process: &Process, query: &Query) -> Vec<PoolStep> {
        let whole = (process.started_ns, process.started_ns.saturating_add(process.duration_ns));
        let times = watched_times(process, query, whole);
        let since = times.iter().map(|time| time.0).min().unwrap_or(0);
        let until = times.iter().map(|time| time.1).max().unwrap_or(0);
        let step_ns = (until.saturating_sub(since) / MOST_STEPS).max(LEAST_STEP_NS);
        let begins = (0..=MOST_STEPS).map(|step| since.saturating_add(step * step_ns));
        let steps = begins.take_while(|begin| *begin < until).map(|begin| (begin, (begin + step_ns).min(until)));
        let is_watched = |(begin, end): &(u64, u64)| times.iter().any(|time| time.0 < *end && time.1 > *begin);
        let workers: Vec<&Thread> = process.threads.iter().filter(|thread| is_worker(thread)).collect();
        let step = |(begin, end): (u64, u64)| {
            let is_there =
                |thread: &&&Thread| thread.created_ns < end && thread.ended_ns.is_none_or(|ended_ns| ended_ns >= end);
            let in_step = |time_ns: u64| time_ns > begin && time_ns <= end;
            let lengths = self.lengths.iter().filter(|(time_ns, _)| in_step(*time_ns));
            PoolStep {
                time_ns: end,
                threads: workers.iter().filter(is_there).count() as u64,
                queue: lengths.map(|(_, length)| *length).max(),
            }
        };
        steps.filter(is_watched).map(step).collect()
    }
}

/// Whether a thread belongs to the pool and runs work items.
pub(super) fn is_worker(thread: &Thread) -> bool {
    thread.role == ThreadRole::Pool && !NO_WORKERS.contains(&&*thread.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;

    fn queue(lengths: &[u64]) -> PoolQueue {
        PoolQueue { lengths: (1..).zip(lengths).map(|(second, length)| (second * SECOND_NS, *length)).collect() }
    }

    #[test]
    fn the_text_has_the_largest_length_and_how_it_grew() {
        let texts = [&[][..], &[0, 0], &[1], &[7], &[3, 1200, 40]].map(|lengths| queue(lengths).text());
        let texts = texts.each_ref().map(|text| text.as_deref());
        assert_eq!(
            texts,
            [
                None,
                Some("nothing waited in its queue"),
                Some("1 work item waited in its queue"),
                Some("7 work items waited in its queue"),
                Some("up to 1,200 work items waited in its queue, 3 at first and 40 at the end"),
            ]
        );
    }

    #[test]
    fn steps_have_the_threads_at_their_ends_and_the_longest_queue_in_them() {
        let worker = |created: u64, ended: Option<u64>| Thread {
            role: ThreadRole::Pool,
            created_ns: created * SECOND_NS,
            ended_ns: ended.map(|ended| ended * SECOND_NS),
            ..Thread::default()
        };
        let gate = Thread { name: ".NET TP Gate".into(), ..worker(0, None) };
        let threads = vec![worker(0, None), worker(1, Some(3)), worker(2, None), gate];
        let process = Process { duration_ns: 3_500_000_000, threads, ..Process::default() };
        let steps = |query: &Query| {
            let steps = queue(&[5, 9, 7]).steps(&process, query);
            steps.iter().map(|step| (step.time_ns / 1_000_000, step.threads, step.queue)).collect::<Vec<_>>()
        };
        let all = [(1000, 1, Some(5)), (2000, 2, Some(9)), (3000, 3, Some(7)), (3500, 2, None)];
        assert_eq!(steps(&Query::default()), all);
        let later = Query { since_ns: Some(1_500_000_000), until_ns: Some(2 * SECOND_NS), ..Query::default() };
        assert_eq!(steps(&later), [(2000, 2, Some(9))]);
        // A day has as many steps as two minutes.
        let process = Process { duration_ns: 86_400 * SECOND_NS, ..Process::default() };
        assert_eq!(queue(&[]).steps(&process, &Query::default()).len(), 100);
    }
}
