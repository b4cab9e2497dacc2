//! Objects that are followed: which were still alive when recording ended, and how many collections they had outlived.

use clrscope_recording::model::{Allocation, AllocationKind, Process};
use rustc_hash::FxHashSet;

use super::records::each_record;

/// The objects of a process that are followed.
pub(crate) struct Live {
    gone: FxHashSet<u32>,
    /// Collections of the process that had ended at last.
    collections: u64,
}

impl Live {
    /// Reads who is gone. `None` where nothing is followed.
    pub(crate) fn of(process: &Process) -> Option<Self> {
        process.allocation_sampling.as_ref().filter(|sampling| sampling.follows)?;
        let mut live = Self { gone: FxHashSet::default(), collections: 0 };
        each_record(process, AllocationKind::Gone, |_, record| _ = live.gone.insert(record.object));
        for kind in [AllocationKind::Gone, AllocationKind::Collections, AllocationKind::Followed] {
            each_record(process, kind, |_, record| live.collections = live.collections.max(record.collections));
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
