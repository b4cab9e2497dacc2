//! Log records, appended under a lock and readable as soon as they are complete.

use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use super::mapping::Segment;
use crate::layout::kind;

/// Address space for one log.
const CAPACITY: usize = 256 << 20;
/// Disk space taken at a time.
const STEP: usize = 256 << 10;

/// A log. Appending may wait for the disk, so it is not for hooks; see
/// [`append_in_hook`](Self::append_in_hook).
#[derive(Debug)]
pub struct LogWriter {
    segment: Segment,
    end: Mutex<usize>,
}

impl LogWriter {
    /// Creates the file.
    ///
    /// # Errors
    /// Errors of [`Segment::create`].
    pub fn create(path: &Path) -> io::Result<Self> {
        Self::create_with(path, CAPACITY)
    }

    /// Creates the file, with address space for `capacity` bytes.
    pub(super) fn create_with(path: &Path, capacity: usize) -> io::Result<Self> {
        let segment = Segment::create(path, kind::LOG, capacity, STEP)?;
        Ok(Self { segment, end: Mutex::new(0) })
    }

    /// The mapped file.
    #[must_use]
    pub fn segment(&self) -> &Segment {
        &self.segment
    }

    /// Appends a record. Returns whether there was room.
    pub fn append(&self, kind: u16, payload: &[u8]) -> bool {
        let mut end = self.end.lock().unwrap_or_else(PoisonError::into_inner);
        let next = *end + room(payload);
        // One head more than needed, so that the log always ends in a zero.
        if next + 8 > self.segment.committed()
            && self.segment.commit((next + STEP).min(self.segment.capacity())).is_err()
        {
            // Less than asked may still be enough.
            if next + 8 > self.segment.committed() {
                return false;
            }
        }
        self.store(*end, kind, payload);
        *end = next;
        true
    }

    /// Appends a record without waiting for the lock or the disk. Returns whether it was appended.
    pub fn append_in_hook(&self, kind: u16, payload: &[u8]) -> bool {
        let Ok(mut end) = self.end.try_lock() else { return false };
        let next = *end + room(payload);
        if next + 8 > self.segment.committed() {
            return false;
        }
        self.store(*end, kind, payload);
        *end = next;
        true
    }

    fn store(&self, at: usize, kind: u16, payload: &[u8]) {
        let length = payload.len().max(1) as u32;
        // SAFETY: the caller holds the lock and has checked that the record lies below `committed`;
        // the content is four-byte aligned because every record is.
        unsafe {
            let head = self.segment.content().add(at);
            head.add(4).cast::<u32>().write(u32::from(kind) | 1 << 16);
            std::ptr::copy_nonoverlapping(payload.as_ptr(), head.add(8), payload.len());
            // Last, so that a reader sees the record whole or not at all.
            AtomicU32::from_ptr(head.cast()).store(length, Ordering::Release);
        }
    }
}

fn room(payload: &[u8]) -> usize {
    8 + payload.len().max(1).next_multiple_of(4)
}
