//! Chunks of events: one mapped file per instrument. Threads allocate chunks from the file; only
//! the thread that took a chunk fills it.

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use super::fields::Fields;
use super::growing::{AHEAD_LEAST, AHEAD_LITTLE, Growing};
use super::mapping::{Area, CommitError, Segment};
use crate::events::ShortRecord;
use crate::layout::{chunk, kind};

/// Which events are kept when the limit is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keep {
    /// The first events.
    First,
    /// The last events: [`EventStore::take_oldest`] uses finished chunks again.
    Last,
    /// The events of the last period of this many nanoseconds: chunks that were finished before it
    /// are used again.
    Recent(u64),
}

impl Keep {
    fn is_ring(self) -> bool {
        self != Self::First
    }
}

/// Maximum size of a ring by time, for one instrument; bounded because the list of its chunks has a
/// fixed size.
const MOST_RECENT: u64 = 4 << 30;

/// The store. [`allocate_chunk`](Self::allocate_chunk) and the methods of [`Chunk`] neither wait
/// for the disk nor call an allocator: they are safe in hooks and in callbacks during a collection.
#[derive(Debug)]
pub struct EventStore {
    space: Growing,
    keep: Keep,
    /// Minimum number of bytes that are backed ahead.
    ahead: usize,
    sequence: AtomicU64,
    /// Chunks that may be used again, oldest first.
    finished: Mutex<VecDeque<Chunk>>,
}

impl EventStore {
    /// Creates the file with room for `limit` bytes of chunks.
    ///
    /// # Errors
    /// Errors of [`Segment::create`].
    pub fn create(path: &Path, limit: u64, keep: Keep) -> io::Result<Self> {
        Self::create_with(path, limit, keep, AHEAD_LEAST, Area::Any)
    }

