//! Room in the recording for records to which the program's own code adds.

use std::sync::{Mutex, PoisonError};

use clrscope_recording::layout::chunk;
use clrscope_recording::writer::{Chunk, EventStore, Segment, monotonic_ns};

use crate::os::signals;

/// A store of such records. Room is asked for when a module comes, never in a hook.
pub struct RecordRoom {
    store: EventStore,
    /// Held while room is asked for and taken, so that no thread takes what another has asked for.
    asking: Mutex<()>,
}

impl RecordRoom {
    /// Creates room in a store.
    pub fn new(store: EventStore) -> Self {
        Self { store, asking: Mutex::default() }
    }

    /// A chunk with room for records of so many bytes; `None` where there is none. Waits for the
    /// disk.
    pub fn chunk(&self, bytes: usize) -> Option<Chunk> {
        let bytes = bytes + chunk::HEAD;
        let _asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        // A refusal shows when nothing is there to be taken.
        signals::with_all_blocked(|| _ = self.store.back(bytes));
        self.store.allocate_chunk(0, bytes, monotonic_ns())
    }

    /// The memory that the records lie in.
    pub fn segment(&self) -> &Segment {
        self.store.segment()
    }
}
