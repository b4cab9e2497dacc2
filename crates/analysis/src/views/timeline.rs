//! The view `timeline`: the work or state of each thread, in equal pieces of the run.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use clrscope_recording::model::{Process, Recording, Sample, Thread, ThreadState};
use clrscope_recording::parallel::fold;
use rustc_hash::FxHashMap;

use super::conditions::{Conditions, conditions_of};
use super::process::totals;
use crate::metric::Metric;
use crate::metric_events::{Event, MetricEvents};
use crate::paths;
use crate::pieces::Pieces;
use crate::query::{Query, QueryProblem};
use crate::samples::{EventKinds, SAMPLED_CPU, SAMPLED_WALL};
use crate::select;

/// Number of pieces into which the time of a recording is divided.
const PIECES: u64 = 240;

/// The pieces of a recording's time.
#[must_use]
pub fn timeline_pieces(recording: &Recording) -> Pieces {
    Pieces::of_recording(recording, PIECES)
}

/// Time that a thread spent on one kind of work, or in one state, in one piece of the run.
#[derive(Debug, Clone, Copy)]
pub struct TimelineRow<'a> {
    /// Process id of the thread's process.
    pub pid: u32,
    /// The thread.
    pub thread: &'a Thread,
    /// Start of the piece, in nanoseconds since the start of the run.
    pub time_ns: u64,
    /// Length of the piece, in nanoseconds.
    pub duration_ns: u64,
    /// Kind of work (samples of `cpu`) or state of the thread (samples of `wall`).
    pub kind: &'static str,
    /// CPU time (`cpu`) or wall time (`wall`) of the thread, in nanoseconds.
    pub amount_ns: u64,
}

/// Sums over all rows of a thread.
#[derive(Debug, Clone)]
pub struct Lane<'a> {
    /// Process id of the thread's process.
    pub pid: u32,
    /// The thread.
    pub thread: &'a Thread,
    /// Time in all pieces, in nanoseconds.
    pub amount_ns: u64,
    /// Busy time of the thread, in nanoseconds. A thread is busy if it runs, is ready to run, or is
    /// blocked by a lock or the runtime. CPU time is always busy time.
    pub busy_ns: u64,
    /// Busy time in each piece, in nanoseconds.
    pub pieces: Vec<u64>,
}

/// The view `timeline`.
#[derive(Debug, Clone, Default)]
pub struct Timeline<'a> {
    /// The rows, in the order of the lanes, then by time and kind.
    pub rows: Vec<TimelineRow<'a>>,
    /// Number of rows that the limit left out.
    pub left_out: usize,
    /// Threads with samples, the busiest first.
    pub lanes: Vec<Lane<'a>>,
    /// Length of a piece, in nanoseconds.
    pub piece_ns: u64,
    /// How the selected part was recorded, and its totals.
    pub conditions: Conditions<'a>,
}

/// Time of a thread by piece and kind.
type Sums = BTreeMap<(u64, &'static str), u64>;

/// Samples over time. They are samples of `wall`, which show what threads wait for, or samples of
/// `cpu` if `wall` was not recorded.
///
/// # Errors
/// When the query matches no process or thread, or no samples were recorded.
pub fn timeline<'a>(recording: &'a Recording, query: &Query) -> Result<Timeline<'a>, QueryProblem> {
    by_metrics(recording, query, &[&SAMPLED_WALL, &SAMPLED_CPU])
}

/// Samples of `cpu` over time, whatever else was recorded.
///
/// # Errors
/// When the query matches no process or thread, or no samples of `cpu` were recorded.
pub fn cpu_timeline<'a>(recording: &'a Recording, query: &Query) -> Result<Timeline<'a>, QueryProblem> {
    by_metrics(recording, query, &[&SAMPLED_CPU])
}

/// Samples over time, for the first of the metrics that was recorded.
fn by_metrics<'a>(
    recording: &'a Recording,
    query: &Query,
    metrics: &[&'static Metric],
) -> Result<Timeline<'a>, QueryProblem> {
    query.without_metric("timeline")?;
    let metric = metrics.iter().copied().find(|metric| metric.is_in(recording));
    let metric = metric.ok_or(QueryProblem::NotRecorded { view: "timeline", instrument: SAMPLED_CPU.instrument })?;
    let all = timeline_pieces(recording);
    let mut found: Vec<(&'a Process, &'a Thread, Sums)> = Vec::new();
    for selected in select::threads(recording, query)? {
        let process = selected.process;
        let Some(measured) = MetricEvents::for_metric(process, metric) else { continue };
        let kinds = EventKinds::new(process, &measured);
        let parts = fold(measured.blocks.len(), Amounts::default, |amounts, at| {
            for event in measured.blocks[at].events() {
                let wanted =
                    process.threads.get(event.thread as usize).is_some_and(|thread| query.wants_thread(thread));
                let last_ns = event.time_ns.saturating_add(event.lasted_ns);
                if wanted && query.wanted_ns(process, event.time_ns, last_ns).is_some() {
                    let kind = if metric.instrument == SAMPLED_CPU.instrument {
                        kinds.kind_of_event(&event).name()
                    } else {
                        Sample::flagged(event.flags).state.name()
                    };
                    add(amounts, &event, kind, all);
                }
            }
        });
        let mut by_thread: BTreeMap<u32, Sums> = BTreeMap::new();
        for ((thread, piece, kind), amount) in parts.into_iter().flatten() {
            let sum = by_thread.entry(thread).or_default().entry((piece, kind)).or_default();
            *sum = sum.saturating_add(amount);
        }
        found.extend(by_thread.into_iter().map(|(index, pieces)| (process, &process.threads[index as usize], pieces)));
    }
    found.sort_by_key(|(process, thread, pieces)| (Reverse((busy(pieces), sum(pieces))), process.pid, thread.id));
    let mut rows: Vec<TimelineRow<'a>> = found.iter().flat_map(|one| rows_of(one, all)).collect();
    let left_out = query.cut(&mut rows);
    let lanes = found.iter().map(|(process, thread, pieces)| lane(process.pid, thread, pieces)).collect();
    let plain = Query { per_thread: false, metric: Some(metric), ..query.clone() };
    let paths = paths::select(recording, query, metric)?;
    let totals: Vec<_> = paths.iter().map(|p| (p.process, totals(p, &plain))).collect();
    let piece_ns = all.piece_ns;
    Ok(Timeline { rows, left_out, lanes, piece_ns, conditions: conditions_of(recording, query, metric, &totals) })
}

