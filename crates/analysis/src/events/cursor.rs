//! Walks the records of a thread with one chunk in memory at a time, and merges threads by time.

use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::mem;

use clrscope_recording::events::{Record, RecordPlace, Records};
use clrscope_recording::model::EventChunk;

/// Number of threads whose chunks are in memory at once while threads are merged.
const MOST_LOADED: usize = 256;

/// Walks the records of one thread.
#[derive(Debug)]
pub(crate) struct Cursor<'a> {
    chunks: Vec<&'a EventChunk>,
    /// Index of the current chunk.
    chunk: usize,
    /// Place in the chunk, right before the current record.
    place: RecordPlace,
    bytes: Option<Cow<'a, [u8]>>,
}

impl<'a> Cursor<'a> {
    /// Starts before the first record.
    pub(crate) fn new(chunks: Vec<&'a EventChunk>) -> Self {
        Self { chunks, chunk: 0, place: RecordPlace::default(), bytes: None }
    }

    /// Bytes of the current chunk, loaded if necessary; `None` after the last chunk.
    pub(super) fn chunk(&mut self) -> Option<&[u8]> {
        let chunk = self.chunks.get(self.chunk)?;
        Some(self.bytes.get_or_insert_with(|| chunk.bytes.load()))
    }

    /// Number of the current chunk.
    pub(super) fn number(&self) -> usize {
        self.chunk
    }

    /// Goes to the next chunk.
    pub(super) fn next_chunk(&mut self) {
        (self.chunk, self.place, self.bytes) = (self.chunk + 1, RecordPlace::default(), None);
    }

    /// The current record and the records after it in its chunk; `None` at the end of the thread's
    /// records. Moves to the next chunk when a chunk has no more records.
    pub(crate) fn records(&mut self) -> Option<Records<'_>> {
        loop {
            let place = self.place;
            if Records::resume(self.chunk()?, place).next().is_some() {
                break;
            }
            self.next_chunk();
        }
        let place = self.place;
        Some(Records::resume(self.chunk()?, place))
    }

    /// The current record.
    pub(crate) fn record(&mut self) -> Option<Record<'_>> {
        self.records()?.next()
    }

    /// Moves past the current record.
    pub(crate) fn advance(&mut self) {
        let place = self.place;
        let Some(bytes) = self.chunk() else { return };
        let mut records = Records::resume(bytes, place);
        records.next();
        self.place = records.read_position(bytes);
    }

    /// Frees the bytes of the chunk until they are needed again.
    pub(crate) fn unload(&mut self) {
        self.bytes = None;
    }
}

/// A stream that can be merged with others by time.
pub(crate) trait Stream {
    /// Time of the next step, in nanoseconds since the start of the run; `None` at the stream's
    /// end.
    fn time_ns(&mut self) -> Option<u64>;

    /// Frees memory that the stream can read again from the recording.
    fn unload(&mut self);
}

/// Merges streams by time: calls `step` with the stream whose next step is the earliest. `step`
/// must advance that stream by one step. At equal times the first of `streams` goes first. Stops
/// when `step` returns false.
pub(crate) fn in_turns<S: Stream>(streams: &mut [S], mut step: impl FnMut(&mut S) -> bool) {
    let mut turns = BinaryHeap::new();
    for (at, stream) in streams.iter_mut().enumerate() {
        turns.extend(stream.time_ns().map(|time_ns| Reverse((time_ns, at))));
        stream.unload();
    }
    let (mut loaded, mut is_loaded) = (0, vec![false; streams.len()]);
    while let Some(Reverse((_, at))) = turns.pop() {
        let stream = &mut streams[at];
        loaded += usize::from(!mem::replace(&mut is_loaded[at], true));
        let until = turns.peek().map(|Reverse(next)| *next);
        let next = loop {
            if !step(stream) {
                return;
            }
            match stream.time_ns() {
                Some(time_ns) if until.is_some_and(|until| until < (time_ns, at)) => break Some(time_ns),
                Some(_) => {}
                None => break None,
            }
        };
        turns.extend(next.map(|time_ns| Reverse((time_ns, at))));
        if next.is_none() || loaded > MOST_LOADED {
            stream.unload();
            (loaded, is_loaded[at]) = (loaded - 1, false);
        }
    }
}
