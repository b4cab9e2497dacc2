//! Threads of the pool that the program's own code blocks: each waits for a task, a lock or a time
//! while what was queued waits for a thread. The pool starts more of them one by one, half a second
//! apart.

use clrscope_recording::layout::instrument;
use clrscope_recording::model::{Process, Recording, Sample, ThreadRole, ThreadState};
use rustc_hash::FxHashMap;

use super::finding::Part;
use super::sampled::each_wanted;
use super::unused::watched_ns;
use super::{Finding, FindingKind};
use crate::exceptions::CallStack;
use crate::function::is_own;
use crate::numbers::time;
use crate::query::{Query, QueryProblem};
use crate::samples::SAMPLED_WALL;
use crate::sampling::sampled_bounds;
use crate::thread_stacks::wait_of;

/// Share of the run that one thread has to be blocked in all where the pool is not starved.
const MUCH: f64 = 0.05;
/// What is waited for by code that uses a task in place of an await.
const TASK: &str = "a task";
/// What threads wait for that are there to wait: consumers of queues.
const OF_CONSUMERS: [&str; 4] = ["work", "a semaphore", "an event", "a pulse (Monitor.Wait)"];

/// Time that threads of the pool of one process were blocked below own code.
#[derive(Default)]
struct Blocked {
    ns: u64,
    samples: u64,
    /// Begins and ends of waits, for how many there were at once.
    changes: Vec<(u64, i32)>,
    /// Time by number of the stack and what is waited for there.
    by_wait: FxHashMap<(u32, &'static str), u64>,
    /// What threads in a state wait for on a stack that blocks the pool; `None` for other stacks.
    waits: FxHashMap<(u32, ThreadState), Option<&'static str>>,
}

/// The sentence about the process whose pool was blocked longest, where that is worth one.
pub(super) fn found(recording: &Recording, query: &Query) -> Result<Option<Finding>, QueryProblem> {
    let mut all: FxHashMap<u32, (&Process, Blocked)> = FxHashMap::default();
    each_wanted(recording, query, instrument::WALL, |process, sample| {
        let (_, blocked) = all.entry(process.pid).or_insert_with(|| (process, Blocked::default()));
        blocked.add(process, sample);
    })?;
    let most = all.into_values().max_by_key(|(process, blocked)| (blocked.ns, process.pid));
    Ok(most.and_then(|(process, blocked)| blocked.finding(process, query)))
}

/// What a thread waits for below own code that does not only consume what others queue.
fn wait_below_own_code(process: &Process, sample: &Sample) -> Option<&'static str> {
    let stack = CallStack::new(process, &process.stacks, sample.stack);
    let waits_for = wait_of(sample.state, &stack).filter(|what| !OF_CONSUMERS.contains(what));
    waits_for.filter(|_| stack.functions().any(|function| is_own(&function)))
}

impl Blocked {
    fn add(&mut self, process: &Process, sample: &Sample) {
        let thread = sample.thread.checked_sub(1).and_then(|index| process.threads.get(index as usize));
        if !thread.is_some_and(|thread| thread.role == ThreadRole::Pool) {
            return;
        }
        let find = || wait_below_own_code(process, sample);
        let Some(what) = *self.waits.entry((sample.stack, sample.state)).or_insert_with(find) else { return };
        self.ns = self.ns.saturating_add(sample.weight_ns);
        self.samples = self.samples.saturating_add(u64::from(sample.count));
        self.changes.push((sample.time_ns, 1));
        self.changes.push((sample.time_ns.saturating_add(sample.weight_ns), -1));
        let sum = self.by_wait.entry((sample.stack, what)).or_default();
        *sum = sum.saturating_add(sample.weight_ns);
    }

    /// Threads that were blocked at once, at most.
    fn most_at_once(&mut self) -> i32 {
        // Of what ends and begins at the same moment the end comes first.
        self.changes.sort_unstable();
        let (mut now, mut most) = (0, 0);
        for (_, change) in &self.changes {
            now += change;
            most = most.max(now);
        }
        most
    }

    fn finding(mut self, process: &Process, query: &Query) -> Option<Finding> {
        let run_ns = watched_ns(process, query).max(1);
        let (low_ns, high_ns) = sampled_bounds(self.ns as f64, self.ns as f64 / self.samples.max(1) as f64);
        let part = Part::between(self.ns, (low_ns as u64, high_ns as u64), run_ns);
        let is_starved = process.processors > 0 && low_ns / run_ns as f64 >= f64::from(process.processors);
        let &(stack, what) = self.by_wait.iter().max_by_key(|(wait, ns)| (**ns, **wait))?.0;
        if !is_starved && (what != TASK || !part.is_surely(MUCH)) {
            return None;
        }
        let most = self.most_at_once();
        let stack = CallStack::new(process, &process.stacks, stack);
        let own = stack.iter().find(|frame| is_own(&frame.function))?;
        let instead = if what == TASK { " (sync over async)" } else { "" };
        let below = format!("most below {}, which waits for {what}{instead}", own.function.label());
        let in_all = time(self.ns);
        let (kind, text) = if is_starved {
            let mean = self.ns as f64 / run_ns as f64;
            let processors = match process.processors {
                1 => "1 processor".to_owned(),
                number => format!("{number} processors"),
            };
            let text = format!(
                "the thread pool is starved: on average {mean:.1} of its threads were blocked ({most} at most, {in_all} in \
                 all) on {processors}, {below}"
            );
            (FindingKind::PoolStarved, text)
        } else {
            (
                FindingKind::Wait,
                format!("threads of the pool were blocked for {in_all} in all ({most} at most at once), {below}"),
            )
        };
        let found = Finding::with_share(kind, text, part).by(SAMPLED_WALL.name).at(&own.function, own.place);
        Some(found.shown_by("--view tree --metric wall --just-my-code"))
    }
}
