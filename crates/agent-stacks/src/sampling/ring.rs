//! The ring into which signal handlers write samples: of fixed size, without locks, with many
//! writers and one reader.
//!
//! A record is a sequence of words that begins with its length. The length is stored last, so the
//! reader finds only complete records. The reader leaves zeros behind.

use std::sync::atomic::{AtomicU64, Ordering};

use clrscope_agent_base::os::memory::zeroed_words;

/// The ring, a buffer of words.
pub(super) struct Ring {
    words: Box<[AtomicU64]>,
    /// Number of words handed out so far.
    head: AtomicU64,
    /// Number of words read so far.
    tail: AtomicU64,
    lost: AtomicU64,
}

/// Reserved room for a record that is being written.
pub(super) struct Slot<'a> {
    ring: &'a Ring,
    start: u64,
    words: u64,
    next: u64,
}

impl Ring {
    /// Creates a ring of this many words, which must be a power of two. The system backs them when
    /// they are used.
    pub(super) fn new(words: usize) -> Self {
        assert!(words.is_power_of_two(), "places are found by a mask");
        Self { words: zeroed_words(words), head: AtomicU64::new(0), tail: AtomicU64::new(0), lost: AtomicU64::new(0) }
    }

    fn word(&self, at: u64) -> &AtomicU64 {
        &self.words[at as usize & (self.words.len() - 1)]
    }

    /// Reserves room for a record of this many words in addition to its length. `None` if the ring
    /// is full, which is counted. Async-signal-safe.
    pub(super) fn reserve(&self, words: usize) -> Option<Slot<'_>> {
        let words = words as u64 + 1;
        let fits = |head: u64| {
            let used = head.wrapping_sub(self.tail.load(Ordering::Acquire));
            (used + words <= self.words.len() as u64).then_some(head.wrapping_add(words))
        };
        let start = self.head.fetch_update(Ordering::AcqRel, Ordering::Relaxed, fits);
        if start.is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
        start.ok().map(|start| Slot { ring: self, start, words, next: start.wrapping_add(1) })
    }

    /// Reads the next record into `into`. Returns whether there was one. Only one thread may call
    /// this.
    pub(super) fn read(&self, into: &mut Vec<u64>) -> bool {
        into.clear();
        let tail = self.tail.load(Ordering::Relaxed);
        let words = self.word(tail).load(Ordering::Acquire);
        if words == 0 || words > self.words.len() as u64 {
            return false;
        }
        into.extend((1..words).map(|at| self.word(tail.wrapping_add(at)).load(Ordering::Relaxed)));
        (0..words).for_each(|at| self.word(tail.wrapping_add(at)).store(0, Ordering::Relaxed));
        self.tail.store(tail.wrapping_add(words), Ordering::Release);
        true
    }

    /// Number of records for which there was no room since the last call.
    pub(crate) fn take_lost(&self) -> u64 {
        self.lost.swap(0, Ordering::Relaxed)
    }
}

impl Slot<'_> {
    /// Appends a word to the record. Words beyond the reserved room are ignored.
    pub(super) fn push(&mut self, word: u64) {
        if self.next.wrapping_sub(self.start) < self.words {
            self.ring.word(self.next).store(word, Ordering::Relaxed);
            self.next = self.next.wrapping_add(1);
        }
    }
}

impl Drop for Slot<'_> {
    /// Makes the record visible to the reader.
    fn drop(&mut self) {
        self.ring.word(self.start).store(self.words, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_out_as_they_went_in_and_a_full_ring_counts() {
        let ring = Ring::new(16);
        let write = |words: &[u64]| {
            let slot = ring.reserve(words.len());
            slot.map(|mut slot| words.iter().for_each(|&word| slot.push(word))).is_some()
        };
        let mut read = Vec::new();
        for round in 0..100 {
            assert!(write(&[round, 0, 7]) && write(&[round]));
            assert!(ring.read(&mut read) && read == [round, 0, 7]);
            assert!(ring.read(&mut read) && read == [round]);
            assert!(!ring.read(&mut read) && read.is_empty());
        }
        assert!(write(&[1; 15]) && !write(&[]) && !write(&[2; 3]));
        assert_eq!((ring.take_lost(), ring.take_lost()), (2, 0));
        assert!(ring.read(&mut read) && write(&[]));
    }

    #[test]
    fn many_writers_lose_nothing_that_is_not_counted() {
        let ring = Ring::new(1 << 8);
        let (mut seen, mut read) = ([0_u64; 4], Vec::new());
        let done = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for writer in 0..4_u64 {
                let (ring, done) = (&ring, &done);
                scope.spawn(move || {
                    for number in 1..=2_000_u64 {
                        if let Some(mut slot) = ring.reserve(1 + number as usize % 5) {
                            (0..1 + number % 5).for_each(|_| slot.push(writer << 32 | number));
                        }
                    }
                    done.fetch_add(1, Ordering::Release);
                });
            }
            loop {
                let all_done = done.load(Ordering::Acquire) == 4;
                while ring.read(&mut read) {
                    assert!(
                        read.iter().all(|word| *word == read[0]) && read.len() as u64 == 1 + (read[0] & 0xFFFF) % 5
                    );
                    seen[(read[0] >> 32) as usize] += 1;
                }
                if all_done {
                    break;
                }
            }
        });
        assert_eq!(seen.iter().sum::<u64>() + ring.take_lost(), 8_000);
    }
}
