//! Ring of chunks that holds events of calls. Each thread writes to a chunk of its own, and the
//! ring keeps the last events.
//!
//! A thread that appends an event is in a hook, in cooperative mode. So nothing here allocates. A
//! wait is bounded, and does not happen while the runtime suspends the threads.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use clrscope_agent_base::helper::{HelperHandle, Task};
use clrscope_agent_base::hooks;
use clrscope_agent_base::hooks::stopped_flag;
use clrscope_agent_base::memory::Patience;
use clrscope_recording::model::LossReason;
use clrscope_recording::writer::{Chunk, EventStore, ProcessWriter, ThreadRecord, monotonic_ns};

/// Least number of bytes that are backed ahead of need. The helper thread may not run for a while,
/// and a busy thread fills a few hundred MB in a second.
pub(crate) const AHEAD: usize = 16 << 20;
/// Most bytes that are backed for threads that the runtime suspends, as these may not wait. During
/// a suspension, four threads that do nothing but call methods fill a megabyte.
pub(crate) const RESERVE: usize = 32 << 20;
/// Bytes of a chunk.
pub(crate) const CHUNK: usize = 32 << 10;
/// A ring has at least this many chunks, so that one thread can't fill it alone.
const CHUNKS_LEAST: u64 = 64;

/// Fields of a thread's record that a ring uses, and a function that counts the calls in a chunk.
pub(crate) struct RingLayout {
    /// `u64`: address of the chunk that the thread writes its events to.
    pub(crate) chunk: usize,
    /// `u32`: bytes of events that the chunk has room for; 0 if there is no chunk.
    pub(crate) room: usize,
    /// Number of calls whose events a chunk holds, to count overwritten calls.
    pub(crate) calls_in: fn(Chunk) -> u64,
}

/// State that all threads share. It is created once and never freed.
pub(crate) struct EventRing {
    layout: RingLayout,
    writer: &'static ProcessWriter,
    store: EventStore,
    patience: Patience,
    chunk_bytes: usize,
    /// Nanoseconds that hooks waited for memory.
    stalled_ns: AtomicU64,
    stalls: AtomicU64,
    /// The runtime is suspending the threads, and waits for each thread that is in a hook.
    is_suspending: AtomicBool,
    /// Number of times that hooks slept during a suspension.
    naps_in_suspensions: AtomicU64,
}

/// A chunk without room, for a thread that has no chunk yet.
#[repr(align(64))]
struct EmptyChunk([u64; 8]);

static EMPTY_CHUNK: EmptyChunk = EmptyChunk([0; 8]);

/// The value of [`RingLayout::chunk`] for a thread without a chunk; hooks read its `USED`.
fn empty_chunk() -> u64 {
    EMPTY_CHUNK.0.as_ptr() as u64
}

