//! A segment that is allocated from front to back, with space backed ahead of need.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::mapping::{CommitError, Segment};

/// Bytes that are backed at the start, and the minimum that is kept ready.
pub(super) const AHEAD_LEAST: usize = 2 << 20;
/// Like [`AHEAD_LEAST`], for a segment that is filled slowly by a writer that can wait. In a
/// program that ends soon, more fresh pages would cost more than they are worth.
pub(super) const AHEAD_LITTLE: usize = 256 << 10;
/// The maximum that is kept ready.
const AHEAD_MOST: usize = 64 << 20;

/// The segment, and the number of allocated bytes.
#[derive(Debug)]
pub(super) struct Growing {
    segment: Segment,
    limit: usize,
    /// Maximum bytes of the backed reserve for callers that can't wait.
    reserve: usize,
    used: AtomicUsize,
    used_at_last_look: AtomicUsize,
    disk_refused: AtomicBool,
}

impl Growing {
    /// Allocates at most `limit` bytes of `segment`; the first `used` are allocated already.
    pub(super) fn new(segment: Segment, limit: usize, used: usize) -> Self {
        let limit = limit.min(segment.capacity());
        let (used, used_at_last_look) = (AtomicUsize::new(used), AtomicUsize::new(0));
        Self { segment, limit, reserve: 0, used, used_at_last_look, disk_refused: AtomicBool::new(false) }
    }

    /// Keeps a reserve of up to `bytes` bytes, which only [`take_reserved`](Self::take_reserved)
    /// allocates from.
    pub(super) fn with_reserve(self, bytes: usize) -> Self {
        Self { reserve: bytes, ..self }
    }

    pub(super) fn segment(&self) -> &Segment {
        &self.segment
    }

    /// Maximum number of bytes that can be allocated.
    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    /// Number of bytes allocated so far.
    pub(super) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Whether the disk refused the last request for space.
    pub(super) fn is_refused(&self) -> bool {
        self.disk_refused.load(Ordering::Relaxed)
    }

    /// Allocates `bytes` bytes that only the caller uses, and returns their offset. `None` if the
    /// limit is reached, or if too little space beyond the reserve is backed yet. Does not block
    /// and calls no allocator: safe in a hook.
    pub(super) fn allocate(&self, bytes: usize) -> Option<usize> {
        // What can't grow further is handed out to the last byte.
        let grows = self.segment.committed() < self.limit && !self.is_refused();
        self.take_leaving(|used| if grows { self.reserved(used) } else { 0 }, bytes)
    }

    /// Like [`allocate`](Self::allocate), but may use the reserve. For callers that can't wait
    /// until more space is backed.
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

    /// Bytes of the reserve when `used` bytes are allocated. The reserve grows with use, so that
    /// small programs do not wait for a large reserve.
    fn reserved(&self, used: usize) -> usize {
        self.reserve.min(AHEAD_LEAST + used / 2)
    }

    /// Backs space ahead of need: the reserve, plus many times the amount used since the last call,
    /// but at least `least` bytes. Blocks, so only the helper thread calls it.
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

    /// Backs `bytes` bytes beyond the allocated ones. Blocks.
    ///
    /// # Errors
    /// When the disk refused; the next call tries again.
    pub(super) fn back(&self, bytes: usize) -> Result<(), CommitError> {
        let outcome = self.segment.commit(self.used().saturating_add(bytes).min(self.limit));
        self.disk_refused.store(outcome == Err(CommitError::Refused), Ordering::Relaxed);
        outcome
    }
}
