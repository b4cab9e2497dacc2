//! Activity of one await: how many methods waited at it at once, and for how much of the time.

use clrscope_recording::events::{Kind, Records, Tag};
use clrscope_recording::layout::instrument;
use clrscope_recording::model::Process;
use rustc_hash::FxHashMap;

use super::AwaitRow;
use super::outer::Place;
use super::rows::{place_of, stack_of};
use crate::at_once::most_at_once;
use crate::idle_threads::may_always_wait;

/// The methods that waited at one await.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct AwaitActivity {
    /// The maximum number of methods that waited at the same time.
    pub(crate) most_at_once: u64,
    /// Sum of the waiting times, in nanoseconds.
    total_ns: u64,
    /// From the begin of the first wait to the end of the last, in nanoseconds.
    span_ns: u64,
}

/// The records of one await.
#[derive(Debug, Default)]
struct Waits {
    /// When methods began (1) and ended (-1) their waits.
    changes: Vec<(u64, i64)>,
    total_ns: u64,
}

/// Process and place of an await.
type Key = (u32, Place);

impl AwaitActivity {
    /// Returns the activity of the awaits of some rows, in the order of the rows.
    pub(crate) fn of_rows(rows: &[&AwaitRow<'_>]) -> Vec<Self> {
        let key = |row: &&AwaitRow<'_>| (row.process.pid, row.place);
        let mut waits: FxHashMap<Key, Waits> = rows.iter().map(|row| (key(row), Waits::default())).collect();
        let mut processes: Vec<&Process> = rows.iter().map(|row| row.process).collect();
        processes.sort_unstable_by_key(|process| process.pid);
        processes.dedup_by_key(|process| process.pid);
        processes.into_iter().for_each(|process| add_records(process, &mut waits));
        rows.iter().map(|row| waits.get_mut(&key(row)).map(Self::new).unwrap_or_default()).collect()
    }

    fn new(waits: &mut Waits) -> Self {
        let most_at_once = most_at_once(&mut waits.changes);
        let span_ns = waits.changes.last().zip(waits.changes.first()).map_or(0, |(last, first)| last.0 - first.0);
        Self { most_at_once, total_ns: waits.total_ns, span_ns }
    }

    /// Whether the maximum number of methods waited at this await all the time, as methods of
    /// background work do. `watched_ns` is the length of the observed time.
    pub(crate) fn is_constant(&self, watched_ns: u64) -> bool {
        let of_each_ns = self.total_ns.checked_div(self.most_at_once).unwrap_or(0);
        may_always_wait(of_each_ns, self.span_ns, watched_ns)
    }
}

/// Adds the records of a process about the requested awaits.
fn add_records(process: &Process, waits: &mut FxHashMap<Key, Waits>) {
    for chunk in process.arenas(instrument::AWAITS).flat_map(|arena| &arena.chunks) {
        for record in Records::new(&chunk.bytes.load()) {
            let is_await = matches!(record.kind, Kind::AWAIT_ENDED | Kind::AWAIT_PENDING);
            if !is_await || !process.shows_request(record.number(Tag::REQUEST)) {
                continue;
            }
            let place = stack_of(&record).map(|stack| place_of(process, stack));
            if let Some(waits) = place.and_then(|place| waits.get_mut(&(process.pid, place))) {
                let ns = record.number(Tag::DURATION).unwrap_or(0);
                waits.changes.extend([(record.time_ns.saturating_sub(ns), 1), (record.time_ns, -1)]);
                waits.total_ns = waits.total_ns.saturating_add(ns);
            }
        }
    }
}