impl EventRing {
    /// Creates a ring in a store. `limit` is its size in bytes; `None` if all events are kept.
    pub(crate) fn new(
        layout: RingLayout,
        writer: &'static ProcessWriter,
        store: EventStore,
        helper: HelperHandle,
        limit: Option<u64>,
    ) -> Self {
        let share = limit.map_or(u64::MAX, |limit| limit / CHUNKS_LEAST);
        Self {
            layout,
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

    /// Task of the helper thread for the ring. `instrument` is the name that remarks give. The task
    /// calls `forget` when recording starts again.
    pub(crate) fn task(&'static self, instrument: &'static str, forget: fn()) -> Box<dyn Task> {
        let (stalled_ns, naps_in_suspensions, stop_rounds) = Default::default();
        Box::new(Keeper { ring: self, instrument, forget, stalled_ns, naps_in_suspensions, stop_rounds })
    }

    /// Number of times that hooks waited for memory, and their total wait in nanoseconds.
    pub(crate) fn stalls(&self) -> (u64, u64) {
        (self.stalls.load(Ordering::Relaxed), self.stalled_ns.load(Ordering::Relaxed))
    }

    /// Number of times that hooks slept while the runtime waited for them to return.
    pub(crate) fn naps_in_suspensions(&self) -> u64 {
        self.naps_in_suspensions.load(Ordering::Relaxed)
    }

    /// Notes whether the runtime is suspending the threads.
    pub(crate) fn suspends(&self, is_suspending: bool) {
        self.is_suspending.store(is_suspending, Ordering::Release);
    }

    /// Call it when the calling thread is new. Its first event will request a chunk.
    pub(crate) fn begin(&self, record: ThreadRecord) {
        record.u64(self.layout.chunk).store(empty_chunk(), Ordering::Relaxed);
        record.u32(self.layout.room).store(0, Ordering::Relaxed);
    }

    /// Call it when the calling thread ends, or its chunk is full.
    pub(crate) fn finish(&self, record: ThreadRecord) {
        record.u32(self.layout.room).store(0, Ordering::Relaxed);
        let address = record.u64(self.layout.chunk).swap(empty_chunk(), Ordering::Relaxed);
        if address != empty_chunk() && address != 0 {
            // SAFETY: only `refill` stores other addresses, those of chunks.
            let chunk = unsafe { Chunk::from_address(address as *mut u8) };
            chunk.publish(chunk.used(), monotonic_ns());
            self.store.finish(chunk);
        }
    }

    /// A chunk of the thread with at least this many free bytes; a new one if the current chunk is
    /// full. `None` if there is no room. Only the thread that owns the record may call this.
    pub(crate) fn room_for(&self, record: ThreadRecord, bytes: usize) -> Option<Chunk> {
        let room = record.u32(self.layout.room).load(Ordering::Relaxed) as usize;
        let address = record.u64(self.layout.chunk).load(Ordering::Relaxed);
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

    /// Counts an event that was lost for lack of room.
    pub(crate) fn drop_event(&self) {
        self.writer.state().lose(LossReason::EventDropped, 1, monotonic_ns());
    }

    fn refill(&self, record: ThreadRecord) -> Option<Chunk> {
        if hooks::is_stopped() {
            return None;
        }
        let now = monotonic_ns();
        let serial = record.serial();
        let chunk = self
            .store
            .allocate_chunk(serial, self.chunk_bytes, now)
            .or_else(|| self.take_without_waiting(serial, now))
            .or_else(|| self.wait_for_fresh(serial, now))
            .or_else(|| self.take_oldest(serial, now))?;
        record.u64(self.layout.chunk).store(chunk.address() as u64, Ordering::Relaxed);
        record.u32(self.layout.room).store(chunk.room() as u32, Ordering::Relaxed);
        Some(chunk)
    }

    /// While the runtime suspends the threads: takes a chunk of the reserve or, without one, the
    /// oldest chunk, although fresh chunks are on the way. A thread that sleeps in a hook can't be
    /// suspended, and all other threads stand still for it.
    fn take_without_waiting(&self, serial: u32, now: u64) -> Option<Chunk> {
        if !self.is_suspending.load(Ordering::Acquire) {
            return None;
        }
        self.store.take_reserved(serial, self.chunk_bytes, now).or_else(|| self.take_oldest(serial, now))
    }

    /// Reuses the oldest chunk, and counts the calls whose events it held.
    fn take_oldest(&self, serial: u32, now: u64) -> Option<Chunk> {
        self.store.take_oldest(serial, now, |chunk| {
            self.writer.state().lose(LossReason::RingOverwritten, (self.layout.calls_in)(chunk), now);
        })
    }

    /// Waits for an unused chunk before a chunk is reused too early. Does not wait where the limit
    /// is reached.
    fn wait_for_fresh(&self, serial: u32, now: u64) -> Option<Chunk> {
        if !self.patience.would_wait(&self.store, self.chunk_bytes) {
            return None;
        }
        let take = || {
            let now = monotonic_ns();
            let found = self.store.allocate_chunk(serial, self.chunk_bytes, now);
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

/// The helper thread's part: it backs memory ahead of need, and reports where that was not enough.
struct Keeper {
    ring: &'static EventRing,
    /// Name of the instrument in remarks.
    instrument: &'static str,
    /// Called when recording starts again: state that threads keep of calls that ended unseen must
    /// be dropped.
    forget: fn(),
    stalled_ns: u64,
    naps_in_suspensions: u64,
    stop_rounds: u32,
}

impl Task for Keeper {
    fn tick(&mut self, now: u64) {
        // A refusal is counted where an event finds no place.
        let _ = self.ring.store().keep_ahead_at_least(AHEAD);
        self.report_stalls(now);
    }

    fn write_out(&mut self) {
        // Tried again at the next round.
        let _ = self.ring.store().segment().write_out();
    }

    fn stop(&mut self) -> bool {
        // A hook that was under way may still take a chunk: repeat until none is.
        stopped_flag().store(1, Ordering::SeqCst);
        let threads = self.ring.writer.threads();
        for record in (0..threads.len()).filter_map(|index| threads.record(index)) {
            record.u32(self.ring.layout.room).store(0, Ordering::SeqCst);
        }
        self.stop_rounds += 1;
        self.stop_rounds > 10
    }

    /// Nothing to do here: threads take new chunks by themselves.
    fn start_again(&mut self, _now: u64) {
        self.stop_rounds = 0;
        (self.forget)();
    }
}

impl Keeper {
    /// Reports how long writers waited, and how often the runtime waited for writers, whenever a
    /// number has doubled.
    fn report_stalls(&mut self, now: u64) {
        let (stalls, stalled_ns) = self.ring.stalls();
        let naps = self.ring.naps_in_suspensions();
        if stalled_ns > self.stalled_ns.saturating_mul(2) || naps > self.naps_in_suspensions.saturating_mul(2) {
            (self.stalled_ns, self.naps_in_suspensions) = (stalled_ns, naps);
            let ms = stalled_ns as f64 / 1e6;
            let mut text = format!("{} waited for memory {stalls} times, {ms:.1} ms altogether", self.instrument);
            if naps > 0 {
                text += &format!("; {naps} naps kept the runtime from stopping the threads");
            }
            self.ring.writer.note(now, &text);
        }
    }
}

#[cfg(test)]
mod tests {
    use clrscope_agent_base::hooks::own;
    use clrscope_recording::layout::instrument;
    use clrscope_recording::writer::{Keep, ProcessRecord};

    use super::*;

    /// A thread that sleeps in a hook can't be suspended, and a collection waits for all threads.
    #[test]
    fn while_the_runtime_stops_the_threads_there_is_a_chunk_for_each_without_a_wait() {
        let folder = tempfile::tempdir().expect("a folder");
        let process = ProcessRecord { pid: 7, mono_ns: 1, ..Default::default() };
        let writer =
            ProcessWriter::create(&folder.path().join("x.clrs.d"), &process).expect("a folder for the process");
        let limit = 256 << 20;
        let store = writer.create_events(instrument::FLOW, limit, Keep::Last).expect("a file").with_reserve(RESERVE);
        store.keep_ahead_at_least(4 << 20).expect("space");
        let layout = RingLayout { chunk: own::FLOW_CHUNK, room: own::FLOW_ROOM, calls_in: |_| 0 };
        let ring = EventRing::new(layout, Box::leak(Box::new(writer)), store, HelperHandle::new(), Some(limit));

        while let Some(chunk) = ring.store.allocate_chunk(1, CHUNK, 1) {
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
