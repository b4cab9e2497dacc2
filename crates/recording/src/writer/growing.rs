//! A segment that is handed out from its front, with space backed ahead of need.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::mapping::{CommitError, Segment};

/// Backed at the start, and kept ready at least.
pub(super) const AHEAD_LEAST: usize = 2 << 20;
/// Kept ready at most.
const AHEAD_MOST: usize = 64 << 20;

/// The segment, and how much of it is handed out.
#[derive(Debug)]
pub(super) struct Growing {
    segment: Segment,
    limit: usize,
    used: AtomicUsize,
    used_at_last_look: AtomicUsize,
    disk_refused: AtomicBool,
}

impl Growing {
    /// Hands out at most `limit` bytes of `segment`; the first `used` are handed out already.
    pub(super) fn new(segment: Segment, limit: usize, used: usize) -> Self {
        let limit = limit.min(segment.capacity());
        let (used, used_at_last_look) = (AtomicUsize::new(used), AtomicUsize::new(0));
        Self { segment, limit, used, used_at_last_look, disk_refused: AtomicBool::new(false) }
    }

    pub(super) fn segment(&self) -> &Segment {
        &self.segment
    }

    /// Bytes that can be handed out.
    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    /// Bytes handed out.
    pub(super) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Whether the disk refused the last request for space.
    pub(super) fn is_refused(&self) -> bool {
        self.disk_refused.load(Ordering::Relaxed)
    }

    /// Offset of `bytes` bytes that nobody else has, or `None` when the limit is reached or so much is not backed yet.
    /// Does not block and does not allocate: safe in a hook.
    pub(super) fn take(&self, bytes: usize) -> Option<usize> {
        let end = self.segment.committed().min(self.limit);
        let more = |used: usize| used.checked_add(bytes).filter(|&after| after <= end);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()
    }

    /// Backs space ahead of need: as much as was used since the last call, many times over, and never less than
    /// `least`. Blocks: for the helper thread.
    ///
    /// # Errors
    /// When the disk refused; the next call tries again.
    pub(super) fn keep_ahead(&self, least: usize) -> Result<(), CommitError> {
        let used = self.used();
        let grown = used.saturating_sub(self.used_at_last_look.swap(used, Ordering::Relaxed));
        let ahead =
            (grown * 16).clamp(least.clamp(AHEAD_LEAST, AHEAD_MOST), AHEAD_MOST).max((used / 4).min(AHEAD_MOST));
        if self.segment.committed() >= (used + ahead / 2).min(self.limit) {
            return Ok(());
        }
        let outcome = self.segment.commit((used + ahead).min(self.limit));
        self.disk_refused.store(outcome == Err(CommitError::Refused), Ordering::Relaxed);
        outcome
    }
}
