//! Waits of threads for semaphores, events, tasks and the like, if the runtime raises no events for
//! them. They are estimated from samples of the clock (`wall`): bounds of the waiting time, and a
//! lower bound of the number of waits. Two waits at one place within a sampling interval look like
//! one, so the longest wait is not known.

use std::collections::BTreeMap;

use clrscope_contract::request::Glob;
use clrscope_recording::layout::instrument;
use clrscope_recording::model::{Process, Sample, ThreadState};
use rustc_hash::FxHashMap;

use super::blocking::{Own, row, wait_place};
use super::rows::LockSum;
use super::{LockKind, LockQuery, LockRow};
use crate::samples::{each_sample, event_of, lasted_ns, thread_numbered};
use crate::sampling::sampled_bounds;
use crate::stack_trees::wanted_part;

/// Kind of the wait, and the own function that waits.
type Key<'a> = (LockKind, Own<'a>);

/// A wait that the last sample of a thread showed.
struct Run {
    stack: u32,
    end_ns: u64,
}

/// The waits at one place.
#[derive(Default)]
struct Place {
    sum: LockSum,
    samples: u64,
}

/// Returns the rows of a process, in the order of kind and place; empty if `wall` was not recorded.
pub(super) fn rows<'a>(process: &'a Process, query: &LockQuery) -> Vec<LockRow<'a>> {
    let mut keys: FxHashMap<u32, Option<Key<'a>>> = FxHashMap::default();
    let mut places: BTreeMap<Key<'a>, Place> = BTreeMap::new();
    let mut runs: FxHashMap<u32, Run> = FxHashMap::default();
    each_sample(process, instrument::WALL, |sample| {
        let is_waiting = matches!(sample.state, ThreadState::Lock | ThreadState::Waiting);
        let mut find = || *keys.entry(sample.stack).or_insert_with(|| key(process, query, sample.stack));
        let key = if is_waiting { find() } else { None };
        let (Some(key), Some(ns)) = (key, wanted_ns(process, query, sample)) else {
            runs.remove(&sample.thread);
            return;
        };
        let step_ns = sample.weight_ns / u64::from(sample.count.max(1));
        let run = Run { stack: sample.stack, end_ns: sample.time_ns.saturating_add(lasted_ns(sample)) };
        let goes_on =
            |before: &Run| before.stack == sample.stack && sample.time_ns <= before.end_ns.saturating_add(2 * step_ns);
        let is_new = !runs.insert(sample.thread, run).is_some_and(|before| goes_on(&before));
        let place = places.entry(key).or_default();
        place.sum.add_sampled(sample.stack, u64::from(is_new), ns);
        place.samples += u64::from(sample.count);
    });
    let rows = places.into_iter().map(|((kind, _), place)| sampled_row(process, kind, place));
    rows.filter(|row| Glob::any_matches(&query.types, row.type_name)).collect()
}

fn sampled_row(process: &Process, kind: LockKind, Place { sum, samples }: Place) -> LockRow<'_> {
    let step_ns = sum.total_ns as f64 / samples.max(1) as f64;
    let (low, high) = sampled_bounds(sum.total_ns as f64, step_ns);
    let row = row(process, kind, sum, (0, false));
    LockRow { is_sampled: true, bounds_ns: (low as u64, high as u64), ..row }
}

/// Time of a sample; `None` if the query does not select the sample.
fn wanted_ns(process: &Process, query: &LockQuery, sample: &Sample) -> Option<u64> {
    let part = wanted_part(process, &query.query, &event_of(process, sample, sample.weight_ns))?;
    query.query.wants_thread_if_known(thread_numbered(process, sample.thread)).then_some(part.amount)
}

/// The wait of a thread with this stack; `None` for locks, which are counted by events, and if the
/// stack does not show the wait.
fn key<'a>(process: &'a Process, query: &LockQuery, stack: u32) -> Option<Key<'a>> {
    let place = wait_place(process, query, stack)?;
    Some((place.kind?, place.own))
}
