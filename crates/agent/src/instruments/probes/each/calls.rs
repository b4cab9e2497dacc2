//! Ring of the calls of probed methods. It gets a record when a call begins, and another when the
//! call ends.
//!
//! A call may still be active when the recording is over, and may end during a later recording of
//! the process. So each method has the number of the recording that it was made for, and writes to
//! no other ring. Writes that were in progress when the recording ended are complete when the
//! methods have their own code back, since the runtime stops all threads for that.

use std::sync::atomic::{AtomicU64, Ordering};

use clrscope_recording::layout::{chunk, instrument, probe_calls};
use clrscope_recording::writer::{Chunk, Keep};
use clrscope_agent_base::hooks::own;
use clrscope_agent_base::clock::ticks;
use clrscope_agent_base::helper::Task;
use clrscope_agent_base::memory::PublishedState;
use clrscope_agent_base::threads;

use crate::services::context::Context;
use crate::services::event_ring::{self, EventRing, RingLayout};

/// Most bytes of values of a record.
const MOST_VALUES: usize = 2048;

static CALLS: PublishedState<Calls> = PublishedState::nothing();
/// Recordings of calls so far.
static RECORDINGS: AtomicU64 = AtomicU64::new(0);

/// The calls of a recording.
pub(in crate::instruments::probes) struct Calls {
    ring: EventRing,
    pub(super) types_only: bool,
    /// Number that distinguishes the recording from others of the process.
    pub(super) recording: u64,
}

impl Calls {
    /// Publishes a ring with room for `bytes` bytes.
    ///
    /// # Errors
    /// A sentence for the user, when the file could not be made.
    pub(super) fn publish(context: &Context, bytes: u64, types_only: bool) -> Result<&'static Self, String> {
        let made = context.writer.create_events(instrument::PROBE_CALLS, bytes, Keep::Last);
        let store = made.map_err(|error| format!("no memory for calls: {error}"))?.with_reserve(event_ring::RESERVE);
        // At once, since the first call may come at once. A refusal is counted where a call finds
        // no place.
        let _ = store.keep_ahead_at_least(event_ring::AHEAD);
        let layout = RingLayout { chunk: own::PROBE_CHUNK, room: own::PROBE_ROOM, calls_in };
        let ring = EventRing::new(layout, context.writer, store, context.helper.clone(), Some(bytes));
        let recording = RECORDINGS.fetch_add(1, Ordering::Relaxed) + 1;
        Ok(CALLS.publish(Self { ring, types_only, recording }))
    }

    /// The ring that holds the calls.
    pub(in crate::instruments::probes) fn ring(&self) -> &EventRing {
        &self.ring
    }

    /// Task of the helper thread for the ring.
    pub(in crate::instruments::probes) fn task(&'static self) -> Box<dyn Task> {
        self.ring.task("probes", || ())
    }

    /// Returns the calls of a recording, if it is the current one. Valid until the next stop of all
    /// threads, so only for hooks.
    #[inline]
    pub(super) fn of_recording(recording: u64) -> Option<&'static Self> {
        CALLS.get().filter(|current| current.recording == recording)
    }

    /// Appends the begin of a call, with the values that `fill` writes. Returns the time of the
    /// begin. Safe in a hook.
    pub(super) fn begin(&self, method: u32, fill: Option<impl FnOnce(&mut [u8]) -> usize>) -> Option<u64> {
        let most = fill.as_ref().map_or(0, |_| MOST_VALUES);
        let record = threads::current()?;
        let Some(chunk) = self.ring.room_for(record, probe_calls::HEAD + most) else {
            self.ring.drop_event();
            return None;
        };
        // SAFETY: `room_for` found the room.
        let bytes = unsafe { values(chunk, probe_calls::HEAD, most, fill) };
        // The method's own time begins after ours.
        let now = ticks();
        // SAFETY: as above.
        unsafe { head(chunk, now, probe_calls::BEGIN | method, bytes) };
        let beside = bytes.next_multiple_of(probe_calls::HEAD);
        publish(chunk, probe_calls::HEAD + beside, beside);
        Some(now)
    }

    /// Appends the end of a call that began at the time `began`, with the values that `fill`
    /// writes. Safe in a hook.
    pub(super) fn end(&self, what: u32, now: u64, began: u64, fill: Option<impl FnOnce(&mut [u8]) -> usize>) {
        let most = fill.as_ref().map_or(0, |_| MOST_VALUES);
        let before = probe_calls::before_values(what);
        let Some(record) = threads::current() else { return };
        let Some(chunk) = self.ring.room_for(record, before + most) else { return self.ring.drop_event() };
        // SAFETY: `room_for` found the room for the head, the time of the begin and the values.
        let bytes = unsafe {
            let bytes = values(chunk, before, most, fill);
            head(chunk, now, what, bytes);
            let at = chunk.payload().add(chunk.used() + probe_calls::BEGAN).cast::<[u64; 2]>();
            at.write([began, 0]);
            bytes
        };
        let all = before + bytes.next_multiple_of(probe_calls::HEAD);
        publish(chunk, all, all);
    }

    /// In a forked child: releases all mappings. Async-signal-safe.
    pub(in crate::instruments::probes) fn detach_in_child(&self) {
        CALLS.withdraw();
        self.ring.store().segment().detach_in_child();
    }

    /// Call it when the recording is over. Calls that are about to write then use private memory of
    /// the process.
    pub(in crate::instruments::probes) fn outlive_recording(&self) {
        CALLS.withdraw();
        // SAFETY: no chunks are taken any more, since recording has stopped, and nothing reads
        // here.
        unsafe { self.ring.store().segment().outlive_recording() };
    }
}

