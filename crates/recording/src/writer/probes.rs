//! Counters and times of probed methods, to which their calls add.

use std::sync::atomic::{AtomicU64, Ordering};

use super::Chunk;
use super::fields::Fields;
use crate::layout::probes;
use crate::model::ProbedMethod;

/// The lanes of one method in a chunk. The memory is never unmapped, so compiled code may hold
/// addresses of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MethodLanes {
    first: *mut u8,
    /// Number of lanes, a power of two.
    count: u32,
}

// SAFETY: all access goes through atomics.
unsafe impl Send for MethodLanes {}
// SAFETY: as above.
unsafe impl Sync for MethodLanes {}

impl MethodLanes {
    /// The lanes of a method, from their address and number, which compiled code passes.
    ///
    /// # Safety
    /// Both must come from [`address`](Self::address) and [`count`](Self::count) of the same lanes.
    #[must_use]
    #[inline]
    pub unsafe fn at(first: *mut u8, count: u32) -> Self {
        Self { first, count }
    }

    /// Address of the first lane, for code that passes it back.
    #[must_use]
    pub fn address(self) -> u64 {
        self.first.expose_provenance() as u64
    }

    /// Number of lanes.
    #[must_use]
    pub fn count(self) -> u32 {
        self.count
    }

    /// Counts the beginning of a call. A few instructions, no lock; callable on any thread.
    #[inline]
    pub fn begin(self) {
        self.add(self.lane(), probes::CALLS, 1);
    }

    /// Counts the end of a call that took `ticks` ticks. A few instructions, no lock; callable on
    /// any thread.
    #[inline]
    pub fn end(self, ticks: u64, has_failed: bool) {
        let lane = self.lane();
        self.add(lane, probes::TICKS, ticks);
        self.add(lane, probes::BUCKETS + probes::bucket(ticks) * 8, 1);
        if has_failed {
            self.add(lane, probes::FAILED, 1);
        }
        let longest = self.counter(lane, probes::LONGEST);
        if longest.load(Ordering::Relaxed) < ticks {
            longest.fetch_max(ticks, Ordering::Relaxed);
        }
    }

    /// Counts the ticks of a nested call: a call that [ended](Self::end) within another call of the
    /// same method on the same thread.
    #[inline]
    pub fn add_nested(self, ticks: u64) {
        self.add(self.lane(), probes::NESTED, ticks);
    }

    /// Withdraws the method's record: readers skip it. For methods whose code has no probes after
    /// all.
    pub fn withdraw(self) {
        self.head().u32(probes::TOKEN).store(0, Ordering::Relaxed);
    }

    /// Sets whether the method's probes were removed; their counts stay.
    pub fn set_removed(self, is_removed: bool) {
        self.head().u32(probes::REMOVED).store(u32::from(is_removed), Ordering::Relaxed);
    }

    /// Head of the record.
    fn head(self) -> Fields<{ probes::HEAD }> {
        // SAFETY: it lies in front of the lanes, in memory that is mapped for ever.
        unsafe { Fields::at(self.first.wrapping_sub(probes::HEAD)) }
    }

    /// Number of the lane for the calling thread, derived from the address of its stack, which is
    /// cheap to get.
    #[inline]
    fn lane(self) -> usize {
        let here = 0_u8;
        let place = ((&raw const here).addr() >> 16) as u64;
        let mixed = place.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        mixed as usize & (self.count.wrapping_sub(1)) as usize
    }

    #[inline]
    fn add(self, lane: usize, at: usize, more: u64) {
        self.counter(lane, at).fetch_add(more, Ordering::Relaxed);
    }

    #[inline]
    fn counter<'a>(self, lane: usize, at: usize) -> &'a AtomicU64 {
        let counter = self.first.wrapping_add(lane * probes::LANE + at).cast::<u64>();
        // SAFETY: `lane` is below the number of lanes, a power of two, and `at` a multiple of eight
        // within a lane: a counter of the record, aligned, mapped for ever and only ever used as an
        // atomic.
        unsafe { AtomicU64::from_ptr(counter) }
    }
}

impl Chunk {
    /// Appends a method with all numbers set to 0, whatever the numbers in `method`, and publishes
    /// it; `None` if the chunk has no room. `lanes` is rounded to a power of two. Only for the
    /// thread that took the chunk.
    pub fn append_probed(self, method: &ProbedMethod, lanes: u32, mono_ns: u64) -> Option<MethodLanes> {
        let count = lanes.clamp(1, probes::MOST_LANES as u32).next_power_of_two();
        let at = self.used();
        if !self.append(&method.to_empty_bytes(count), mono_ns) {
            return None;
        }
        // The record that was just written lies within the chunk. A chunk's bytes begin at a
        // multiple of eight, and hold records of a multiple of eight bytes and nothing else.
        Some(MethodLanes { first: self.payload().wrapping_add(at + probes::HEAD), count })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::writer::{EventStore, Keep};

    #[test]
    fn calls_of_several_threads_are_all_counted_and_are_in_the_file() {
        const CALLS: u64 = 10_000;
        let folder = tempfile::tempdir().expect("a folder");
        let store = EventStore::create_slow(&folder.path().join("probes.seg"), 1 << 20, Keep::First).expect("a store");
        let chunk = store.allocate_chunk(0, 64 << 10, 1).expect("a chunk");
        let method = |name: &str| ProbedMethod { token: 7, name: name.into(), ..ProbedMethod::default() };
        let lanes = chunk.append_probed(&method("first"), 3, 2).expect("room");
        let second = chunk.append_probed(&method("second"), 1, 2).expect("room");
        assert_eq!((lanes.count(), second.count()), (4, 1));
        std::thread::scope(|scope| {
            for thread in 0..4 {
                scope.spawn(move || {
                    for call in 0..CALLS {
                        lanes.begin();
                        lanes.end(100 * thread, call % 2 == 0);
                    }
                });
            }
        });
        second.begin();
        second.add_nested(7);
        assert!(chunk.append_probed(&method("third"), 64, 4).is_none());
        // SAFETY: what was published of a chunk that no thread writes to.
        let bytes = unsafe { std::slice::from_raw_parts(chunk.payload(), chunk.used()) };
        let all: Vec<_> = ProbedMethod::all(bytes).collect();
        let first = &all[0];
        assert_eq!((first.calls, first.failed, first.ticks, first.longest), (4 * CALLS, 2 * CALLS, 600 * CALLS, 300));
        for ticks in [0, 100, 200, 300] {
            assert_eq!(first.buckets[probes::bucket(ticks)], CALLS, "{ticks}");
        }
        assert_eq!(
            (all[1].name.as_str(), all[1].calls, all[1].nested, all[1].buckets.iter().sum()),
            ("second", 1, 7, 0)
        );
        lanes.withdraw();
        second.set_removed(true);
        let removed = || ProbedMethod::all(bytes).map(|method| (method.is_removed, method.calls)).collect::<Vec<_>>();
        assert_eq!(removed(), [(true, 1)]);
        second.set_removed(false);
        assert_eq!(removed(), [(false, 1)]);
    }
}