    /// Like [`create`](Self::create), but reserves less space in advance: for slow events, whose
    /// writer can wait.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn create_slow(path: &Path, limit: u64, keep: Keep) -> io::Result<Self> {
        Self::create_with(path, limit, keep, AHEAD_LITTLE, Area::Any)
    }

    /// Like [`create_slow`](Self::create_slow) with [`Keep::First`], but at addresses below 2 GiB
    /// if there is room: code that contains such addresses is shorter.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub fn create_low(path: &Path, limit: u64) -> io::Result<Self> {
        Self::create_with(path, limit, Keep::First, AHEAD_LITTLE, Area::Low)
    }

    fn create_with(path: &Path, limit: u64, keep: Keep, ahead: usize, area: Area) -> io::Result<Self> {
        let limit = if matches!(keep, Keep::Recent(_)) { limit.min(MOST_RECENT) } else { limit };
        let limit = usize::try_from(limit).unwrap_or(usize::MAX).clamp(64 << 10, 1 << 40) & !(chunk::GRAIN - 1);
        let segment = Segment::create_in(area, path, kind::EVENTS, limit, ahead.min(limit))?;
        let space = Growing::new(segment, limit, 0);
        // A ring never has more chunks than this, so finishing one never allocates.
        let most = if keep.is_ring() { space.limit() / chunk::GRAIN } else { 0 };
        let finished = Mutex::new(VecDeque::with_capacity(most));
        Ok(Self { space, keep, ahead, sequence: AtomicU64::new(1), finished })
    }

    /// Keeps a reserve of up to `bytes` bytes, which only [`take_reserved`](Self::take_reserved)
    /// allocates from.
    #[must_use]
    pub fn with_reserve(self, bytes: usize) -> Self {
        Self { space: self.space.with_reserve(bytes), ..self }
    }

    /// The mapped file.
    #[must_use]
    pub fn segment(&self) -> &Segment {
        self.space.segment()
    }

    /// Number of bytes allocated so far, each chunk counted once.
    #[must_use]
    pub fn used(&self) -> usize {
        self.space.used()
    }

    /// Maximum number of bytes of all chunks.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.space.limit()
    }

    /// Whether only the last events are kept: only then does [`finish`](Self::finish) have an
    /// effect.
    #[must_use]
    pub fn is_ring(&self) -> bool {
        self.keep.is_ring()
    }

    /// Whether the limit is reached.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.used() + chunk::GRAIN > self.limit()
    }

    /// Whether the disk refused the last request for space.
    #[must_use]
    pub fn is_refused(&self) -> bool {
        self.space.is_refused()
    }

    /// Allocates an empty chunk for the thread with this serial number (0 for none), of about
    /// `bytes` bytes, head included. `mono_ns` is the current time. `None` if no space beyond the
    /// reserve is backed yet or the limit is reached; the caller counts the events that it drops. A
    /// ring that keeps recent events reuses a chunk whose events are all too old, if there is one;
    /// its size may differ from `bytes`.
    #[must_use]
    pub fn allocate_chunk(&self, thread: u32, bytes: usize, mono_ns: u64) -> Option<Chunk> {
        self.take_outdated(thread, mono_ns).or_else(|| self.fresh_chunk(thread, bytes, mono_ns))
    }

    /// Like [`allocate_chunk`](Self::allocate_chunk), but the chunk is never reused, because other
    /// events refer to its contents.
    #[must_use]
    pub fn allocate_dictionary_chunk(&self, bytes: usize, mono_ns: u64) -> Option<Chunk> {
        let chunk = self.fresh_chunk(0, bytes, mono_ns)?;
        chunk.u32(chunk::DICTIONARY).store(1, Ordering::Relaxed);
        Some(chunk)
    }

    fn fresh_chunk(&self, thread: u32, bytes: usize, mono_ns: u64) -> Option<Chunk> {
        let bytes = self.rounded(bytes);
        Some(self.chunk_at(self.space.allocate(bytes)?, bytes, thread, mono_ns))
    }

    /// In a ring by time, reuses the chunk that was finished first, if all its events are too old
    /// to be kept.
    fn take_outdated(&self, thread: u32, mono_ns: u64) -> Option<Chunk> {
        let Keep::Recent(kept_ns) = self.keep else { return None };
        let is_outdated =
            |chunk: &Chunk| chunk.u64(chunk::LAST).load(Ordering::Relaxed).saturating_add(kept_ns) < mono_ns;
        let mut finished = self.finished.lock().unwrap_or_else(PoisonError::into_inner);
        if !finished.front().is_some_and(is_outdated) {
            return None;
        }
        let chunk = finished.pop_front()?;
        drop(finished);
        chunk.begin(thread, self.sequence.fetch_add(1, Ordering::Relaxed), mono_ns);
        Some(chunk)
    }

    /// Like [`allocate_chunk`](Self::allocate_chunk), but may use the reserve. For callers that
    /// can't wait.
    #[must_use]
    pub fn take_reserved(&self, thread: u32, bytes: usize, mono_ns: u64) -> Option<Chunk> {
        let bytes = self.rounded(bytes);
        Some(self.chunk_at(self.space.take_reserved(bytes)?, bytes, thread, mono_ns))
    }

    /// Reuses the chunk of a ring that was finished first, for the thread with this serial number
    /// (0 for none). The chunk is empty and keeps its size. `last_look` gets the chunk before it is
    /// emptied; `mono_ns` is the current time.
    #[must_use]
    pub fn take_oldest(&self, thread: u32, mono_ns: u64, last_look: impl FnOnce(Chunk)) -> Option<Chunk> {
        let chunk = self.finished.lock().unwrap_or_else(PoisonError::into_inner).pop_front()?;
        last_look(chunk);
        chunk.begin(thread, self.sequence.fetch_add(1, Ordering::Relaxed), mono_ns);
        Some(chunk)
    }

    fn rounded(&self, bytes: usize) -> usize {
        bytes.clamp(chunk::GRAIN, self.limit().min(64 << 20)).next_multiple_of(chunk::GRAIN)
    }

    /// The chunk of `bytes` bytes at an offset that was just allocated.
    fn chunk_at(&self, offset: usize, bytes: usize, thread: u32, mono_ns: u64) -> Chunk {
        let address = self.segment().content().wrapping_add(offset);
        // SAFETY: chunks are multiples of a grain, the segment is mapped for ever, and so much of
        // it is backed.
        let chunk = unsafe { Chunk::from_address(address) };
        chunk.u32(chunk::BYTES).store(bytes as u32, Ordering::Relaxed);
        chunk.begin(thread, self.sequence.fetch_add(1, Ordering::Relaxed), mono_ns);
        chunk
    }

    /// Notes that the thread has finished the chunk, because it is full or the thread ended. A ring
    /// may reuse the chunk from now on.
    pub fn finish(&self, chunk: Chunk) {
        if self.keep.is_ring() {
            self.finished.lock().unwrap_or_else(PoisonError::into_inner).push_back(chunk);
        }
    }

    /// Backs space ahead of need: many times the amount used since the last call. Blocks, so only
    /// the helper thread calls it.
    ///
    /// # Errors
    /// When the disk refused; the next call tries again.
    pub fn keep_ahead(&self) -> Result<(), CommitError> {
        self.space.keep_ahead(self.ahead)
    }

    /// Backs exactly `bytes` bytes beyond the allocated ones. Blocks.
    ///
    /// # Errors
    /// As [`keep_ahead`](Self::keep_ahead).
    pub fn back(&self, bytes: usize) -> Result<(), CommitError> {
        self.space.back(bytes.next_multiple_of(chunk::GRAIN))
    }

    /// Like [`keep_ahead`](Self::keep_ahead), but backs at least `least` bytes: for callers that
    /// may fill chunks faster than the helper thread backs space.
    ///
    /// # Errors
    /// As [`keep_ahead`](Self::keep_ahead).
    pub fn keep_ahead_at_least(&self, least: usize) -> Result<(), CommitError> {
        self.space.keep_ahead(least.max(self.ahead))
    }
}

