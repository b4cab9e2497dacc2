//! Where instruments that tell of events write them: records in chunks, one row of chunks per thread.
//!
//! Writing takes no lock that another thread holds for long, asks neither the runtime nor the disk, and
//! so may be done in every callback, during a collection too. Whoever needs a name for a record asks the
//! runtime before he writes.

use std::sync::{Mutex, PoisonError};

use clr_profiler::PerThread;
use clrscope_recording::events::{Encoder, Field, Kind, Tag, Value};
use clrscope_recording::model::LossReason;
use clrscope_recording::writer::{Chunk, EventStore, Keep, ProcessWriter, ThreadRecord, monotonic_ns};

use crate::helper::Task;
use crate::{hooks, threads};

/// A thread's first chunk; each further one is twice as large, up to [`LARGEST_CHUNK`].
const FIRST_CHUNK: usize = 4 << 10;
const LARGEST_CHUNK: usize = 64 << 10;

/// The records of one instrument.
pub(crate) struct EventLog {
    writer: &'static ProcessWriter,
    store: EventStore,
    start_ns: u64,
    tracks: PerThread<Mutex<Track>>,
}

/// Where a thread writes.
#[derive(Default)]
struct Track {
    serial: u32,
    chunk: Option<Chunk>,
    next_bytes: usize,
    last_ns: u64,
}

impl EventLog {
    /// Makes the log's file for `instrument`, at most `limit` bytes.
    ///
    /// # Errors
    /// In words, when file or thread key can't be had.
    pub(crate) fn create(
        writer: &'static ProcessWriter,
        start_ns: u64,
        instrument: &str,
        limit: u64,
    ) -> Result<&'static Self, String> {
        let store = writer
            .create_events(instrument, limit, Keep::First)
            .map_err(|error| format!("no memory for {instrument}: {error}"))?;
        let tracks = PerThread::new(Mutex::<Track>::default, |_| ())
            .map_err(|error| format!("no thread key for {instrument}: {error}"))?;
        // Callbacks come even after the end, so it stays for ever.
        Ok(Box::leak(Box::new(Self { writer, store, start_ns, tracks })))
    }

    /// Writes a record; what finds no room is counted. Empty texts and null things are left out.
    pub(crate) fn write(&self, kind: Kind, fields: &[(Tag, Value<'_>)]) {
        self.write_at(Some(monotonic_ns()), kind, fields);
    }

    /// Writes a record of which nobody needs the time: it gets that of the one before it on the thread.
    pub(crate) fn write_untimed(&self, kind: Kind, fields: &[(Tag, Value<'_>)]) {
        self.write_at(None, kind, fields);
    }

    fn write_at(&self, now: Option<u64>, kind: Kind, fields: &[(Tag, Value<'_>)]) {
        if hooks::is_stopped() {
            return;
        }
        let serial = threads::current().map_or(0, ThreadRecord::serial);
        let written = self.tracks.with(|track| {
            let mut track = track.lock().unwrap_or_else(PoisonError::into_inner);
            if track.serial != serial {
                *track = Track { serial, ..Track::default() };
            }
            let now = now.unwrap_or(track.last_ns.max(self.start_ns));
            self.append(&mut track, now, kind, fields)
        });
        if !written {
            self.writer.state().lose(LossReason::EventDropped, 1, monotonic_ns());
        }
    }

    fn append(&self, track: &mut Track, now: u64, kind: Kind, fields: &[(Tag, Value<'_>)]) -> bool {
        let delta = now.saturating_sub(track.last_ns);
        if track.chunk.is_some_and(|chunk| put(chunk, now, delta, kind, fields)) {
            track.last_ns = now;
            return true;
        }
        let bytes = track.next_bytes.clamp(FIRST_CHUNK, LARGEST_CHUNK);
        track.chunk = self.store.take(track.serial, bytes, now);
        track.next_bytes = bytes * 2;
        track.last_ns = now;
        track.chunk.is_some_and(|chunk| put(chunk, now, now.saturating_sub(self.start_ns), kind, fields))
    }

    /// What the helper thread does for it.
    pub(crate) fn task(&'static self) -> Box<dyn Task> {
        Box::new(KeepAhead(self))
    }

    /// In a forked child: lets go of the file. Async-signal-safe.
    pub(crate) fn detach_in_child(&self) {
        self.store.segment().detach_in_child();
    }
}

fn put(chunk: Chunk, now: u64, delta: u64, kind: Kind, fields: &[(Tag, Value<'_>)]) -> bool {
    chunk.append_with(now, |free| {
        let mut encoder = Encoder::new(free, kind, delta);
        for &(tag, value) in fields {
            encoder.put(Field { tag, value });
        }
        let (bytes, whole) = encoder.finish();
        whole.then_some(bytes.len())
    })
}

struct KeepAhead(&'static EventLog);

impl Task for KeepAhead {
    fn tick(&mut self, _now_ns: u64) {
        // A refusal shows when an event finds no room, and is counted there.
        let _ = self.0.store.keep_ahead();
    }

    fn slow_tick(&mut self, _now_ns: u64) {}

    fn write_out(&mut self) {
        // What fails now is tried again at the next round.
        let _ = self.0.store.segment().write_out();
    }

    fn stop(&mut self) -> bool {
        // What is under way in `write` ends soon and does no harm.
        hooks::stopped_flag().store(1, std::sync::atomic::Ordering::Release);
        true
    }
}
