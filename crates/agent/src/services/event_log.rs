//! Log of an instrument that records events. Each thread writes its records to a sequence of chunks
//! of its own.
//!
//! Writing takes no lock and asks neither the runtime nor the disk. So every callback may write,
//! also during a collection. A write waits only if events come faster than the helper thread can
//! back memory for them, and then for a bounded time. Names for a record are queried before the
//! record is written.

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use clr_profiler::PerThread;
use clrscope_agent_base::helper::{HelperHandle, Task};
use clrscope_agent_base::hooks;
use clrscope_agent_base::memory::Patience;
use clrscope_agent_base::recording_lifetime::keep;
use clrscope_agent_base::reused::PerThreadPool;
use clrscope_agent_base::threads;
use clrscope_recording::events::{Encoder, Field, Kind, Records, ShortFields, ShortRecord, Tag, Value};
use clrscope_recording::model::LossReason;
use clrscope_recording::writer::{Chunk, ChunkCell, EventStore, ProcessWriter, ThreadRecord, monotonic_ns};

use crate::services::context::Context;
use crate::services::field_cache::FieldCache;
use crate::services::rings;

/// A thread's first chunk; each further one is twice as large, up to [`LARGEST_CHUNK`].
const FIRST_CHUNK: u32 = 4 << 10;
const LARGEST_CHUNK: u32 = 64 << 10;

/// The records of one instrument.
pub(crate) struct EventLog {
    writer: &'static ProcessWriter,
    store: EventStore,
    start_ns: u64,
    patience: Patience,
    tracks: &'static PerThread<Track>,
    /// Tells this log from the logs of earlier recordings, whose tracks it reuses.
    number: u32,
    /// In a ring, the chunk of the records that later records refer to.
    dictionary: Mutex<Option<Chunk>>,
}

static TRACKS: PerThreadPool<Track> = PerThreadPool::new(Track::retire);

/// Call it when the recording is over and its logs are not used any more.
pub(crate) fn let_go() {
    TRACKS.give_back_all();
}

/// Chunk that a thread writes to. Only that thread uses it. The atomics only satisfy `Sync`.
#[derive(Default)]
struct Track {
    /// Number of the log that the thread wrote to.
    log: AtomicU32,
    /// Address of the thread's record; null without one.
    thread: AtomicPtr<u8>,
    serial: AtomicU32,
    next_bytes: AtomicU32,
    last_ns: AtomicU64,
    chunk: ChunkCell,
    cache: OnceLock<Box<FieldCache>>,
}

