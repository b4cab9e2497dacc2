//! Objects that are followed: which were still alive at a moment, and how many collections they had
//! outlived.

use clrscope_recording::model::{Allocation, AllocationKind, Process};
use rustc_hash::FxHashSet;

use super::records::{each_record, time_ns};
use crate::query::Query;

/// The objects of a process that are followed.
pub(crate) struct Live {
    gone: FxHashSet<u32>,
    /// Collections of the process that had ended by then.
    collections: u64,
}

impl Live {
    /// Reads which objects were gone at the end of the time that a query means; `None` where none
    /// are followed.
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

    /// Whether a followed object is alive.
    pub(crate) fn is_alive(&self, record: &Allocation) -> bool {
        !self.gone.contains(&record.object)
    }

    /// Collections that an object which is alive has outlived.
    pub(crate) fn outlived(&self, record: &Allocation) -> u64 {
        self.collections.saturating_sub(record.collections)
    }
}

/// End of the time that a query means in a process, nanoseconds since the start of the run; the
/// largest number for that of the recording.
fn end_ns(process: &Process, query: &Query) -> u64 {
    let of_parts = process.shown.iter().flatten().map(|(_, until)| *until).max();
    query.until_ns.into_iter().chain(of_parts).min().unwrap_or(u64::MAX)
}
