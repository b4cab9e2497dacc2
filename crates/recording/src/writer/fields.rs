//! Numbers at fixed places in mapped memory, stored and loaded as atomics.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// A record in memory that stays mapped for ever; its first `BYTES` bytes are numbers at fixed
/// places.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fields<const BYTES: usize>(*mut u8);

// SAFETY: all access goes through atomics.
unsafe impl<const BYTES: usize> Send for Fields<BYTES> {}
// SAFETY: as above.
unsafe impl<const BYTES: usize> Sync for Fields<BYTES> {}

impl<const BYTES: usize> Fields<BYTES> {
    /// The record at `address`.
    ///
    /// # Safety
    /// The `BYTES` bytes from `address` on must be mapped and writable, and must stay so; the
    /// address must be a multiple of eight.
    #[inline]
    pub(super) const unsafe fn at(address: *mut u8) -> Self {
        Self(address)
    }

    /// Address of the record.
    #[inline]
    pub(super) const fn address(self) -> *mut u8 {
        self.0
    }

    /// The four bytes at `at`.
    #[inline]
    pub(super) fn u32<'a>(self, at: usize) -> &'a AtomicU32 {
        debug_assert!(at + 4 <= BYTES && at.is_multiple_of(4));
        // SAFETY: within the record, aligned, mapped for ever; only ever used as an atomic.
        unsafe { AtomicU32::from_ptr(self.0.add(at).cast()) }
    }

    /// The eight bytes at `at`.
    #[inline]
    pub(super) fn u64<'a>(self, at: usize) -> &'a AtomicU64 {
        debug_assert!(at + 8 <= BYTES && at.is_multiple_of(8));
        // SAFETY: within the record, aligned, mapped for ever; only ever used as an atomic.
        unsafe { AtomicU64::from_ptr(self.0.add(at).cast()) }
    }

    /// Adds `more` to the eight bytes at `at`. No other thread may add there, so a load and a store
    /// are enough.
    #[inline]
    pub(super) fn add_alone(self, at: usize, more: u64) {
        let sum = self.u64(at);
        sum.store(sum.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
    }
}
