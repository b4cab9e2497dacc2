//! The table of threads. The hooks of a thread work on the first cache line of its record. The
//! reader reads the same record.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use super::fields::Fields;
use super::mapping::Segment;
use crate::layout::{kind, thread};
use crate::model::ThreadRole;

/// Records backed by disk space at a time.
const STEP: usize = 256;

/// Maximum number of records that are ready to be reused.
const MOST_READY: usize = 1024;
/// Records that [`ThreadTable::find_outdated`] looks at in one call.
const LOOKED_AT: usize = 1024;

/// The thread table. A thread's record and tree outlive the thread. There is one exception: if a
/// recording keeps no more than its last period, a new thread may take over the record of a thread
/// that ended before that period, and continue its tree. So a program that starts threads for days
/// needs no more room than for the threads of the kept time.
#[derive(Debug)]
pub struct ThreadTable {
    segment: Segment,
    used: AtomicUsize,
    /// Nanoseconds after a thread's end until its record may be reused; 0 for never.
    kept_ns: AtomicU64,
    ready: Mutex<ReadyRecords>,
    /// Ring of the records that were taken last, in the order in which threads took them. Number
    /// `n` of this order, counted from 0, is at index `n` modulo the length; the upper half of the
    /// entry is `n`, the lower half is the index of the record plus one.
    order: Box<[AtomicU64]>,
    /// Number of threads that took a record; `reused` counts those that took a reused record.
    begun: AtomicUsize,
    reused: AtomicU32,
}

/// Records whose threads ended before the time that is kept.
#[derive(Debug)]
struct ReadyRecords {
    indices: Vec<u32>,
    /// The next record to look at.
    next: usize,
}

impl ThreadTable {
    /// Creates the file.
    ///
    /// # Errors
    /// Errors of [`Segment::create`].
    pub fn create(path: &Path) -> io::Result<Self> {
        let segment = Segment::create(path, kind::THREADS, thread::MOST * thread::BYTES, STEP * thread::BYTES)?;
        let ready = ReadyRecords { indices: Vec::with_capacity(MOST_READY), next: 0 };
        Ok(Self {
            segment,
            used: AtomicUsize::new(0),
            kept_ns: AtomicU64::new(0),
            ready: Mutex::new(ready),
            // SAFETY: zero is a valid atomic number. The system backs the pages when they are used.
            order: unsafe { Box::new_zeroed_slice(thread::MOST).assume_init() },
            begun: AtomicUsize::new(0),
            reused: AtomicU32::new(0),
        })
    }

    /// Lets records be reused when their threads ended more than `ns` nanoseconds ago.
    pub fn keep_for(&self, ns: u64) {
        self.kept_ns.store(ns, Ordering::Relaxed);
    }

    /// The mapped file.
    #[must_use]
    pub fn segment(&self) -> &Segment {
        &self.segment
    }

    /// Whether records are reused.
    #[must_use]
    pub fn reuses_records(&self) -> bool {
        self.kept_ns.load(Ordering::Relaxed) != 0
    }

    /// Allocates a record for a thread that begins at `mono_ns`, and gives it its serial number.
    /// `None` when the table is full, or no free record is backed yet. Does not block: safe in a
    /// hook.
    #[must_use]
    pub fn allocate_record(&self, mono_ns: u64) -> Option<ThreadRecord> {
        let (index, record) = self.reused_record(mono_ns).or_else(|| self.fresh_record(mono_ns))?;
        let place = self.begun.fetch_add(1, Ordering::AcqRel);
        self.order[place % self.order.len()].store((place as u64) << 32 | (index as u64 + 1), Ordering::Release);
        Some(record)
    }

    fn fresh_record(&self, mono_ns: u64) -> Option<(usize, ThreadRecord)> {
        let backed = self.backed();
        let taken =
            self.used.fetch_update(Ordering::AcqRel, Ordering::Relaxed, |used| (used < backed).then_some(used + 1));
        let index = taken.ok()?;
        let record = self.record(index)?;
        record.u64(thread::CREATED).store(mono_ns, Ordering::Relaxed);
        record.u32(thread::SERIAL).store(index as u32 + 1, Ordering::Release);
        Some((index, record))
    }

    /// Reuses a record whose thread ended before the kept time. The record is like a fresh one,
    /// except for [`thread::ROOT_BEFORE`] and the writer's own fields.
    fn reused_record(&self, mono_ns: u64) -> Option<(usize, ThreadRecord)> {
        let index = self.ready.try_lock().ok()?.indices.pop()? as usize;
        let record = self.record(index)?;
        let root = record.u32(thread::ROOT).swap(0, Ordering::Relaxed);
        if root != 0 {
            record.u32(thread::ROOT_BEFORE).store(root, Ordering::Relaxed);
        }
        for field in [thread::ROLE, thread::CPU_KNOWN, thread::OUT_OF_STACK] {
            record.u32(field).store(0, Ordering::Relaxed);
        }
        record.u64(thread::CPU).store(0, Ordering::Relaxed);
        record.u64(thread::CREATED).store(mono_ns, Ordering::Relaxed);
        // Numbers of fresh records end at `MOST`.
        let reused = self.reused.fetch_add(1, Ordering::Relaxed);
        record.u32(thread::SERIAL).store(thread::MOST as u32 + 1 + reused, Ordering::Relaxed);
        record.u64(thread::ENDED).store(0, Ordering::Release);
        Some((index, record))
    }

    /// The record of the thread at `place` in the order in which threads begin, from 0. `None` if
    /// no such thread has begun yet. If that record is no longer known, `place` first moves on to
    /// the oldest one that still is.
    #[must_use]
    pub fn begun_at(&self, place: &mut usize) -> Option<ThreadRecord> {
        let begun = self.begun();
        *place = (*place).max(begun.saturating_sub(self.order.len()));
        let taken = self.order[*place % self.order.len()].load(Ordering::Acquire);
        let index = (taken as u32 as usize).checked_sub(1)?;
        (*place < begun && (taken >> 32) as usize == *place).then(|| self.record(index)).flatten()
    }

    /// Number of threads that have taken a record so far.
    #[must_use]
    pub fn begun(&self) -> usize {
        self.begun.load(Ordering::Acquire)
    }

    /// Finds records that may be reused at `mono_ns`. Looks at some of the records in each call;
    /// only the helper thread calls it.
    pub fn find_outdated(&self, mono_ns: u64) {
        let kept_ns = self.kept_ns.load(Ordering::Relaxed);
        let records = self.len();
        if kept_ns == 0 || records == 0 {
            return;
        }
        let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..LOOKED_AT.min(records) {
            if ready.indices.len() >= MOST_READY {
                return;
            }
            let index = ready.next % records;
            ready.next = index + 1;
            let Some(record) = self.record(index) else { continue };
            let ended = record.u64(thread::ENDED).load(Ordering::Acquire);
            let is_outdated = ended != 0 && ended.saturating_add(kept_ns) < mono_ns;
            // Without an id a record is ready already, or its thread could not begin.
            if is_outdated && record.u32(thread::OS_ID).swap(0, Ordering::Relaxed) != 0 {
                ready.indices.push(index as u32);
            }
        }
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
