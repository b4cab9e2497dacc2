//! Summary of samples: kinds of work, states of threads, and the most important threads.

use std::cmp::Reverse;

use clrscope_recording::layout::instrument;
use clrscope_recording::model::{Process, Recording, Sample, ThreadRole, ThreadState};
use rustc_hash::FxHashMap;

use super::OwnRow;
use crate::catalog::{Catalog, Slot};
use crate::code_place::PlacedFrame;
use crate::columns::Columns;
use crate::edges::edges;
use crate::function::{FunctionRef, is_profilers};
use crate::owners::{OwnFrames, Owners};
use crate::paths::Paths;
use crate::query::{Query, QueryProblem};
use crate::samples::{SampleKind, each_sample, lasted_ns, thread_numbered};
use crate::select;
use crate::views::rows::ThreadRow;
use crate::waits::wait_reason;

/// Threads with less than this share of the time are not shown one by one.
const LEAST_OF_THREAD: f64 = 0.01;
/// Maximum number of threads that are shown one by one.
const MOST_THREADS: usize = 8;
/// Maximum number of own functions whose callees are shown.
const MOST_WITH_CALLEES: usize = 5;
/// Maximum number of callees that are shown for a function.
pub(super) const MOST_CALLEES: usize = 3;

/// Time of all samples of one kind of work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KindRow {
    /// Kind of the work.
    pub kind: SampleKind,
    /// Number of samples of this kind.
    pub samples: u64,
    /// CPU time that these samples represent.
    pub time_ns: u64,
}

/// Time that threads spent in one state, according to samples of `wall`.
#[derive(Debug, Clone, Copy)]
pub struct StateRow<'a> {
    /// State of the threads.
    pub state: ThreadState,
    /// Number of samples that found threads in this state.
    pub samples: u64,
    /// Thread time that these samples represent.
    pub time_ns: u64,
    /// For ready threads, the part of that time that may not be work, because the stack is unknown
    /// or waits for something, as in a spin lock.
    pub unplaced_ns: u64,
    /// Number of threads that were found in the state.
    pub threads: u64,
    /// The innermost own function with the largest part of that time, and that part.
    pub most: Option<(FunctionRef<'a>, u64)>,
}

/// Threads of a summary by samples: rows of the important threads, and totals of the others.
#[derive(Debug, Clone, Default)]
pub struct SampledThreads<'a> {
    /// Threads whose share is large enough for a row, the largest share first.
    pub rows: Vec<ThreadRow<'a>>,
    /// Number of the other threads.
    pub others: u64,
    /// Roles of the other threads, each with the number of threads, in the order of
    /// [`ThreadRole::ALL`].
    pub roles: Vec<(ThreadRole, u64)>,
    /// Total time of the other threads.
    pub others_ns: u64,
}

impl<'a> SampledThreads<'a> {
    pub(super) fn from_rows(mut rows: Vec<ThreadRow<'a>>) -> Self {
        let all = rows.iter().fold(0_u64, |sum, row| sum.saturating_add(row.amount.own));
        rows.sort_by_key(|row| (Reverse(row.amount.own), row.pid, row.thread.id));
        let matters = |row: &ThreadRow<'_>| row.amount.own as f64 >= LEAST_OF_THREAD * all as f64 && row.amount.own > 0;
        let kept = rows.iter().take(MOST_THREADS).take_while(|row| matters(row)).count();
        let others = rows.split_off(kept);
        let others_ns = others.iter().fold(0_u64, |sum, row| sum.saturating_add(row.amount.own));
        let with = |role| others.iter().filter(|row| row.thread.role == role).count() as u64;
        let roles =
            ThreadRole::ALL.into_iter().map(|role| (role, with(role))).filter(|(_, count)| *count > 0).collect();
        Self { rows, others: others.len() as u64, roles, others_ns }
    }
}

/// Calls `visit` with the samples of an instrument that a query selects, process by process.
pub(super) fn each_wanted<'a>(
    recording: &'a Recording,
    query: &Query,
    instrument: &str,
    mut visit: impl FnMut(&'a Process, &Sample),
) -> Result<(), QueryProblem> {
    for selected in select::threads(recording, query)? {
        let process = selected.process;
        each_sample(process, instrument, |sample| {
            if wants(query, process, sample) {
                visit(process, sample);
            }
        });
    }
    Ok(())
}

/// Whether a query selects a sample.
fn wants(query: &Query, process: &Process, sample: &Sample) -> bool {
    let thread = thread_numbered(process, sample.thread);
    let first_ns = process.started_ns.saturating_add(sample.time_ns);
    let last_ns = first_ns.saturating_add(lasted_ns(sample));
    query.wants_thread_if_known(thread) && query.wanted_ns(process, first_ns, last_ns).is_some()
}

