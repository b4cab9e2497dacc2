//! Sentences about locks that threads waited for, if `locks` was recorded.

use clrscope_recording::model::Recording;

use super::finding::FindingPlace;
use super::waiting::{MOST, MUCH};
use super::{Finding, FindingKind};
use crate::locks::{LockPath, LockQuery, LockRow, locks};
use crate::numbers::{number, time};
use crate::parts::watched_ns;
use crate::query::Query;

/// Returns the sentences about all processes that a query selects; none if locks were not recorded.
pub(super) fn found(recording: &Recording, query: &Query) -> Vec<Finding> {
    let query = Query { limit: None, sort: None, metric: None, ..query.clone() };
    let query = LockQuery { query, types: Vec::new() };
    let rows = locks(recording, &query).map_or_else(|_| Vec::new(), |(rows, _)| rows);
    // Threads that wait for something that no thread holds may simply have nothing to do.
    let held = rows.iter().filter(|row| row.kind.is_held());
    held.filter_map(|row| about(row, watched_ns(row.process, &query.query))).take(MOST).collect()
}

/// The sentence about one row, if threads waited long.
fn about(row: &LockRow<'_>, watched_ns: u64) -> Option<Finding> {
    let threads = row.total_ns as f64 / watched_ns.max(1) as f64;
    let own = row.waiters.iter().find_map(LockPath::own_frame);
    let below = own.as_ref().map_or_else(String::new, |frame| format!(" in calls from {}", frame.function.label()));
    let at_once = match row.max_waiters {
        0 | 1 => String::new(),
        most => format!(", {most} at once at most"),
    };
    let lock = match row.locks {
        1 => format!("a lock ({})", row.type_name),
        locks => format!("{} locks ({})", number(locks), row.type_name),
    };
    let (waits, waited) = (number(row.count), time(row.total_ns));
    let text = format!("threads waited {waited} in all for {lock}{below}: {waits} waits{at_once}");
    let kind = if row.max_waiters > 1 { FindingKind::LockConvoy } else { FindingKind::Wait };
    let found = Finding::exact(kind, text, threads.min(1.0)).costs(threads).shown_by("--view locks");
    let found = match &own {
        Some(frame) => found.at(&frame.function, FindingPlace::new(frame.place, ": ")),
        None => found,
    };
    (threads >= MUCH).then_some(found)
}