impl EventLog {
    /// Creates the log's file for `instrument`, of at most `limit` bytes.
    ///
    /// # Errors
    /// A sentence for the user, when the file or the thread key could not be made.
    pub(crate) fn create(context: &Context, instrument: &str, limit: u64) -> Result<&'static Self, String> {
        let kept = context.kept_events;
        let made = context.writer.create_events(instrument, kept.limit(limit), kept.keep());
        let store = made.map_err(|error| format!("no memory for {instrument}: {error}"))?;
        Self::create_in(context.writer, context.helper.clone(), context.start_ns, instrument, store)
    }

    fn create_in(
        writer: &'static ProcessWriter,
        helper: HelperHandle,
        start_ns: u64,
        instrument: &str,
        store: EventStore,
    ) -> Result<&'static Self, String> {
        let tracks = TRACKS.borrow_next().map_err(|error| format!("no thread key for {instrument}: {error}"))?;
        let number = rings::next_number();
        let (patience, dictionary) = (Patience::new(helper), Mutex::new(None));
        let log = keep(Self { writer, store, start_ns, patience, tracks, number, dictionary });
        rings::add(number, &log.store);
        Ok(log)
    }

    /// Writes a record. A record without room is counted as lost. Empty strings and null references
    /// are left out.
    pub(crate) fn write(&self, kind: Kind, fields: &[(Tag, Value<'_>)]) {
        if kind.is_dictionary() && self.store.is_ring() {
            self.write_dictionary(kind, fields);
        } else {
            self.write_with(Some(monotonic_ns()), kind, |encoder| put_all(encoder, fields));
        }
    }

    /// Writes a record where a ring does not overwrite it. The lock is held only while the record
    /// is written.
    fn write_dictionary(&self, kind: Kind, fields: &[(Tag, Value<'_>)]) {
        let mut dictionary = self.dictionary.lock().unwrap_or_else(PoisonError::into_inner);
        let now = monotonic_ns();
        // The time of such a record is never used.
        let fill = |encoder: &mut Encoder<'_>| put_all(encoder, fields);
        if dictionary.is_some_and(|chunk| put(chunk, now, 0, kind, &fill)) {
            return;
        }
        let take = || self.store.allocate_dictionary_chunk(LARGEST_CHUNK as usize, monotonic_ns());
        *dictionary = take().or_else(|| self.patience.wait(&self.store, LARGEST_CHUNK as usize, take));
        if !dictionary.is_some_and(|chunk| put(chunk, now, 0, kind, &fill)) {
            self.writer.state().lose(LossReason::EventDropped, 1, now);
        }
    }

    /// Writes a record whose fields `fill` adds; `fill` may be called twice. If `now` is `None`, or
    /// earlier than the previous record of the thread, the record gets the time of that previous
    /// record. Returns whether the record was written.
    #[inline]
    pub(crate) fn write_with(&self, now: Option<u64>, kind: Kind, fill: impl Fn(&mut Encoder<'_>)) -> bool {
        self.on_track(|track| self.write_on(track, now, kind, &fill)) == Some(true)
    }

    /// Like [`write_with`](Self::write_with), but also writes while recording is stopped. The
    /// thread must be known already. For facts about the thread that must be known when recording
    /// starts again.
    pub(crate) fn write_while_stopped(&self, now: u64, kind: Kind, fill: impl Fn(&mut Encoder<'_>)) -> bool {
        threads::known()
            .is_some_and(|record| self.on_track_of(Some(record), |track| self.write_on(track, Some(now), kind, &fill)))
    }

    #[inline]
    fn write_on(&self, track: &Track, now: Option<u64>, kind: Kind, fill: &impl Fn(&mut Encoder<'_>)) -> bool {
        let last = track.last_ns.load(Ordering::Relaxed);
        // Records store the time since the previous record: two clocks may differ by a little.
        let now = now.unwrap_or(self.start_ns).max(last);
        track.last_ns.store(now, Ordering::Relaxed);
        // A chunk's first record stores the time since the start.
        let before = |chunk: Chunk| if chunk.used() == 0 { self.start_ns } else { last };
        let put_in = |chunk| put(chunk, now, now.saturating_sub(before(chunk)), kind, fill);
        track.chunk.get().is_some_and(put_in) || self.write_in_next(track, now, kind, fill)
    }

    /// Writes a record of a few encoded bytes, without a time of its own.
    #[inline]
    pub(crate) fn write_short(&self, kind: Kind, fields: ShortFields) {
        self.write_cached(kind, |_| fields);
    }

    /// Like [`write_short`](Self::write_short), with fields from the thread's [`FieldCache`].
    #[inline]
    pub(crate) fn write_cached(&self, kind: Kind, fields: impl FnOnce(&FieldCache) -> ShortFields) {
        let left = self.on_track(|track| {
            let fields = fields(track.cache());
            let record = ShortRecord::new(kind, fields);
            (!track.chunk.get().is_some_and(|chunk| chunk.append_short(record))).then_some(fields)
        });
        if let Some(Some(fields)) = left {
            self.write_slowly(kind, fields);
        }
    }

    #[cold]
    fn write_slowly(&self, kind: Kind, fields: ShortFields) {
        self.write_with(None, kind, |encoder| {
            encoder.short(fields);
        });
    }

    /// Calls `act` with this thread's cache and returns its result. `None` once recording has
    /// ended.
    #[inline]
    pub(crate) fn cached<R>(&self, act: impl FnOnce(&FieldCache) -> R) -> Option<R> {
        self.on_track(|track| act(track.cache()))
    }

    /// Calls `act` with the chunk that this thread writes to. `None` once recording has ended.
    #[inline]
    fn on_track<R>(&self, act: impl FnOnce(&Track) -> R) -> Option<R> {
        let record = threads::current();
        if record.is_none() && hooks::is_stopped() {
            return None;
        }
        Some(self.on_track_of(record, act))
    }

    /// Calls `act` with the chunk that the thread of this record writes to; the thread is the
    /// calling one.
    #[inline]
    fn on_track_of<R>(&self, record: Option<ThreadRecord>, act: impl FnOnce(&Track) -> R) -> R {
        self.tracks.with(|track| {
            let is_same = track.log.load(Ordering::Relaxed) == self.number
                && track.thread.load(Ordering::Relaxed) == record.map_or(ptr::null_mut(), ThreadRecord::address);
            if !is_same {
                track.begin(self.number, record);
            }
            act(track)
        })
    }

    #[cold]
    fn write_in_next(&self, track: &Track, now: u64, kind: Kind, fill: &impl Fn(&mut Encoder<'_>)) -> bool {
        let delta = now.saturating_sub(self.start_ns);
        // A thread's first chunks may be too small for its first record.
        while let Some(chunk) = self.next_chunk(track, now) {
            track.chunk.set(Some(chunk));
            if put(chunk, now, delta, kind, fill) {
                return true;
            }
            if chunk.room() > Encoder::MOST {
                break;
            }
        }
        self.writer.state().lose(LossReason::EventDropped, 1, monotonic_ns());
        false
    }

    fn next_chunk(&self, track: &Track, now: u64) -> Option<Chunk> {
        track.chunk.get().into_iter().for_each(|full| self.store.finish(full));
        track.chunk.set(None);
        let bytes = track.next_bytes.load(Ordering::Relaxed).clamp(FIRST_CHUNK, LARGEST_CHUNK);
        let serial = track.serial.load(Ordering::Relaxed);
        let take = || self.store.allocate_chunk(serial, bytes as usize, now);
        track.next_bytes.store(bytes * 2, Ordering::Relaxed);
        let taken = take().or_else(|| self.patience.wait(&self.store, bytes as usize, take));
        taken.or_else(|| self.take_oldest(serial, now))
    }

    /// In a ring without room, takes the oldest chunk before its time: the records in it are lost.
    fn take_oldest(&self, serial: u32, now: u64) -> Option<Chunk> {
        self.store.take_oldest(serial, now, |chunk| {
            // SAFETY: nothing writes to a finished chunk, and so many of its bytes were written.
            let bytes = unsafe { std::slice::from_raw_parts(chunk.payload(), chunk.used()) };
            let records = Records::new(bytes).count() as u64;
            self.writer.state().lose(LossReason::EventDropped, records, now);
        })
    }

    /// Task of the helper thread for the log.
    pub(crate) fn task(&'static self) -> Box<dyn Task> {
        Box::new(KeepAhead(self))
    }

    /// In a forked child: releases the file. Async-signal-safe.
    pub(crate) fn detach_in_child(&self) {
        self.store.segment().detach_in_child();
    }
}

impl Track {
    #[inline]
    fn cache(&self) -> &FieldCache {
        self.cache.get_or_init(Box::default)
    }

    /// The thread ends.
    fn retire(&self) {
        if let Some(chunk) = self.chunk.get() {
            rings::give_back(self.log.load(Ordering::Relaxed), chunk);
        }
        self.chunk.set(None);
    }

    /// Starts with an empty cache, for a thread that now has another record.
    #[cold]
    fn begin(&self, log: u32, record: Option<ThreadRecord>) {
        self.retire();
        if self.log.swap(log, Ordering::Relaxed) != log
            && let Some(cache) = self.cache.get()
        {
            cache.clear();
        }
        self.thread.store(record.map_or(ptr::null_mut(), ThreadRecord::address), Ordering::Relaxed);
        self.serial.store(record.map_or(0, ThreadRecord::serial), Ordering::Relaxed);
        self.next_bytes.store(0, Ordering::Relaxed);
        self.last_ns.store(0, Ordering::Relaxed);
        self.chunk.set(None);
    }
}

fn put_all(encoder: &mut Encoder<'_>, fields: &[(Tag, Value<'_>)]) {
    for &(tag, value) in fields {
        encoder.put(Field { tag, value });
    }
}

#[inline]
fn put(chunk: Chunk, now: u64, delta: u64, kind: Kind, fill: &impl Fn(&mut Encoder<'_>)) -> bool {
    chunk.append_with(now, |free| {
        let mut encoder = Encoder::new(free, kind, delta);
        fill(&mut encoder);
        let (bytes, whole) = encoder.finish();
        whole.then_some(bytes.len())
    })
}

struct KeepAhead(&'static EventLog);

impl Task for KeepAhead {
    fn tick(&mut self, _now_ns: u64) {
        // A refusal has its effect when an event finds no room, and is counted there.
        let _ = self.0.store.keep_ahead();
    }

    fn write_out(&mut self) {
        // A failed write is tried again at the next round.
        let _ = self.0.store.segment().write_out();
    }

    fn stop(&mut self) -> bool {
        // A `write` under way ends soon and does no harm.
        hooks::stopped_flag().store(1, std::sync::atomic::Ordering::Release);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clrscope_recording::events::OwnedRecord;
    use clrscope_recording::layout::instrument;
    use clrscope_recording::writer::{Keep, ProcessRecord};

    /// A log in a process of its own, with its start time.
    fn log_in(recording: &std::path::Path, keep: Keep) -> (&'static EventLog, u64) {
        let start_ns = monotonic_ns();
        let process = ProcessRecord {
            pid: std::process::id(),
            parent_pid: 1,
            command: vec!["logs".to_owned()],
            runtime: ".NET".to_owned(),
            processors: 1,
            mono_ns: start_ns,
            unix_ns: 0,
            ticks: 0,
            ..ProcessRecord::default()
        };
        let writer: &'static ProcessWriter =
            Box::leak(Box::new(ProcessWriter::create(recording, &process).expect("a folder for the process")));
        let store = writer.create_events(instrument::EXCEPTIONS, 1 << 20, keep).expect("a store");
        let log = EventLog::create_in(writer, HelperHandle::new(), start_ns, instrument::EXCEPTIONS, store);
        (log.expect("a log"), start_ns)
    }

    #[test]
    fn a_record_with_an_earlier_time_than_the_one_before_shifts_none_behind_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let recording = folder.path().join("earlier.clrs.d");
        let (log, start_ns) = log_in(&recording, Keep::First);
        for after in [1_000, 900, 1_050] {
            log.write_with(Some(start_ns + after), Kind::EXCEPTION_CATCHER_LEAVE, |_| ());
        }
        let read = clrscope_recording::open(&recording).expect("a recording");
        let chunks = &read.processes[0].events.first().expect("the log").chunks;
        let records: Vec<_> = chunks.iter().flat_map(|chunk| OwnedRecord::all(&chunk.bytes.load())).collect();
        let times: Vec<u64> = records.iter().map(|record| record.record().time_ns).collect();
        assert_eq!(times, [1_000, 1_000, 1_050]);
    }

    #[test]
    fn a_first_record_larger_than_the_first_chunk_is_written() {
        let folder = tempfile::tempdir().expect("a folder");
        let recording = folder.path().join("large.clrs.d");
        let (log, _) = log_in(&recording, Keep::First);
        let message = "x".repeat(3 * FIRST_CHUNK as usize);
        log.write(Kind::EXCEPTION_THROWN, &[(Tag::MESSAGE, message.as_str().into())]);
        log.write(Kind::EXCEPTION_CATCHER_LEAVE, &[]);
        // Larger than any record may be: dropped and counted, and the next one is there again.
        let endless = "y".repeat(Encoder::MOST);
        log.write(Kind::EXCEPTION_THROWN, &[(Tag::MESSAGE, endless.as_str().into())]);
        log.write(Kind::EXCEPTION_CATCHER_LEAVE, &[]);

        let read = clrscope_recording::open(&recording).expect("a recording");
        let arena = read.processes[0].events.first().expect("the log");
        let kinds = [Kind::EXCEPTION_THROWN, Kind::EXCEPTION_CATCHER_LEAVE, Kind::EXCEPTION_CATCHER_LEAVE];
        let records: Vec<_> = arena.chunks.iter().flat_map(|chunk| OwnedRecord::all(&chunk.bytes.load())).collect();
        assert_eq!(records.iter().map(|record| record.record().kind).collect::<Vec<_>>(), kinds);
        assert_eq!(records[0].record().text(Tag::MESSAGE), Some(message.as_str()));
        let lost = &read.processes[0].losses;
        assert!(lost.iter().any(|loss| (loss.reason, loss.count) == (LossReason::EventDropped, 1)), "{lost:?}");
    }
}