/// Amounts by thread, piece and kind.
type Amounts = FxHashMap<(u32, u64, &'static str), u64>;

/// Adds a sample to the pieces that it spans.
fn add(amounts: &mut Amounts, event: &Event, kind: &'static str, pieces: Pieces) {
    pieces.share_out(event.time_ns, event.lasted_ns, event.amount, |piece, amount| {
        let sum = amounts.entry((event.thread, piece, kind)).or_default();
        *sum = sum.saturating_add(amount);
    });
}

fn rows_of<'a, 'f>(
    (process, thread, pieces): &'f (&'a Process, &'a Thread, Sums),
    all: Pieces,
) -> impl Iterator<Item = TimelineRow<'a>> + use<'a, 'f> {
    let (pid, thread) = (process.pid, *thread);
    pieces.iter().map(move |(&(piece, kind), &amount_ns)| TimelineRow {
        pid,
        thread,
        time_ns: all.begin_ns(piece),
        duration_ns: all.piece_ns,
        kind,
        amount_ns,
    })
}

/// States of threads in which they are not busy.
const AT_REST: [ThreadState; 4] = [ThreadState::Sleeping, ThreadState::Io, ThreadState::Waiting, ThreadState::Idle];

fn is_busy(kind: &str) -> bool {
    AT_REST.iter().all(|state| state.name() != kind)
}

fn sum(pieces: &Sums) -> u64 {
    pieces.values().fold(0, |sum, amount| sum.saturating_add(*amount))
}

fn busy(pieces: &Sums) -> u64 {
    let busy = pieces.iter().filter(|((_, kind), _)| is_busy(kind));
    busy.fold(0, |sum, (_, amount)| sum.saturating_add(*amount))
}

fn lane<'a>(pid: u32, thread: &'a Thread, found: &Sums) -> Lane<'a> {
    let mut pieces = vec![0_u64; PIECES as usize];
    for (&(piece, _), amount) in found.iter().filter(|((_, kind), _)| is_busy(kind)) {
        let sum = &mut pieces[piece.min(PIECES - 1) as usize];
        *sum = sum.saturating_add(*amount);
    }
    Lane { pid, thread, amount_ns: sum(found), busy_ns: busy(found), pieces }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn added(lasted_ns: u64, amount: u64, kind: &'static str, piece_ns: u64) -> Sums {
        let mut amounts = Amounts::default();
        let event = Event { time_ns: 150, lasted_ns, amount, thread: 0, stack: 0, samples: 1, flags: 0, about: 0 };
        add(&mut amounts, &event, kind, Pieces { start_ns: 0, piece_ns, count: PIECES });
        amounts.into_iter().map(|((_, piece, kind), amount)| ((piece, kind), amount)).collect()
    }

    #[test]
    fn what_lasts_is_shared_out_among_the_pieces() {
        let pieces = added(1_000, 1_000, "waiting", 100);
        let amounts: Vec<u64> = pieces.values().copied().collect();
        assert_eq!(amounts, [50, 100, 100, 100, 100, 100, 100, 100, 100, 100, 50]);
        assert_eq!(pieces.keys().next(), Some(&(1, "waiting")));
    }

    #[test]
    fn threads_that_wait_are_not_busy() {
        let thread = Thread::default();
        let pieces: Sums = [((0, "running"), 3), ((0, "idle"), 70), ((1, "lock"), 5), ((2, "waiting"), 100)].into();
        let lane = lane(7, &thread, &pieces);
        assert_eq!((lane.amount_ns, lane.busy_ns, &lane.pieces[..3]), (178, 8, &[3, 5, 0][..]));
    }

    #[test]
    fn a_single_sample_is_a_moment_and_a_lie_is_bounded() {
        assert_eq!(added(0, 1_000, "own", 100).into_iter().collect::<Vec<_>>(), [((1, "own"), 1_000)]);
        let pieces = added(u64::MAX, u64::MAX, "own", 1);
        assert!(pieces.len() as u64 <= PIECES);
    }
}
