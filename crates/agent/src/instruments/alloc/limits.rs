//! Limits of the instrument's own tables. Their bytes are counted, and kept within a fixed part of
//! the instrument's limit.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};

/// Tables outside the recording may take one part in this many of the instrument's limit.
const PART: u64 = 4;

/// Bytes of memory for a remembered path. The table is at least three quarters full half of the
/// time.
pub(super) const BYTES_OF_A_PATH: usize = 32;
/// Bytes of memory for an object that is followed, including its handle in the runtime.
pub(super) const BYTES_OF_AN_OBJECT: usize = 64;

/// Bytes of all [`CountedList`]s.
static LISTS: AtomicU64 = AtomicU64::new(0);

/// Limits of the instrument's tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limits {
    /// Most bytes of the tables in which threads find their sums. The few entries that each thread
    /// starts with do not count.
    pub(super) lists: u64,
    /// Most paths that are remembered.
    pub(super) paths: usize,
    /// Most bytes of stacks that wait to be looked up.
    pub(super) waiting: usize,
    /// Most objects that are followed at a time.
    pub(super) followed: usize,
}

/// Least number of paths and objects: enough for a program's last moments.
const LEAST: usize = 16;

impl Limits {
    /// Returns the limits of the tables for an instrument whose limit is `max_bytes`.
    pub(super) fn from_max_bytes(max_bytes: u64) -> Self {
        let all = max_bytes / PART;
        let items = |part: u64, bytes: usize, most: usize| ((part / bytes as u64) as usize).clamp(LEAST, most);
        Self {
            lists: all / 2,
            paths: items(all / 8, BYTES_OF_A_PATH, 1 << 20),
            waiting: (all / 8) as usize,
            followed: items(all / 4, BYTES_OF_AN_OBJECT, 1 << 22),
        }
    }

    /// Whether lists may take `bytes` more bytes.
    pub(super) fn has_room(self, bytes: usize) -> bool {
        lists_bytes().saturating_add(bytes as u64) <= self.lists
    }
}

/// Bytes that all counted lists take.
pub(super) fn lists_bytes() -> u64 {
    LISTS.load(Ordering::Relaxed)
}

/// A list of fixed length whose bytes are counted until it is dropped.
#[derive(Debug)]
pub(super) struct CountedList<T>(Box<[T]>);

impl<T> Default for CountedList<T> {
    fn default() -> Self {
        Self(Box::default())
    }
}

impl<T: Copy> CountedList<T> {
    /// Creates a list of `length` copies of one value.
    pub(super) fn filled(value: T, length: usize) -> Self {
        let list = Self(vec![value; length].into_boxed_slice());
        LISTS.fetch_add(list.bytes(), Ordering::Relaxed);
        list
    }
}

impl<T> CountedList<T> {
    fn bytes(&self) -> u64 {
        size_of_val(&*self.0) as u64
    }
}

impl<T> Drop for CountedList<T> {
    fn drop(&mut self) {
        LISTS.fetch_sub(self.bytes(), Ordering::Relaxed);
    }
}

impl<T> Deref for CountedList<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        &self.0
    }
}

impl<T> DerefMut for CountedList<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_counted_while_they_are_there_and_limits_follow_the_instruments() {
        let before = lists_bytes();
        let list = CountedList::filled(7_u64, 1 << 20);
        assert!(lists_bytes() >= before + (8 << 20) - (1 << 20), "others' tests have lists, too");
        assert_eq!((list.len(), list[9]), (1 << 20, 7));
        let (large, small) = (Limits::from_max_bytes(1 << 30), Limits::from_max_bytes(1 << 20));
        assert!(large.has_room(100 << 20) && !small.has_room(1 << 20));
        assert!(small.followed <= 1_024 && large.followed >= 1 << 20, "{small:?} {large:?}");
        assert!(small.paths <= 1_024 && large.paths == 1 << 20, "{small:?} {large:?}");
    }

    /// With `max=64KiB` a thousand paths and a thousand objects, a multiple of the limit, used to
    /// be kept.
    #[test]
    fn tables_of_a_small_limit_stay_within_their_part_of_it() {
        for max in [64_u64 << 10, 256 << 10, 1 << 20, 1 << 30] {
            let limits = Limits::from_max_bytes(max);
            let tables = limits.paths * BYTES_OF_A_PATH + limits.followed * BYTES_OF_AN_OBJECT + limits.waiting;
            assert!(limits.lists + tables as u64 <= max / PART, "{max}: {limits:?}");
            assert!(limits.paths >= 64 && limits.followed >= 64, "{max}: {limits:?}");
        }
    }
}
