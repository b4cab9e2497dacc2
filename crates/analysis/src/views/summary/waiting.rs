//! Sentences about waits below own code: a starved thread pool, lock convoys, and other blocked
//! threads.

use clrscope_recording::model::Recording;

use super::finding::{FindingPlace, Part};
use super::wait_groups::{PoolThreads, ProcessWaits, WaitGroup, process_waits};
use super::{Finding, FindingKind};
use crate::idle_threads::Blocked;
use crate::numbers::time;
use crate::query::{Query, QueryProblem};
use crate::samples::SAMPLED_WALL;
use crate::sampling::sampled_bounds;
use crate::waits::{WaitKind, WaitReason};

/// Total waiting time, as a share of one thread's time, that is worth a sentence.
pub(super) const MUCH: f64 = 0.05;
/// Maximum number of groups per process that get their own sentence.
pub(super) const MOST: usize = 3;
/// Option that records the length of the pool's queue.
const QUEUE_INSTRUMENT: &str = "-i counters";

/// Returns the sentences about all processes that a query selects.
///
/// # Errors
/// When the query matches no process or thread.
pub(super) fn found(recording: &Recording, query: &Query) -> Result<Vec<Finding>, QueryProblem> {
    Ok(process_waits(recording, query)?.iter().flat_map(|waits| findings(waits, query)).collect())
}

fn findings(waits: &ProcessWaits<'_>, query: &Query) -> Vec<Finding> {
    let pool = waits.groups.iter().max_by_key(|group| group.of_pool.ns).filter(|group| group.of_pool.ns > 0);
    let about_pool = pool.and_then(|most| Some((most, about_pool(waits, most, query)?)));
    let is_said = |group: &WaitGroup<'_>| about_pool.as_ref().is_some_and(|(said, _)| std::ptr::eq(*said, group));
    let others = waits.groups.iter().filter(|group| !is_said(group));
    let others = others.filter_map(|group| about_group(waits, group)).take(MOST);
    let others: Vec<Finding> = others.collect();
    about_pool.into_iter().map(|(_, found)| found).chain(others).collect()
}

/// The sentence about the pool, if its threads are blocked; `most` is the group that blocks them
/// most.
fn about_pool(waits: &ProcessWaits<'_>, most: &WaitGroup<'_>, query: &Query) -> Option<Finding> {
    let PoolThreads { blocked, most_blocked, .. } = waits.pool;
    let WaitReason { kind, what } = most.reason;
    let (low, _) = bounds(blocked);
    let is_starved =
        waits.process.processors > 0 && low / waits.watched_ns as f64 >= f64::from(waits.process.processors);
    let instead = instead_of_await(most.reason);
    let below = format!("most in calls from {}, which waits for {what}{instead}", most.function.label());
    let [in_all, of_most] = [blocked.ns, most.blocked.ns].map(time);
    let mean = format!("{:.1}", blocked.ns as f64 / waits.watched_ns as f64);
    let processors = match waits.process.processors {
        1 => "1 processor".to_owned(),
        number => format!("{number} processors"),
    };
    let (grown, queue) = (growth(&waits.pool), waits.queue.text());
    let no_queue = || format!("{QUEUE_INSTRUMENT} shows the length of its queue");
    let (kind, text, sum) = match is_starved {
        // Where threads queue for a lock, additional threads would queue as well.
        true if kind == WaitKind::Lock => {
            let (function, at_once) = (most.function.label(), most.most_at_once);
            let in_pool: String = grown.into_iter().chain(queue).map(|said| format!(", and {said}")).collect();
            let text = format!(
                "threads waited {of_most} in all for {what} in calls from {function} ({at_once} at once at most): on \
                 average {mean} threads of the pool were blocked on {processors}{in_pool}"
            );
            (FindingKind::LockConvoy, text, most.blocked)
        }
        true => {
            let queue = queue.unwrap_or_else(no_queue);
            let in_pool: String = grown.into_iter().chain([queue]).map(|said| format!("; {said}")).collect();
            let text = format!(
                "the thread pool is starved: on average {mean} of its threads were blocked ({most_blocked} at most, \
                 {in_all} in all{in_pool}) on {processors}, {below}"
            );
            (FindingKind::PoolStarved, text, blocked)
        }
        false if most.reason == WaitReason::TASK => {
            let text = format!(
                "threads of the pool were blocked for {in_all} in all ({most_blocked} at most at once), {below}"
            );
            (FindingKind::Wait, text, blocked)
        }
        false => return None,
    };
    let pool = waits.queue.steps(waits.process, query);
    finding(waits, kind, text, sum, most).map(|found| Finding { pool, ..found })
}

/// Text about a pool that grew while its threads were blocked.
fn growth(pool: &PoolThreads) -> Option<String> {
    let PoolThreads { at_first, most, .. } = *pool;
    (most > at_first + 1).then(|| format!("the pool grew from {at_first} to {most} threads"))
}

/// The sentence about the waits of one function, if they are long.
fn about_group(waits: &ProcessWaits<'_>, group: &WaitGroup<'_>) -> Option<Finding> {
    let WaitReason { kind, what } = group.reason;
    let instead = instead_of_await(group.reason);
    let at_once = match group.most_at_once {
        0 | 1 => String::new(),
        most => format!(" ({most} at once at most)"),
    };
    let (function, waited) = (group.function.label(), time(group.blocked.ns));
    let text = match kind {
        WaitKind::Sleep => format!("in calls from {function}, threads slept {waited} in all{at_once}"),
        _ => format!("in calls from {function}, threads waited {waited} in all for {what}{instead}{at_once}"),
    };
    let is_lock = kind == WaitKind::Lock || group.reason == WaitReason::SEMAPHORE;
    let is_convoy = is_lock && group.most_at_once > 1;
    let kind = if is_convoy { FindingKind::LockConvoy } else { FindingKind::Wait };
    finding(waits, kind, text, group.blocked, group)
}

fn instead_of_await(reason: WaitReason) -> &'static str {
    if reason == WaitReason::TASK { " (sync over async)" } else { "" }
}

/// The sentence, if the lower bound of its time is large enough.
fn finding(
    waits: &ProcessWaits<'_>,
    kind: FindingKind,
    text: String,
    blocked: Blocked,
    group: &WaitGroup<'_>,
) -> Option<Finding> {
    let (low, high) = bounds(blocked);
    let part = Part::between(blocked.ns, (low as u64, high as u64), waits.watched_ns);
    let found = Finding::with_share(kind, text, part)
        .costs(blocked.ns as f64 / waits.watched_ns as f64)
        .by(SAMPLED_WALL.name)
        .at(&group.function, FindingPlace::new(group.place, ": "))
        .shown_by("--view tree --metric wall --just-my-code");
    let is_sleep = group.reason.kind == WaitKind::Sleep;
    part.is_surely(MUCH).then_some(Finding { is_sleep, ..found })
}

/// 95 % bounds of a sampled time, in nanoseconds.
fn bounds(blocked: Blocked) -> (f64, f64) {
    sampled_bounds(blocked.ns as f64, blocked.ns as f64 / blocked.samples.max(1) as f64)
}
