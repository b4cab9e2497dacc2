//! Room in the recording for records that the program's own code extends.

use std::sync::{Mutex, PoisonError};

use clrscope_recording::layout::chunk;
use clrscope_recording::writer::{Chunk, EventStore, Segment, monotonic_ns};

use crate::os::signals;

/// A store of records that the program's own code extends. Room is requested when a module is
/// loaded, never in a hook.
pub struct RecordRoom {
    store: EventStore,
    /// Held while room is requested and taken, so that no thread takes the room of another one.
    asking: Mutex<()>,
}

impl RecordRoom {
    /// Creates the room, in this store.
    pub fn new(store: EventStore) -> Self {
        Self { store, asking: Mutex::default() }
    }

    /// Takes a chunk with room for records of this many bytes; `None` if there is no room. Waits
    /// for the disk.
    pub fn chunk(&self, bytes: usize) -> Option<Chunk> {
        let bytes = bytes + chunk::HEAD;
        let _asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        // A refusal shows when no chunk can be taken.
        signals::with_all_blocked(|| _ = self.store.back(bytes));
        self.store.allocate_chunk(0, bytes, monotonic_ns())
    }

    /// The memory that holds the records.
    pub fn segment(&self) -> &Segment {
        self.store.segment()
    }
}
