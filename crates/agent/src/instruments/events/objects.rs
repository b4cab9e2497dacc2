//! Counts objects per class during a collection, without allocating.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Most classes. A power of two.
const SLOTS: usize = 1 << 16;
/// Places that are searched for one class before its objects count as not placed.
const PROBES: usize = 64;

/// Number of objects of each class. Several threads of the collector may count at a time.
pub(crate) struct ClassCounts {
    slots: Box<[Slot]>,
    overflow: AtomicU64,
}

#[derive(Default)]
struct Slot {
    class: AtomicUsize,
    count: AtomicU64,
}

impl ClassCounts {
    pub(crate) fn new() -> Self {
        Self { slots: (0..SLOTS).map(|_| Slot::default()).collect(), overflow: AtomicU64::new(0) }
    }

    /// Counts one object.
    pub(crate) fn count(&self, class: usize) {
        let start = (class >> 3).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (64 - SLOTS.trailing_zeros());
        let place = (0..PROBES).map(|step| &self.slots[(start + step) % SLOTS]).find(|slot| slot.is_for(class));
        let counter = place.map_or(&self.overflow, |slot| &slot.count);
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// Passes the counts to `visit`, the class with most objects first, and resets them to 0.
    /// Returns the number of objects that could not be counted for lack of room. Must not run while
    /// other threads count.
    pub(crate) fn drain(&self, mut visit: impl FnMut(usize, u64)) -> u64 {
        let taken = |slot: &Slot| (slot.class.swap(0, Ordering::Relaxed), slot.count.swap(0, Ordering::Relaxed));
        let mut found: Vec<_> = self.slots.iter().map(taken).filter(|&(_, count)| count > 0).collect();
        found.sort_unstable_by_key(|&(class, count)| (std::cmp::Reverse(count), class));
        found.into_iter().for_each(|(class, count)| visit(class, count));
        self.overflow.swap(0, Ordering::Relaxed)
    }
}

impl Slot {
    /// Whether the slot belongs to the class; takes a free slot for the class.
    fn is_for(&self, class: usize) -> bool {
        match self.class.load(Ordering::Relaxed) {
            0 => match self.class.compare_exchange(0, class, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => true,
                Err(other) => other == class,
            },
            other => other == class,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_object_is_counted_once_by_any_number_of_threads() {
        let counts = ClassCounts::new();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..30_000_usize).for_each(|n| counts.count(0x7000 + n % 300 * 8)));
            }
        });
        counts.count(0x9000);
        let mut found = Vec::new();
        assert_eq!(counts.drain(|class, count| found.push((class, count))), 0);
        assert_eq!((found.len(), found[0], found[300]), (301, (0x7000, 400), (0x9000, 1)));
        counts.drain(|class, _| panic!("{class} counted twice"));
    }

    #[test]
    fn more_classes_than_there_is_room_for_are_said() {
        let counts = ClassCounts::new();
        (1..=SLOTS * 2).for_each(|n| counts.count(n * 8));
        let mut placed = 0;
        let lost = counts.drain(|_, count| placed += count);
        assert_eq!(placed + lost, SLOTS as u64 * 2);
        assert!(lost >= SLOTS as u64);
    }
}
