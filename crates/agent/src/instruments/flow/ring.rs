//! The ring of events, and the code that writes them.

use std::sync::atomic::Ordering;

use clrscope_recording::layout::{chunk, flow};
use clrscope_recording::writer::{Chunk, EventStore, ProcessWriter, ThreadRecord};
use clrscope_agent_base::hooks::own;
use clrscope_agent_base::clock;
use clrscope_agent_base::helper::HelperHandle;
use clrscope_agent_base::memory::PublishedState;
use clrscope_agent_base::threads;

use crate::services::event_ring::{EventRing, RingLayout};

/// Most bytes of values that an event may have.
pub(super) const MOST_VALUES: usize = 2048;

static RING: PublishedState<EventRing> = PublishedState::nothing();

/// The ring; `None` before `flow` has started.
pub(crate) fn ring() -> Option<&'static EventRing> {
    RING.get()
}

/// The ring and the calling thread's record; `None` unless both exist.
pub(super) fn here() -> Option<(&'static EventRing, ThreadRecord)> {
    Some((ring()?, threads::current()?))
}

/// Forgets the ring, in a forked child. Async-signal-safe.
pub(crate) fn withdraw() {
    RING.withdraw();
}

/// Makes a ring known to the hooks. `limit` is its size in bytes; `None` if all events are kept.
pub(super) fn publish(
    writer: &'static ProcessWriter,
    store: EventStore,
    helper: HelperHandle,
    limit: Option<u64>,
) -> &'static EventRing {
    let layout = RingLayout { chunk: own::FLOW_CHUNK, room: own::FLOW_ROOM, calls_in };
    RING.publish(EventRing::new(layout, writer, store, helper, limit))
}

/// Begins and ends of calls in a chunk.
fn calls_in(chunk: Chunk) -> u64 {
    let beside = chunk.u32(chunk::NON_CALL_BYTES).load(Ordering::Relaxed) as usize;
    (chunk.used().saturating_sub(beside) / flow::BYTES) as u64
}

impl EventRing {
    /// Appends an event. Only the thread that owns the record may call this.
    pub(in crate::instruments::flow) fn append(&self, record: ThreadRecord, what: u32, sp: usize) {
        self.append_with(record, what, sp, 0, |_| 0);
    }

    /// Appends an event with at most `most` bytes of values: `fill` writes them and returns their
    /// number. Readers see the event and its values together or not at all.
    pub(in crate::instruments::flow) fn append_with(
        &self,
        record: ThreadRecord,
        what: u32,
        sp: usize,
        most: usize,
        fill: impl FnOnce(&mut [u8]) -> usize,
    ) {
        let Some(chunk) = self.room_for(record, 2 * flow::BYTES + most) else {
            self.drop_event();
            return;
        };
        let used = chunk.used();
        let ticks = clock::ticks();
        // SAFETY: `room_for` found the room, the chunk is the calling thread's, and chunks are
        // aligned.
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
