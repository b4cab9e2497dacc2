//! Chunks of event records made by hand.

use crate::events::{Encoder, Field, Kind, Tag, Value};
use crate::model::EventChunk;

/// A chunk of records, one microsecond apart.
#[derive(Debug, Clone)]
pub struct HandmadeChunk {
    thread: u32,
    sequence: u64,
    bytes: Vec<u8>,
    delta_ns: u64,
}

impl HandmadeChunk {
    /// An empty chunk of the thread with index `thread`. Its first record has the time `start_ns`.
    #[must_use]
    pub fn new(thread: u32, sequence: u64, start_ns: u64) -> Self {
        Self { thread, sequence, bytes: Vec::new(), delta_ns: start_ns }
    }

    /// Appends a record with the fields that fit into 512 bytes.
    #[must_use]
    pub fn put(mut self, kind: Kind, fields: &[(Tag, Value<'_>)]) -> Self {
        let mut buffer = [0; 512];
        let mut encoder = Encoder::new(&mut buffer, kind, self.delta_ns);
        for &(tag, value) in fields {
            encoder.put(Field { tag, value });
        }
        self.bytes.extend_from_slice(encoder.finish().0);
        self.delta_ns = 1_000;
        self
    }

    /// Makes the time of the next record `delta_ns` nanoseconds later than the last one's.
    #[must_use]
    pub fn after(mut self, delta_ns: u64) -> Self {
        self.delta_ns = delta_ns;
        self
    }

    /// The chunk as a reader returns it.
    #[must_use]
    pub fn finish(self) -> EventChunk {
        EventChunk { thread: self.thread, sequence: self.sequence, bytes: self.bytes.into() }
    }
}
