//! Counters of source lines, which the program's own code increments.
//!
//! Each thread has its own lane, so plain additions lose no counts. Threads beyond the number of
//! lanes share one lane.

use std::sync::atomic::{AtomicU64, Ordering};

use super::Chunk;
use super::fields::Fields;
use crate::layout::probe_lines as layout;
use crate::model::ProbedLine;

/// The lanes of one line in a chunk. The memory is never unmapped, so compiled code may hold
/// addresses of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LineLanes {
    first: *mut u8,
}

// SAFETY: all access goes through atomics.
unsafe impl Send for LineLanes {}
// SAFETY: as above.
unsafe impl Sync for LineLanes {}

impl LineLanes {
    /// The lanes at an address that compiled code passed.
    ///
    /// # Safety
    /// `first` must be the [`address`](Self::address) of lanes.
    #[must_use]
    #[inline]
    pub unsafe fn at(first: *mut u8) -> Self {
        Self { first }
    }

    /// Address of the first lane, for code that passes it back.
    #[must_use]
    pub fn address(self) -> u64 {
        self.first.expose_provenance() as u64
    }

    /// Address of a thread's counter. Only that thread adds to the counter, except that threads
    /// share one if no lane is free. `thread` identifies a living thread and is not 0. A few
    /// instructions, no lock; callable on any thread.
    #[must_use]
    #[inline]
    pub fn counter(self, thread: u64) -> *mut u8 {
        const OWN: usize = layout::LANES - 1;
        let begin = (thread.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize;
        let own = (0..OWN).map(|more| 1 + begin.wrapping_add(more) % OWN).find(|lane| self.is_of(*lane, thread));
        self.pointer_at(own.unwrap_or(0) * layout::LANE + layout::HITS)
    }

    /// Whether the lane belongs to the thread. Gives a free lane to the thread.
    #[inline]
    fn is_of(self, lane: usize, thread: u64) -> bool {
        let owner = self.pointer_at(lane * layout::LANE + layout::OWNER).cast::<u64>();
        // SAFETY: `lane` is below the number of lanes: a word of the record, aligned, mapped for
        // ever and only ever used as an atomic.
        let owner = unsafe { AtomicU64::from_ptr(owner) };
        match owner.load(Ordering::Relaxed) {
            0 => owner.compare_exchange(0, thread, Ordering::Relaxed, Ordering::Relaxed).is_ok(),
            other => other == thread,
        }
    }

    /// Withdraws the record: readers skip it. For methods whose code has no probe after all.
    pub fn withdraw(self) {
        self.head().u32(layout::TOKEN).store(0, Ordering::Relaxed);
    }

    /// Sets whether the probe was removed; its counts stay.
    pub fn set_removed(self, is_removed: bool) {
        self.head().u32(layout::REMOVED).store(u32::from(is_removed), Ordering::Relaxed);
    }

    /// Head of the record.
    fn head(self) -> Fields<{ layout::HEAD }> {
        // SAFETY: it lies in front of the lanes, in memory that is mapped for ever.
        unsafe { Fields::at(self.first.wrapping_sub(layout::HEAD)) }
    }

    #[inline]
    fn pointer_at(self, at: usize) -> *mut u8 {
        self.first.wrapping_add(at)
    }
}

impl Chunk {
    /// Appends a line with a count of zero, whatever the count in `line`, and publishes it; `None`
    /// if the chunk has no room. Only for the thread that took the chunk.
    pub fn append_line(self, line: &ProbedLine, mono_ns: u64) -> Option<LineLanes> {
        let at = self.used();
        if !self.append(&line.to_empty_bytes(), mono_ns) {
            return None;
        }
        // The record that was just written lies within the chunk. A chunk's bytes begin at a
        // multiple of a lane's, and hold records of such multiples and nothing else.
        Some(LineLanes { first: self.payload().wrapping_add(at + layout::HEAD) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::writer::{EventStore, Keep};

    fn add(counter: *mut u8) {
        // SAFETY: the address of a counter. As compiled code does it: two steps, between which
        // others may add.
        let counter = unsafe { AtomicU64::from_ptr(counter.cast()) };
        counter.store(counter.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    #[test]
    fn threads_that_add_in_two_steps_lose_nothing_while_each_has_a_lane() {
        const HITS: u64 = 20_000;
        let folder = tempfile::tempdir().expect("a folder");
        let store = EventStore::create_slow(&folder.path().join("lines.seg"), 1 << 20, Keep::First).expect("a store");
        let chunk = store.allocate_chunk(0, 64 << 10, 1).expect("a chunk");
        let line = |file: &str| ProbedLine { token: 7, line: 3, file: file.into(), ..ProbedLine::default() };
        let lanes = chunk.append_line(&line("Cart.cs"), 2).expect("room");
        let other = chunk.append_line(&line("Till.cs"), 2).expect("room");
        assert_eq!(lanes.address() % layout::LANE as u64, 0);
        std::thread::scope(|scope| {
            for thread in 1..layout::LANES as u64 {
                scope.spawn(move || (0..HITS).for_each(|_| add(lanes.counter(thread << 12))));
            }
        });
        let late: Vec<_> = (100..110_u64).map(|thread| lanes.counter(thread << 12)).collect();
        assert!(
            late.iter().all(|counter| *counter == lanes.pointer_at(layout::HITS)),
            "no lane is left: one is shared"
        );
        assert_eq!(lanes.counter(7 << 12), lanes.counter(7 << 12));
        late.into_iter().for_each(add);
        add(other.counter(1 << 12));
        // SAFETY: what was published of a chunk that no thread writes to.
        let bytes = unsafe { std::slice::from_raw_parts(chunk.payload(), chunk.used()) };
        let hits = || ProbedLine::all(bytes).map(|line| (line.file, line.hits, line.is_removed)).collect::<Vec<_>>();
        let all = (layout::LANES as u64 - 1) * HITS + 10;
        assert_eq!(hits(), [("Cart.cs".to_owned(), all, false), ("Till.cs".to_owned(), 1, false)]);
        lanes.withdraw();
        other.set_removed(true);
        assert_eq!(hits(), [("Till.cs".to_owned(), 1, true)]);
    }
}