/// Owners of the work and the waits of a process's threads, by samples of `wall`. The states of
/// samples are more exact than the names of functions.
pub(super) fn owners(process: &Process, catalog: &Catalog<'_>, query: &Query) -> Owners {
    let (mut owners, mut frames) = (Owners::default(), OwnFrames::new(process));
    each_sample(process, instrument::WALL, |sample| {
        if wants(query, process, sample) {
            let owner = frames.innermost(sample.stack).map(|(index, _)| index);
            owners.add_sample(catalog, owner, sample);
        }
    });
    owners
}

/// Sums of a state.
#[derive(Default)]
struct StateSums<'a> {
    samples: u64,
    time_ns: u64,
    unplaced_ns: u64,
    /// By process and serial number of the thread.
    threads: FxHashMap<(u32, u32), ()>,
    /// By process and function index, with the function.
    own: FxHashMap<(u32, u32), (FunctionRef<'a>, u64)>,
}

/// States of threads that have samples of `wall`, in the order of [`ThreadState::ALL`].
pub(super) fn states<'a>(recording: &'a Recording, query: &Query) -> Result<Vec<StateRow<'a>>, QueryProblem> {
    let mut sums: FxHashMap<ThreadState, StateSums<'a>> = FxHashMap::default();
    let mut owners: Option<(u32, OwnFrames<'a>)> = None;
    let mut unplaced: FxHashMap<(u32, u32), bool> = FxHashMap::default();
    each_wanted(recording, query, instrument::WALL, |process, sample| {
        let known = owners.take().filter(|(pid, _)| *pid == process.pid);
        let (pid, own) = owners.insert(known.unwrap_or_else(|| (process.pid, OwnFrames::new(process))));
        let sum = sums.entry(sample.state).or_default();
        sum.samples = sum.samples.saturating_add(u64::from(sample.count));
        sum.time_ns = sum.time_ns.saturating_add(sample.weight_ns);
        let is_unplaced = || {
            let functions = PlacedFrame::all(process, &process.stacks, sample.stack).map(|frame| frame.function);
            sample.stack == 0 || wait_reason(ThreadState::Waiting, functions).is_some()
        };
        if sample.state == ThreadState::Ready && *unplaced.entry((*pid, sample.stack)).or_insert_with(is_unplaced) {
            sum.unplaced_ns = sum.unplaced_ns.saturating_add(sample.weight_ns);
        }
        sum.threads.insert((*pid, sample.thread), ());
        if let Some((index, function)) = own.innermost(sample.stack) {
            let most = &mut sum.own.entry((*pid, index)).or_insert((function, 0)).1;
            *most = most.saturating_add(sample.weight_ns);
        }
    })?;
    let row = |(&state, sums): (&ThreadState, &StateSums<'a>)| {
        let by_time =
            |a: &&(FunctionRef<'a>, u64), b: &&(FunctionRef<'a>, u64)| b.1.cmp(&a.1).then_with(|| a.0.compare(&b.0));
        let most = sums.own.values().min_by(by_time).copied();
        StateRow {
            state,
            samples: sums.samples,
            time_ns: sums.time_ns,
            unplaced_ns: sums.unplaced_ns,
            threads: sums.threads.len() as u64,
            most,
        }
    };
    Ok(ThreadState::ALL.iter().filter_map(|state| sums.get_key_value(state)).map(row).collect())
}

/// Adds to each of the first own functions its most expensive callees.
pub(super) fn add_callees<'a>(own: &mut [OwnRow<'a>], all: &[(Paths<'a>, Catalog<'a>)], query: &Query) {
    let first = own.len().min(MOST_WITH_CALLEES);
    for (paths, catalog) in all {
        let is_it = |slot: Slot, row: &OwnRow<'_>| {
            row.row.function.pid == paths.process.pid && catalog.function(slot).compare(&row.row.function).is_eq()
        };
        let slots: Vec<Option<usize>> =
            (0..catalog.len() as Slot).map(|slot| own[..first].iter().position(|row| is_it(slot, row))).collect();
        let at = |slot: Slot| slots.get(slot as usize).copied().flatten();
        let columns = Columns::new(paths, catalog, query);
        let mut found = edges(paths, catalog, &columns, |(caller, callee)| at(caller).is_some() && caller != callee);
        found.sort_by_key(|(_, times)| Reverse(times.by(paths.metric).1.total));
        let found = found.into_iter().filter(|((_, callee), _)| !is_profilers(&catalog.function(*callee)));
        for ((caller, callee), times) in found {
            let calls = &mut own[at(caller).unwrap_or_default()].calls;
            if let Some(free) = calls.iter_mut().find(|call| call.is_none()) {
                *free = Some((catalog.function(callee), times.by(paths.metric).1.total));
            }
        }
    }
}
