//! The table in which a call finds the record for its thread and path. The search needs no lock and
//! no heap memory.
//!
//! The table uses open addressing, in pages that the system backs when they are touched. An entry
//! is the address of a record, with a few bits of its key's hash in the upper bits; the record
//! contains its key. Entries are not removed during a recording, and one thread at a time inserts
//! them.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use clrscope_recording::writer::CallerCell;
use clrscope_agent_base::os::memory::zeroed_words;
use clrscope_agent_stacks::stacks::mix_address;

/// Places of the table. A power of two.
const PLACES: usize = 1 << 20;
/// Most records in the table. This is half the number of places, so that searches are short.
pub(super) const MOST_RECORDS: usize = PLACES / 2;
/// Most places that are searched for one record.
const STEPS: usize = 64;
/// Bits of an address in an entry: a program's own addresses have no more.
const ADDRESS_BITS: u32 = 48;
const ADDRESS: u64 = (1 << ADDRESS_BITS) - 1;

/// The places, which the next recording of the process reuses.
static WORDS: OnceLock<Box<[AtomicU64]>> = OnceLock::new();

/// The table of records.
pub(super) struct Table(&'static [AtomicU64]);

/// Identifies a record by its thread and its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key {
    /// Serial number of the thread.
    pub(super) thread: u32,
    pub(super) path: u64,
}

impl Key {
    #[inline]
    fn hash(self) -> u64 {
        mix_address(self.path, self.thread as usize)
    }
}

impl Table {
    /// Clears the process's table and returns it. No other recording may use it at this time.
    pub(super) fn cleared() -> Self {
        let words = WORDS.get_or_init(|| zeroed_words(PLACES));
        // Untouched pages stay untouched.
        words.iter().filter(|word| word.load(Ordering::Relaxed) != 0).for_each(|word| word.store(0, Ordering::Relaxed));
        Self(words)
    }

    /// The record with this key, if there is one.
    #[inline]
    pub(super) fn find(&self, key: Key) -> Option<CallerCell> {
        let hash = key.hash();
        for place in self.places(hash) {
            let entry = place.load(Ordering::Acquire);
            if entry == 0 {
                return None;
            }
            if entry >> ADDRESS_BITS == hash >> ADDRESS_BITS {
                // SAFETY: the address that `insert` was given.
                let cell = unsafe { CallerCell::at((entry & ADDRESS) as usize) }?;
                if cell.is_of(key.thread, key.path) {
                    return Some(cell);
                }
            }
        }
        None
    }

    /// Inserts the record with this key. Returns whether there was a place. Only one thread at a
    /// time may call this.
    pub(super) fn insert(&self, key: Key, cell: CallerCell) -> bool {
        let (hash, address) = (key.hash(), cell.address() as u64);
        let free = self.places(hash).find(|place| place.load(Ordering::Relaxed) == 0).filter(|_| address <= ADDRESS);
        let entry = address | hash & !ADDRESS;
        free.inspect(|place| place.store(entry, Ordering::Release)).is_some()
    }

    #[inline]
    fn places(&self, hash: u64) -> impl Iterator<Item = &'static AtomicU64> + use<> {
        let (all, first) = (self.0, hash as usize);
        let mask = all.len().wrapping_sub(1);
        (0..STEPS).map_while(move |step| all.get(first.wrapping_add(step) & mask))
    }
}

#[cfg(test)]
mod tests {
    use clrscope_recording::model::ProbeCaller;
    use clrscope_recording::writer::{EventStore, Keep};

    use super::*;

    #[test]
    fn records_are_found_by_thread_and_path_until_no_place_is_free() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = EventStore::create_slow(&folder.path().join("callers.seg"), 1 << 20, Keep::First).expect("a store");
        let chunk = store.allocate_chunk(0, 64 << 10, 1).expect("a chunk");
        let table = Table(Box::leak(zeroed_words(128)));
        let mut made = Vec::new();
        for (thread, path) in (0..2).flat_map(|thread| (0..40).map(move |path| (thread, path * 64))) {
            let record = ProbeCaller { thread, path, ..ProbeCaller::default() };
            let (key, cell) = (Key { thread, path }, chunk.append_caller(&record, 1).expect("room"));
            assert_eq!(table.find(key), None);
            assert!(table.insert(key, cell), "{key:?}");
            made.push((key, cell));
        }
        assert!(made.iter().all(|(key, cell)| table.find(*key) == Some(*cell)));
        assert_eq!(table.find(Key { thread: 2, path: 0 }), None);
        let (key, cell) = made[0];
        let more = (0..128).filter(|_| table.insert(key, cell)).count();
        assert!(more < 128 - made.len() + 1 && table.find(Key { thread: 9, path: 9 }).is_none(), "{more}");
    }
}
