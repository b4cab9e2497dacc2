//! Depth and duration of events.
//!
//! Only pairs nest. What was begun and never ended stands alone: the runtime leaves out the end of an
//! unwind that reached its catcher, and that of a block which another exception left.

use clrscope_recording::events::{Kind, Phase, Records, Tag};
use clrscope_recording::model::{EventArena, Process};

use super::EventRow;

/// Why a search for precompiled code has no end.
const REJECTED: &str = "the precompiled code was rejected";

/// The rows of one process: its threads in the order in which they were first seen, each in the order of
/// its events; then what belongs to no thread.
pub(super) fn replay<'a>(process: &'a Process, arena: &'a EventArena, names: usize) -> Vec<EventRow<'a>> {
    let mut rows = Vec::new();
    let mut unpaired = Unpaired::default();
    for (thread, chunks) in arena.by_thread() {
        let thread = process.threads.get(thread as usize);
        let first = rows.len();
        let records = chunks.into_iter().flat_map(Records::new).filter(|record| record.kind.name().is_some());
        rows.extend(records.map(|record| {
            let time_ns = process.started_ns.saturating_add(record.time_ns);
            EventRow { process, thread, time_ns, depth: 0, duration_ns: None, remark: None, record, names }
        }));
        pair_within(&mut rows, first, &mut unpaired);
        nest(&mut rows[first..]);
        explain_searches(&mut rows[first..]);
    }
    unpaired.pair(&mut rows);
    rows
}

/// Pairs the events of one thread: an end belongs to the innermost open start of its kind, and closes
/// whatever was left open within.
fn pair_within(rows: &mut [EventRow<'_>], first: usize, unpaired: &mut Unpaired) {
    let mut open: Vec<(Kind, usize)> = Vec::new();
    for at in first..rows.len() {
        match rows[at].record.phase() {
            Phase::Single => {}
            Phase::Start => open.push((rows[at].kind(), at)),
            Phase::End(start) => match open.iter().rposition(|&(kind, _)| kind == start) {
                Some(place) => {
                    pair(rows, open[place].1, at);
                    unpaired.starts.extend(open.drain(place..).skip(1).filter(|(kind, _)| may_cross(*kind)));
                }
                None => unpaired.ends.push((start, at)),
            },
        }
    }
    unpaired.starts.extend(open.into_iter().filter(|(kind, _)| may_cross(*kind)));
}

/// Gives each event of one thread its depth.
fn nest(rows: &mut [EventRow<'_>]) {
    let mut depth = 0_u32;
    for row in rows {
        let paired = row.duration_ns.is_some();
        match row.record.phase() {
            Phase::End(_) if paired => {
                depth = depth.saturating_sub(1);
                row.depth = depth;
            }
            Phase::Start if paired => {
                row.depth = depth;
                depth = depth.saturating_add(1);
            }
            _ => row.depth = depth,
        }
    }
}

/// The runtime ends a search for precompiled code only where it takes the code. Where it finds code that does
/// not fit this process or processor, it goes on to compile the method without a word.
fn explain_searches(rows: &mut [EventRow<'_>]) {
    for at in 1..rows.len() {
        let [search, next] = [&rows[at - 1], &rows[at]];
        let is_open = search.kind() == Kind::JIT_CACHED_FUNCTION_SEARCH_STARTED && search.duration_ns.is_none();
        let of_same = search.record.entity(Tag::FUNCTION) == next.record.entity(Tag::FUNCTION);
        if is_open && next.kind() == Kind::JIT_COMPILATION_STARTED && of_same {
            rows[at - 1].remark = Some(REJECTED);
        }
    }
}

fn pair(rows: &mut [EventRow<'_>], start: usize, end: usize) {
    let duration = rows[end].time_ns.saturating_sub(rows[start].time_ns);
    rows[start].duration_ns = Some(duration);
    rows[end].duration_ns = Some(duration);
}

/// Only what concerns the whole process can end on another thread.
fn may_cross(kind: Kind) -> bool {
    matches!(kind, Kind::GARBAGE_COLLECTION_STARTED | Kind::RUNTIME_SUSPEND_STARTED | Kind::RUNTIME_RESUME_STARTED)
}

/// Events whose partner is not on their thread.
#[derive(Default)]
struct Unpaired {
    starts: Vec<(Kind, usize)>,
    ends: Vec<(Kind, usize)>,
}

impl Unpaired {
    /// Each end, in the order of time, gets the latest start before it.
    fn pair(mut self, rows: &mut [EventRow<'_>]) {
        self.ends.retain(|(kind, _)| may_cross(*kind));
        self.ends.sort_by_key(|&(_, row)| rows[row].time_ns);
        for (kind, end) in self.ends {
            let until = rows[end].time_ns;
            let fits = |&(_, &(of, row)): &(usize, &(Kind, usize))| of == kind && rows[row].time_ns <= until;
            let latest = self.starts.iter().enumerate().filter(fits).max_by_key(|(_, (_, row))| rows[*row].time_ns);
            if let Some(at) = latest.map(|(at, _)| at) {
                pair(rows, self.starts.swap_remove(at).1, end);
            }
        }
    }
}
