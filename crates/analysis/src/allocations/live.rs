//! Tracked objects: which of them were still alive at a moment, and how many collections they had
//! survived.

use clrscope_recording::model::{Allocation, AllocationKind, Process};
use rustc_hash::FxHashSet;

use super::records::{each_record, time_ns};
use crate::query::Query;

/// The tracked objects of a process.
pub(crate) struct Live {
    gone: FxHashSet<u32>,
    /// Number of the process's collections that had ended by the end of the query's time range.
    collections: u64,
}

impl Live {
    /// Reads which objects were dead at the end of the query's time range; `None` if the recording
    /// tracks no objects.
    pub(crate) fn read(process: &Process, query: &Query) -> Option<Self> {
        let until_ns = end_ns(process, query);
        let is_before = |record: &Allocation| time_ns(process, record) <= until_ns;
        process.allocation_sampling.as_ref().filter(|sampling| sampling.follows)?;
        let mut live = Self { gone: FxHashSet::default(), collections: 0 };
        each_record(process, AllocationKind::Gone, |_, record| {
            if is_before(record) {
                live.gone.insert(record.object);
            }
        });
        for kind in [AllocationKind::Gone, AllocationKind::Collections, AllocationKind::Followed] {
            each_record(process, kind, |_, record| {
                let is_more = is_before(record) && record.collections > live.collections;
                live.collections = if is_more { record.collections } else { live.collections };
            });
        }
        Some(live)
    }

    /// Whether a tracked object is alive.
    pub(crate) fn is_alive(&self, record: &Allocation) -> bool {
        !self.gone.contains(&record.object)
    }

    /// Number of collections that a live object has survived.
    pub(crate) fn outlived(&self, record: &Allocation) -> u64 {
        self.collections.saturating_sub(record.collections)
    }
}

/// End of the query's time range in a process, in nanoseconds since the start of the run;
/// `u64::MAX` if the range lasts until the end of the recording.
fn end_ns(process: &Process, query: &Query) -> u64 {
    let of_parts = process.shown.iter().flatten().map(|(_, until)| *until).max();
    query.until_ns.into_iter().chain(of_parts).min().unwrap_or(u64::MAX)
}