/// Holds the chunk that a thread fills, without a lock.
#[derive(Debug, Default)]
pub struct ChunkCell(AtomicPtr<u8>);

impl ChunkCell {
    /// The current chunk, if any.
    #[must_use]
    #[inline]
    pub fn get(&self) -> Option<Chunk> {
        let address = self.0.load(Ordering::Relaxed);
        // SAFETY: only addresses of chunks are kept here.
        (!address.is_null()).then(|| unsafe { Chunk::from_address(address) })
    }

    /// Replaces the chunk.
    pub fn set(&self, chunk: Option<Chunk>) {
        self.0.store(chunk.map_or(std::ptr::null_mut(), Chunk::address), Ordering::Relaxed);
    }
}

/// A chunk that one thread fills. Its memory stays mapped for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Chunk(Fields<{ chunk::HEAD }>);

impl Chunk {
    /// The address, to be kept in thread-local memory.
    #[must_use]
    pub fn address(self) -> *mut u8 {
        self.0.address()
    }

    /// The chunk at an address from [`address`](Self::address).
    ///
    /// # Safety
    /// `address` must come from `address()` of a chunk of this process.
    #[must_use]
    pub unsafe fn from_address(address: *mut u8) -> Self {
        // SAFETY: as the caller promises; heads of chunks are aligned and stay mapped.
        Self(unsafe { Fields::at(address) })
    }

    /// A field of the head; see [`layout::chunk`](crate::layout::chunk).
    #[must_use]
    #[inline]
    pub fn u32<'a>(self, at: usize) -> &'a AtomicU32 {
        self.0.u32(at)
    }

    /// A field of the head; see [`layout::chunk`](crate::layout::chunk).
    #[must_use]
    #[inline]
    pub fn u64<'a>(self, at: usize) -> &'a AtomicU64 {
        self.0.u64(at)
    }

