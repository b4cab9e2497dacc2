//! The chunks that threads write their events to.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use clrscope_recording::layout::{chunk, flow};
use clrscope_recording::model::LossReason;
use clrscope_recording::writer::{Chunk, EventStore, ProcessWriter, ThreadRecord, monotonic_ns};

use crate::hooks;
use crate::hooks::own;
use crate::services::clock;
use crate::services::helper::HelperHandle;
use crate::services::memory::{Patience, Published};
use crate::services::threads;

/// Backed ahead of need at least: the helper thread may not run for a while, and a busy thread fills
/// a few hundred MB in a second.
pub(super) const AHEAD: usize = 16 << 20;
/// Backed at most for threads that the runtime stops, which may not wait: four that do nothing but call fill a megabyte
/// meanwhile.
pub(super) const RESERVE: usize = 32 << 20;
/// Bytes of a chunk: 2,044 events.
pub(super) const CHUNK: usize = 32 << 10;
/// A ring has at least this many chunks, so that one thread can't fill it alone.
const CHUNKS_LEAST: u64 = 64;

/// Bytes of values per event at most.
pub(super) const MOST_VALUES: usize = 2048;

/// State that all threads of `flow` share; made once, never freed.
pub(crate) struct Ring {
    writer: &'static ProcessWriter,
    store: EventStore,
    patience: Patience,
    chunk_bytes: usize,
    /// Nanoseconds that hooks waited for memory.
    stalled_ns: AtomicU64,
    stalls: AtomicU64,
    /// The runtime stops the threads: it waits for each that is in a hook.
    is_suspending: AtomicBool,
    /// Naps of hooks meanwhile.
    naps_in_suspensions: AtomicU64,
}

static RING: Published<Ring> = Published::nothing();

/// A chunk without room: where the events of a thread go that has none yet.
#[repr(align(64))]
struct EmptyChunk([u64; 8]);

static EMPTY_CHUNK: EmptyChunk = EmptyChunk([0; 8]);

/// The address for [`own::FLOW_CHUNK`] of a thread without a chunk; the hooks read its `USED`.
fn empty_chunk() -> u64 {
    EMPTY_CHUNK.0.as_ptr() as u64
}

/// The ring, once `flow` has started.
pub(crate) fn ring() -> Option<&'static Ring> {
    RING.get()
}

/// The ring and the record of the calling thread, once both are there.
pub(super) fn here() -> Option<(&'static Ring, ThreadRecord)> {
    Some((ring()?, threads::current()?))
}

/// Forgets the ring: for a forked child. Async-signal-safe.
pub(crate) fn withdraw() {
    RING.withdraw();
}

