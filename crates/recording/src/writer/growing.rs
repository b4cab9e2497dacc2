//! A segment that is handed out from its front, with space backed ahead of need.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::mapping::{CommitError, Segment};

/// Backed at the start, and kept ready at least.
pub(super) const AHEAD_LEAST: usize = 2 << 20;
/// Bytes that are backed at the start, and kept ready at least, where who fills the segment can
/// wait, and fills it slowly: fresh pages cost a program that ends soon more than they are worth.
pub(super) const AHEAD_LITTLE: usize = 256 << 10;
/// Kept ready at most.
const AHEAD_MOST: usize = 64 << 20;

/// The segment, and how much of it is handed out.
#[derive(Debug)]
pub(super) struct Growing {
    segment: Segment,
    limit: usize,
    /// Bytes at most that are backed for those who can't wait.
    reserve: usize,
    used: AtomicUsize,
    used_at_last_look: AtomicUsize,
    disk_refused: AtomicBool,
}

impl Growing {
    /// Hands out at most `limit` bytes of `segment`; the first `used` are handed out already.
    pub(super) fn new(segment: Segment, limit: usize, used: usize) -> Self {
        let limit = limit.min(segment.capacity());
        let (used, used_at_last_look) = (AtomicUsize::new(used), AtomicUsize::new(0));
        Self { segment, limit, reserve: 0, used, used_at_last_look, disk_refused: AtomicBool::new(false) }
    }

    /// Keeps up to `bytes` bytes backed that only [`take_reserved`](Self::take_reserved) hands out.
    pub(super) fn with_reserve(self, bytes: usize) -> Self {
        Self { reserve: bytes, ..self }
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

    /// Returns the offset of `bytes` bytes that are now the caller's alone, or `None` when the
    /// limit is reached or so much is not backed yet beyond the reserve. Does not block and calls
    /// no allocator: safe in a hook.
    pub(super) fn allocate(&self, bytes: usize) -> Option<usize> {
        // What can't grow further is handed out to the last byte.
        let grows = self.segment.committed() < self.limit && !self.is_refused();
        self.take_leaving(|used| if grows { self.reserved(used) } else { 0 }, bytes)
    }

    /// Counterpart of [`allocate`](Self::allocate) that leaves no reserve, for callers that can't
    /// wait until more is backed.
    pub(super) fn take_reserved(&self, bytes: usize) -> Option<usize> {
        self.take_leaving(|_| 0, bytes)
    }

    fn take_leaving(&self, left: impl Fn(usize) -> usize, bytes: usize) -> Option<usize> {
        let end = self.segment.committed().min(self.limit);
        let more = |used: usize| {
            let after = used.checked_add(bytes)?;
            after.checked_add(left(used)).is_some_and(|needed| needed <= end).then_some(after)
        };
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()
    }

    /// Bytes of the reserve where so many are handed out: small programs are not to wait for a
    /// large one.
    fn reserved(&self, used: usize) -> usize {
        self.reserve.min(AHEAD_LEAST + used / 2)
    }

    /// Backs space ahead of need: the reserve, as much as was used since the last call, many times
    /// over, and never less than `least`. Blocks: for the helper thread.
    ///
    /// # Errors
    /// When the disk refused; the next call tries again.
    pub(super) fn keep_ahead(&self, least: usize) -> Result<(), CommitError> {
        let used = self.used();
        let grown = used.saturating_sub(self.used_at_last_look.swap(used, Ordering::Relaxed));
        let ahead = (grown * 16).clamp(least.min(AHEAD_MOST), AHEAD_MOST).max((used / 4).min(AHEAD_MOST));
        let kept = used + self.reserved(used);
        if self.segment.committed() >= (kept + ahead / 2).min(self.limit) {
            return Ok(());
        }
        let outcome = self.segment.commit((kept + ahead).min(self.limit));
        self.disk_refused.store(outcome == Err(CommitError::Refused), Ordering::Relaxed);
        outcome
    }

    /// Backs so many bytes more than are handed out. Blocks.
    ///
    /// # Errors
    /// When the disk refused; the next call tries again.
    pub(super) fn back(&self, bytes: usize) -> Result<(), CommitError> {
        let outcome = self.segment.commit(self.used().saturating_add(bytes).min(self.limit));
        self.disk_refused.store(outcome == Err(CommitError::Refused), Ordering::Relaxed);
        outcome
    }
}