    fn begin(self, thread: u32, sequence: u64, mono_ns: u64) {
        // In this order, so that a reader that meets a chunk used again sees either number or none.
        self.u64(chunk::SEQUENCE).store(0, Ordering::SeqCst);
        self.u32(chunk::USED).store(0, Ordering::SeqCst);
        self.u32(chunk::THREAD).store(thread, Ordering::Relaxed);
        self.u32(chunk::NON_CALL_BYTES).store(0, Ordering::Relaxed);
        self.u64(chunk::FIRST).store(mono_ns, Ordering::Relaxed);
        self.u64(chunk::LAST).store(mono_ns, Ordering::Relaxed);
        self.u32(chunk::FORMAT).store(chunk::VERSION, Ordering::Relaxed);
        self.u64(chunk::SEQUENCE).store(sequence, Ordering::SeqCst);
    }

    /// Address of the events. Only the thread that took the chunk may write there, and no more than
    /// [`room`](Self::room) bytes.
    #[inline]
    #[must_use]
    pub fn payload(self) -> *mut u8 {
        self.address().wrapping_add(chunk::HEAD)
    }

    /// Capacity of the chunk in bytes of events, whether used or not.
    #[inline]
    #[must_use]
    pub fn room(self) -> usize {
        (self.u32(chunk::BYTES).load(Ordering::Relaxed) as usize).saturating_sub(chunk::HEAD)
    }

    /// Number of bytes of events in the chunk so far.
    #[inline]
    #[must_use]
    pub fn used(self) -> usize {
        self.u32(chunk::USED).load(Ordering::Relaxed) as usize
    }

    /// Makes the first `used` bytes of events known to readers. `mono_ns` is the current time.
    #[inline]
    pub fn publish(self, used: usize, mono_ns: u64) {
        debug_assert!(used <= self.room());
        self.u64(chunk::LAST).store(mono_ns, Ordering::Relaxed);
        self.u32(chunk::USED).store(used as u32, Ordering::Release);
    }

    /// Appends bytes and publishes them. Returns whether they fit. Only for the thread that took
    /// the chunk.
    pub fn append(self, bytes: &[u8], mono_ns: u64) -> bool {
        self.append_with(mono_ns, |free| {
            free.get_mut(..bytes.len())?.copy_from_slice(bytes);
            Some(bytes.len())
        })
    }

    /// Appends a record with the same time as the record before it, and publishes it. False if
    /// there is no record before it, or no room for `word`. Only for the thread that took the
    /// chunk.
    #[inline]
    pub fn append_short(self, record: ShortRecord) -> bool {
        let used = self.used();
        if used == 0 || used + record.word.len() > self.room() {
            return false;
        }
        // SAFETY: the range lies in the chunk, which is backed; only its thread writes there, and
        // readers look at what was published only. All of the word is written, and as much of it
        // counts as the record has bytes.
        unsafe { self.payload().add(used).cast::<[u8; 16]>().write_unaligned(record.word) };
        self.u32(chunk::USED).store((used + record.length) as u32, Ordering::Release);
        true
    }

    /// Lets `write` fill the free space and publishes the number of bytes that `write` returns;
    /// `None` leaves the chunk unchanged. Returns whether anything was written. Only for the thread
    /// that took the chunk.
    #[inline]
    pub fn append_with(self, mono_ns: u64, write: impl FnOnce(&mut [u8]) -> Option<usize>) -> bool {
        let used = self.used();
        let free = self.room().saturating_sub(used);
        // SAFETY: the range lies in the chunk, which is backed; only its thread writes there, and
        // readers look at what was published only.
        let Some(wrote) = write(unsafe { std::slice::from_raw_parts_mut(self.payload().add(used), free) }) else {
            return false;
        };
        self.publish(used + wrote.min(free), mono_ns);
        true
    }
}
