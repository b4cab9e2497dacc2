//! Threads of the pool that the program's own code blocks: each waits for a task, a lock or a time while
//! what was queued waits for a thread. The pool starts more of them one by one, half a second apart.

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
    /// Time by number of the stack.
    by_stack: FxHashMap<u32, u64>,
}

/// What a stack with own code waits for; `None` for stacks without.
type KnownWaits = FxHashMap<u32, Option<&'static str>>;

/// The sentence about the process whose pool was blocked longest, where that is worth one.
pub(super) fn found(recording: &Recording, query: &Query) -> Result<Option<Finding>, QueryProblem> {
    let mut all: FxHashMap<u32, (&Process, Blocked, KnownWaits)> = FxHashMap::default();
    each_wanted(recording, query, instrument::WALL, |process, sample| {
        let known = || (process, Blocked::default(), KnownWaits::default());
        let (_, blocked, waits) = all.entry(process.pid).or_insert_with(known);
        if waits_below_own_code(process, sample, waits).is_some() {
            blocked.add(sample);
        }
    })?;
    let most = all.into_values().max_by_key(|(process, blocked, _)| (blocked.ns, process.pid));
    Ok(most.and_then(|(process, blocked, waits)| blocked.finding(process, &waits, query)))
}

/// What a thread of the pool waits for below own code that does not only consume what others queue.
fn waits_below_own_code(process: &Process, sample: &Sample, known: &mut KnownWaits) -> Option<&'static str> {
    let thread = sample.thread.checked_sub(1).and_then(|index| process.threads.get(index as usize))?;
    let by_state = match sample.state {
        ThreadState::Lock => Some("a lock"),
        ThreadState::Waiting | ThreadState::Sleeping | ThreadState::Io => None,
        _ => return None,
    };
    if thread.role != ThreadRole::Pool {
        return None;
    }
    let find = || {
        let stack = CallStack::new(process, &process.stacks, sample.stack);
        stack.functions().any(|function| is_own(&function)).then(|| wait_of(&stack)).flatten()
    };
    let waits_for = known.entry(sample.stack).or_insert_with(find).or(by_state);
    waits_for.filter(|what| !OF_CONSUMERS.contains(what))
}

impl Blocked {
    fn add(&mut self, sample: &Sample) {
        self.ns = self.ns.saturating_add(sample.weight_ns);
        self.samples = self.samples.saturating_add(u64::from(sample.count));
        self.changes.push((sample.time_ns, 1));
        self.changes.push((sample.time_ns.saturating_add(sample.weight_ns), -1));
        let sum = self.by_stack.entry(sample.stack).or_default();
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

    fn finding(mut self, process: &Process, waits: &KnownWaits, query: &Query) -> Option<Finding> {
        let run_ns = watched_ns(process, query).max(1);
        let (low_ns, high_ns) = sampled_bounds(self.ns as f64, self.ns as f64 / self.samples.max(1) as f64);
        let part = Part::between(self.ns, (low_ns as u64, high_ns as u64), run_ns);
        let is_starved = process.processors > 0 && low_ns / run_ns as f64 >= f64::from(process.processors);
        let (stack, _) =
            self.by_stack.iter().max_by_key(|(stack, ns)| (**ns, **stack)).map(|(stack, ns)| (*stack, *ns))?;
        let what = waits.get(&stack).copied().flatten().unwrap_or("a lock");
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