/// Calls that began in a chunk.
fn calls_in(chunk: Chunk) -> u64 {
    let beside = chunk.u32(chunk::NON_CALL_BYTES).load(Ordering::Relaxed) as usize;
    (chunk.used().saturating_sub(beside) / probe_calls::HEAD) as u64
}

/// Lets `fill` write values `before` bytes behind the used part of the chunk; returns how many
/// bytes it wrote.
///
/// # Safety
/// There must be room for `before` and `most` bytes, and the chunk must be the calling thread's.
unsafe fn values(
    chunk: Chunk,
    before: usize,
    most: usize,
    fill: Option<impl FnOnce(&mut [u8]) -> usize>,
) -> usize {
    let Some(fill) = fill else { return 0 };
    let at = chunk.payload().wrapping_add(chunk.used() + before);
    // SAFETY: the caller's promise.
    fill(unsafe { std::slice::from_raw_parts_mut(at, most) }).min(most)
}

/// Writes the head of the next record.
///
/// # Safety
/// There must be room for the head, and the chunk must be the calling thread's.
unsafe fn head(chunk: Chunk, ticks: u64, what: u32, values: usize) {
    // SAFETY: the caller's promise; records are aligned to sixteen bytes, as chunks are.
    unsafe {
        let at = chunk.payload().add(chunk.used());
        at.add(probe_calls::TICKS).cast::<u64>().write(ticks);
        at.add(probe_calls::WHAT).cast::<u32>().write(what);
        at.add(probe_calls::VALUES).cast::<u32>().write(values as u32);
    }
}

/// Publishes `bytes` more bytes to readers; `beside` of them do not belong to the begin of a call.
fn publish(chunk: Chunk, bytes: usize, beside: usize) {
    // Only this thread writes there, so no locked instruction is needed.
    let so_far = chunk.u32(chunk::NON_CALL_BYTES).load(Ordering::Relaxed);
    chunk.u32(chunk::NON_CALL_BYTES).store(so_far + beside as u32, Ordering::Relaxed);
    chunk.u32(chunk::USED).store((chunk.used() + bytes) as u32, Ordering::Release);
}
