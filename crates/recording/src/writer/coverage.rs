//! Counters of lines and branches, which the program's own code increments.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use super::Chunk;
use super::fields::Fields;
use crate::layout::coverage;
use crate::model::{CounterSums, MethodHits};

/// The counters of one method in a chunk. The memory is never unmapped, so compiled code may hold
/// addresses of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MethodCounters {
    /// Head of the method's record.
    head: Fields<{ coverage::HEAD }>,
    first: *mut u8,
    /// Bytes of one counter.
    size: usize,
    count: usize,
}

// SAFETY: all access goes through atomics.
unsafe impl Send for MethodCounters {}
// SAFETY: as above.
unsafe impl Sync for MethodCounters {}

impl MethodCounters {
    /// Number of the counters.
    #[must_use]
    pub fn len(self) -> usize {
        self.count
    }

    /// Whether there are no counters.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.count == 0
    }

    /// Address of the counter with this number, for code that increments it.
    ///
    /// # Panics
    /// When there are fewer counters.
    #[must_use]
    pub fn address(self, number: usize) -> u64 {
        self.at(number).expose_provenance() as u64
    }

    /// Whether the counter with this number is no longer 0.
    ///
    /// # Panics
    /// When there are fewer counters.
    #[must_use]
    pub fn has_fired(self, number: usize) -> bool {
        let at = self.at(number);
        // SAFETY: a counter of that many bytes, aligned, mapped for ever; the program's code uses
        // plain loads and stores of the same size, which the processor does not tear.
        unsafe {
            match self.size {
                1 => AtomicU8::from_ptr(at).load(Ordering::Relaxed) != 0,
                _ => AtomicU64::from_ptr(at.cast()).load(Ordering::Relaxed) != 0,
            }
        }
    }

    /// Withdraws the method's record: readers skip it. For methods whose code has no counters after
    /// all.
    pub fn withdraw(self) {
        self.head.u32(coverage::TOKEN).store(0, Ordering::Relaxed);
    }

    fn at(self, number: usize) -> *mut u8 {
        assert!(number < self.count, "counter {number} of {}", self.count);
        self.first.wrapping_add(number * self.size)
    }
}

impl Chunk {
    /// Appends a method with these counters, all set to zero, and publishes it; ignores the hits in
    /// `method`. `None` if the chunk has no room. Only for the thread that took the chunk.
    pub fn append_method(self, method: &MethodHits, sums: &CounterSums, mono_ns: u64) -> Option<MethodCounters> {
        let (count, size) = (sums.counters(), method.counter_bytes());
        let at = self.used();
        let bytes = method.to_bytes_with(sums, at);
        if !self.append(&bytes, mono_ns) {
            return None;
        }
        // The record that was just written lies within the chunk, with its counters at the end. A
        // chunk's bytes begin at a multiple of eight, and hold records of a multiple of eight bytes
        // and nothing else.
        let record = self.payload().wrapping_add(at);
        let first = record.wrapping_add(bytes.len() - (count * size).next_multiple_of(8));
        // SAFETY: the record's head, in memory that is mapped for ever.
        let head = unsafe { Fields::at(record) };
        Some(MethodCounters { head, first, size, count })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::writer::{EventStore, Keep};

    #[test]
    fn counters_are_in_the_file_and_say_whether_they_fired() {
        let folder = tempfile::tempdir().expect("a folder");
        let store =
            EventStore::create_slow(&folder.path().join("counters.seg"), 1 << 20, Keep::First).expect("a store");
        let chunk = store.allocate_chunk(0, 8192, 1).expect("a chunk");
        let method = |counted| MethodHits { token: 7, points: 2, branches: 1, counted, ..MethodHits::default() };
        let sums = CounterSums::new(3, [[0], [1], [2]]);
        let counted = chunk.append_method(&method(true), &sums, 2).expect("room");
        let covered = chunk.append_method(&method(false), &sums, 3).expect("room");
        for counters in [counted, covered] {
            let add = std::ptr::with_exposed_provenance_mut::<u8>(counters.address(1) as usize);
            // SAFETY: the address of a counter.
            unsafe { AtomicU8::from_ptr(add).store(1, Ordering::Relaxed) };
            assert_eq!([0, 1, 2].map(|number| counters.has_fired(number)), [false, true, false]);
            assert_eq!(counters.address(0) % coverage::ALIGNMENT as u64, 0);
        }
        assert!(chunk.append_method(&method(true), &CounterSums::new(9_000, [[0], [1], [2]]), 4).is_none());
        // SAFETY: what was published of a chunk that no thread writes to.
        let bytes = unsafe { std::slice::from_raw_parts(chunk.payload(), chunk.used()) };
        let hits: Vec<_> = MethodHits::all(bytes).map(|method| method.hits).collect();
        assert_eq!(hits, [[0, 1, 0], [0, 1, 0]]);
        counted.withdraw();
        assert_eq!(MethodHits::all(bytes).filter(|method| method.counted).count(), 0);
    }
}
