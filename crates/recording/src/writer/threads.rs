//! The table of threads. The hooks of a thread work on the first cache line of its record. The
//! reader reads the same record.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use super::fields::Fields;
use super::mapping::Segment;
use crate::layout::{kind, thread};
use crate::model::ThreadRole;

/// Records backed by disk space at a time.
const STEP: usize = 256;

/// The table. Records are never freed or reused, because a thread's tree outlives the thread.
#[derive(Debug)]
pub struct ThreadTable {
    segment: Segment,
    used: AtomicUsize,
}

impl ThreadTable {
    /// Creates the file.
    ///
    /// # Errors
    /// Errors of [`Segment::create`].
    pub fn create(path: &Path) -> io::Result<Self> {
        let segment = Segment::create(path, kind::THREADS, thread::MOST * thread::BYTES, STEP * thread::BYTES)?;
        Ok(Self { segment, used: AtomicUsize::new(0) })
    }

    /// The mapped file.
    #[must_use]
    pub fn segment(&self) -> &Segment {
        &self.segment
    }

    /// Allocates a record and gives it its serial number. `None` when the table is full, or no free
    /// record is backed yet. Does not block: safe in a hook.
    #[must_use]
    pub fn allocate_record(&self) -> Option<ThreadRecord> {
        let backed = self.backed();
        let taken =
            self.used.fetch_update(Ordering::AcqRel, Ordering::Relaxed, |used| (used < backed).then_some(used + 1));
        let index = taken.ok()?;
        let record = self.record(index)?;
        record.u32(thread::SERIAL).store(index as u32 + 1, Ordering::Release);
        Some(record)
    }

    /// Number of records taken so far.
    #[must_use]
    pub fn len(&self) -> usize {
        self.used.load(Ordering::Acquire)
    }

    /// Whether no record was taken yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The record with this index, if it has been allocated.
    #[must_use]
    pub fn record(&self, index: usize) -> Option<ThreadRecord> {
        let address = self.segment.content().wrapping_add(index.checked_mul(thread::BYTES)?);
        // SAFETY: `used` never exceeds what is committed, so the record lies within the content.
        (index < self.len()).then(|| unsafe { ThreadRecord::from_address(address) })
    }

    /// Whether the address is that of a record of this table. Does not read from the address.
    #[must_use]
    pub fn holds(&self, address: *const u8) -> bool {
        let offset = address.addr().wrapping_sub(self.segment.content().addr());
        offset < self.len() * thread::BYTES && offset.is_multiple_of(thread::BYTES)
    }

    /// The living thread with this id of the operating system.
    #[must_use]
    pub fn find(&self, os_id: u32) -> Option<ThreadRecord> {
        let lives = |record: &ThreadRecord| {
            record.u32(thread::OS_ID).load(Ordering::Relaxed) == os_id
                && record.u64(thread::ENDED).load(Ordering::Relaxed) == 0
        };
        (0..self.len()).rev().filter_map(|index| self.record(index)).find(lives)
    }

    /// Number of backed records. As long as it grows, it makes sense to wait for a record.
    #[must_use]
    pub fn backed(&self) -> usize {
        self.segment.committed() / thread::BYTES
    }

    /// Whether [`keep_ahead`](Self::keep_ahead) can still back more records.
    #[must_use]
    pub fn may_grow(&self) -> bool {
        self.backed() < thread::MOST && !self.segment.is_refused()
    }

    /// Reserves memory for records in advance. Blocks, so only the helper thread calls it.
    pub fn keep_ahead(&self) {
        let wanted = (self.len() + STEP).next_multiple_of(STEP).min(thread::MOST) * thread::BYTES;
        if wanted > self.segment.committed() {
            // A refusal shows when a thread finds no record, and is counted there.
            let _ = self.segment.commit(wanted);
        }
    }
}

/// One thread's record: 256 bytes that stay mapped for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadRecord(Fields<{ thread::BYTES }>);

impl ThreadRecord {
    /// The address, for the hooks.
    #[must_use]
    #[inline]
    pub fn address(self) -> *mut u8 {
        self.0.address()
    }

    /// The record at an address from [`address`](Self::address).
    ///
    /// # Safety
    /// `address` must come from `address()` of a record of this process.
    #[must_use]
    #[inline]
    pub unsafe fn from_address(address: *mut u8) -> Self {
        // SAFETY: as the caller promises; records are aligned and stay mapped.
        Self(unsafe { Fields::at(address) })
    }

    /// A field of four bytes; see [`layout::thread`](crate::layout::thread).
    #[must_use]
    #[inline]
    pub fn u32<'a>(self, at: usize) -> &'a AtomicU32 {
        self.0.u32(at)
    }

    /// A field of eight bytes; see [`layout::thread`](crate::layout::thread).
    #[must_use]
    #[inline]
    pub fn u64<'a>(self, at: usize) -> &'a AtomicU64 {
        self.0.u64(at)
    }

    /// The serial number, from 1.
    #[must_use]
    #[inline]
    pub fn serial(self) -> u32 {
        self.u32(thread::SERIAL).load(Ordering::Relaxed)
    }

    /// Notes the thread's role.
    pub fn set_role(self, role: ThreadRole) {
        self.u32(thread::ROLE).store(role as u32, Ordering::Relaxed);
    }
}
