//! When methods waited at one await: how many at once, and for how much of the time.

use clrscope_recording::events::{Kind, Records, Tag};
use clrscope_recording::layout::instrument;
use clrscope_recording::model::Process;

use super::outer::Place;
use super::rows::{place_of, stack_of};

/// Share of the time from which on a method that waits does nothing else.
const ALWAYS: f64 = 0.97;
/// Share of the time that is shown over which it has to do so.
const LONG: f64 = 0.5;

/// The methods that waited at one await.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct AwaitActivity {
    /// Methods that waited at once, at most.
    pub(crate) most_at_once: u64,
    /// Time of all that waited, in nanoseconds.
    total_ns: u64,
    /// From the first beginning to the last end, in nanoseconds.
    span_ns: u64,
}

impl AwaitActivity {
    /// Returns what the records of a process say about an await.
    pub(super) fn read(process: &Process, place: Place) -> Self {
        let (mut changes, mut total_ns) = (Vec::new(), 0_u64);
        for chunk in process.arenas(instrument::AWAITS).flat_map(|arena| &arena.chunks) {
            for record in Records::new(&chunk.bytes.load()) {
                let is_await = matches!(record.kind, Kind::AWAIT_ENDED | Kind::AWAIT_PENDING);
                if is_await && stack_of(&record).is_some_and(|stack| place_of(process, stack) == place) {
                    let ns = record.number(Tag::DURATION).unwrap_or(0);
                    changes.extend([(record.time_ns.saturating_sub(ns), 1), (record.time_ns, -1)]);
                    total_ns = total_ns.saturating_add(ns);
                }
            }
        }
        // Of what ends and begins at the same moment the end comes first.
        changes.sort_unstable();
        let span_ns = changes.last().zip(changes.first()).map_or(0, |(last, first)| last.0 - first.0);
        let at_once = changes.iter().scan(0_i64, |now, (_, change)| {
            *now += change;
            Some(*now)
        });
        Self { most_at_once: at_once.max().unwrap_or(0).unsigned_abs(), total_ns, span_ns }
    }

    /// Whether as many methods as ever waited there did so all the time, as those of background
    /// work do.
    pub(crate) fn is_constant(&self, watched_ns: u64) -> bool {
        let all_ns = self.span_ns as f64 * self.most_at_once as f64;
        self.total_ns as f64 >= ALWAYS * all_ns && self.span_ns as f64 >= LONG * watched_ns as f64
    }
}