impl Ring {
    /// Makes the ring known to the hooks. `limit` is its size in bytes, `None` where everything is kept.
    pub(crate) fn publish(
        writer: &'static ProcessWriter,
        store: EventStore,
        helper: HelperHandle,
        limit: Option<u64>,
    ) -> &'static Self {
        RING.publish(Self::new(writer, store, helper, limit))
    }

    fn new(writer: &'static ProcessWriter, store: EventStore, helper: HelperHandle, limit: Option<u64>) -> Self {
        let share = limit.map_or(u64::MAX, |limit| limit / CHUNKS_LEAST);
        Self {
            writer,
            store,
            patience: Patience::new(helper),
            chunk_bytes: CHUNK.min(usize::try_from(share).unwrap_or(CHUNK)),
            stalled_ns: AtomicU64::new(0),
            stalls: AtomicU64::new(0),
            is_suspending: AtomicBool::new(false),
            naps_in_suspensions: AtomicU64::new(0),
        }
    }

    /// The store of chunks.
    pub(crate) fn store(&self) -> &EventStore {
        &self.store
    }

    /// Number of times that hooks waited for memory, and nanoseconds of it altogether.
    pub(crate) fn stalls(&self) -> (u64, u64) {
        (self.stalls.load(Ordering::Relaxed), self.stalled_ns.load(Ordering::Relaxed))
    }

    /// Number of times that hooks slept while the runtime waited for them to return.
    pub(crate) fn naps_in_suspensions(&self) -> u64 {
        self.naps_in_suspensions.load(Ordering::Relaxed)
    }

    /// Notes whether the runtime stops the threads.
    pub(crate) fn suspends(&self, is_suspending: bool) {
        self.is_suspending.store(is_suspending, Ordering::Release);
    }

    /// The calling thread is new: its first event asks for a chunk.
    pub(crate) fn begin(record: ThreadRecord) {
        record.u64(own::FLOW_CHUNK).store(empty_chunk(), Ordering::Relaxed);
        record.u32(own::FLOW_ROOM).store(0, Ordering::Relaxed);
    }

    /// The calling thread ends, or its chunk is full.
    pub(crate) fn finish(&self, record: ThreadRecord) {
        record.u32(own::FLOW_ROOM).store(0, Ordering::Relaxed);
        let address = record.u64(own::FLOW_CHUNK).swap(empty_chunk(), Ordering::Relaxed);
        if address != empty_chunk() && address != 0 {
            // SAFETY: only `refill` stores other addresses, those of chunks.
            let chunk = unsafe { Chunk::from_address(address as *mut u8) };
            chunk.publish(chunk.used(), monotonic_ns());
            self.store.finish(chunk);
        }
    }

    /// Appends an event. Only for the thread whose record it is.
    pub(crate) fn append(&self, record: ThreadRecord, what: u32, sp: usize) {
        self.append_with(record, what, sp, 0, |_| 0);
    }

    /// Appends an event with at most `most` bytes of values: `fill` writes them and says how many they are. The event and
    /// its values are there together or not at all.
    pub(crate) fn append_with(
        &self,
        record: ThreadRecord,
        what: u32,
        sp: usize,
        most: usize,
        fill: impl FnOnce(&mut [u8]) -> usize,
    ) {
        let Some(chunk) = self.room_for(record, 2 * flow::BYTES + most) else {
            self.writer.state().lose(LossReason::EventDropped, 1, monotonic_ns());
            return;
        };
        let used = chunk.used();
        let ticks = clock::ticks();
        // SAFETY: `room_for` found the room, the chunk is the calling thread's, and chunks are aligned.
        let more = unsafe {
            let at = chunk.payload().add(used);
            put(at, ticks, what, sp as u32);
            let values = std::slice::from_raw_parts_mut(at.add(2 * flow::BYTES), most);
            let length = fill(values);
            if length == 0 {
                0
            } else {
                put(at.add(flow::BYTES), ticks, flow::VALUES, length as u32);
                flow::BYTES + length.next_multiple_of(flow::BYTES)
            }
        };
        let beside = if what & flow::KIND == flow::OTHER { flow::BYTES + more } else { more };
        // Only this thread writes there, so no locked instruction is needed.
        let so_far = chunk.u32(chunk::NON_CALL_BYTES).load(Ordering::Relaxed);
        chunk.u32(chunk::NON_CALL_BYTES).store(so_far + beside as u32, Ordering::Relaxed);
        chunk.u32(chunk::USED).store((used + flow::BYTES + more) as u32, Ordering::Release);
    }

    fn room_for(&self, record: ThreadRecord, bytes: usize) -> Option<Chunk> {
        let room = record.u32(own::FLOW_ROOM).load(Ordering::Relaxed) as usize;
        let address = record.u64(own::FLOW_CHUNK).load(Ordering::Relaxed);
        if room > 0 {
            // SAFETY: a thread that has room has a chunk.
            let chunk = unsafe { Chunk::from_address(address as *mut u8) };
            if chunk.used() + bytes <= room {
                return Some(chunk);
            }
        }
        self.finish(record);
        self.refill(record).filter(|chunk| bytes <= chunk.room())
    }

    fn refill(&self, record: ThreadRecord) -> Option<Chunk> {
        if hooks::is_stopped() {
            return None;
        }
        let now = monotonic_ns();
        let serial = record.serial();
        let chunk = self
            .store
            .take(serial, self.chunk_bytes, now)
            .or_else(|| self.take_without_waiting(serial, now))
            .or_else(|| self.wait_for_fresh(serial, now))
            .or_else(|| self.take_oldest(serial, now))?;
        record.u64(own::FLOW_CHUNK).store(chunk.address() as u64, Ordering::Relaxed);
        record.u32(own::FLOW_ROOM).store(chunk.room() as u32, Ordering::Relaxed);
        Some(chunk)
    }

    /// While the runtime stops the threads: a chunk of the reserve, or the oldest one although fresh ones are to come. A
    /// thread that sleeps in a hook can't be stopped, and all the others stand still for it.
    fn take_without_waiting(&self, serial: u32, now: u64) -> Option<Chunk> {
        if !self.is_suspending.load(Ordering::Acquire) {
            return None;
        }
        self.store.take_reserved(serial, self.chunk_bytes, now).or_else(|| self.take_oldest(serial, now))
    }

    /// Takes the oldest chunk once more, and counts the calls whose events it held.
    fn take_oldest(&self, serial: u32, now: u64) -> Option<Chunk> {
        self.store.take_oldest(serial, now, |chunk| {
            let beside = chunk.u32(chunk::NON_CALL_BYTES).load(Ordering::Relaxed) as usize;
            let calls = chunk.used().saturating_sub(beside) / flow::BYTES;
            self.writer.state().lose(LossReason::RingOverwritten, calls as u64, now);
        })
    }

    /// Waits for a chunk that nobody had, before one is used again whose time has not come yet; not where the limit is
    /// reached.
    fn wait_for_fresh(&self, serial: u32, now: u64) -> Option<Chunk> {
        if !self.patience.would_wait(&self.store, self.chunk_bytes) {
            return None;
        }
        let take = || {
            let now = monotonic_ns();
            let found = self.store.take(serial, self.chunk_bytes, now);
            let found = found.or_else(|| self.take_without_waiting(serial, now));
            if found.is_none() && self.is_suspending.load(Ordering::Relaxed) {
                self.naps_in_suspensions.fetch_add(1, Ordering::Relaxed);
            }
            found
        };
        let found = self.patience.wait(&self.store, self.chunk_bytes, take);
        self.stalls.fetch_add(1, Ordering::Relaxed);
        self.stalled_ns.fetch_add(monotonic_ns().saturating_sub(now), Ordering::Relaxed);
        found
    }
}

