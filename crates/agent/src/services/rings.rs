//! Stores of the current recording that keep only recent records: threads that end return their
//! chunks to them.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use clrscope_recording::writer::{Chunk, EventStore};

/// The rings, each with the number of the instrument's data that it stores.
static RINGS: Mutex<Vec<(u32, &'static EventStore)>> = Mutex::new(Vec::new());
/// Numbers that this process has given so far.
static NUMBERS: AtomicU32 = AtomicU32::new(0);

fn rings() -> MutexGuard<'static, Vec<(u32, &'static EventStore)>> {
    RINGS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns a number that no data of this or an earlier recording has. Never 0. Threads keep state
/// of their own beyond the end of a recording, and know by the number what the state belongs to.
pub(crate) fn next_number() -> u32 {
    NUMBERS.fetch_add(1, Ordering::Relaxed) + 1
}

/// Adds the store of the data with this number, if it is a ring.
pub(crate) fn add(number: u32, store: &'static EventStore) {
    if store.is_ring() {
        rings().push((number, store));
    }
}

/// Returns a thread's chunk, which may be used again, to the ring of the data with this number.
/// Does nothing if there is no such ring.
pub(crate) fn give_back(number: u32, chunk: Chunk) {
    if let Some((_, ring)) = rings().iter().find(|(known, _)| *known == number) {
        ring.finish(chunk);
    }
}

/// Call it when the recording is over and its stores are not used any more.
pub(crate) fn let_go() {
    rings().clear();
}