/// Writes one event.
///
/// # Safety
/// `at` must be aligned to eight bytes with room for [`flow::BYTES`].
unsafe fn put(at: *mut u8, ticks: u64, what: u32, sp: u32) {
    // SAFETY: the caller's promise.
    unsafe {
        at.add(flow::TICKS).cast::<u64>().write(ticks);
        at.add(flow::WHAT).cast::<u32>().write(what);
        at.add(flow::SP).cast::<u32>().write(sp);
    }
}

#[cfg(test)]
mod tests {
    use clrscope_recording::layout::instrument;
    use clrscope_recording::writer::{Keep, ProcessRecord};

    use super::*;

    /// A thread that sleeps in a hook can't be stopped, and a collection waits for all threads.
    #[test]
    fn while_the_runtime_stops_the_threads_there_is_a_chunk_for_each_without_a_wait() {
        let folder = tempfile::tempdir().expect("a folder");
        let process = ProcessRecord { pid: 7, mono_ns: 1, ..Default::default() };
        let writer = ProcessWriter::create(&folder.path().join("x.clrs.d"), &process).expect("a folder for the process");
        let limit = 256 << 20;
        let store = writer.create_events(instrument::FLOW, limit, Keep::Last).expect("a file").with_reserve(RESERVE);
        store.keep_ahead_at_least(4 << 20).expect("space");
        let ring = Ring::new(Box::leak(Box::new(writer)), store, HelperHandle::new(), Some(limit));

        while let Some(chunk) = ring.store.take(1, CHUNK, 1) {
            ring.store.finish(chunk);
        }
        assert!(ring.take_without_waiting(1, 1).is_none(), "a wait would do");
        let (shared, backed) = (ring.store.used(), ring.store.segment().committed());
        ring.suspends(true);
        while ring.store.used() + CHUNK <= backed {
            assert!(ring.take_without_waiting(1, 1).is_some(), "one of the reserve");
        }
        assert!(backed - shared >= 2 << 20, "{shared} of {backed} were for everybody");
        // One that is used again, although the ring is far from full.
        let chunk = ring.take_without_waiting(1, 1).expect("the oldest chunk");
        assert!(ring.store.used() <= backed && backed < ring.store.limit());
        ring.store.finish(chunk);
        ring.suspends(false);
        assert!(ring.take_without_waiting(1, 1).is_none());
        assert_eq!((ring.stalls(), ring.naps_in_suspensions()), ((0, 0), 0));
    }
}
