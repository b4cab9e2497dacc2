//! Limits the number of stacks that are captured in a second. If threads or methods wait millions
//! of times, the stacks of some waits are enough.

use std::sync::atomic::{AtomicU64, Ordering};

/// Length of a window in nanoseconds.
const WINDOW_NS: u64 = 100_000_000;
/// Bits of the count, which lies below the window's number.
const COUNT_BITS: u32 = 20;

/// The count of stacks in the current window. It takes no locks, because the program's threads ask
/// while they wait.
#[derive(Debug)]
pub(crate) struct StackRate {
    /// Stacks captured in each window at most.
    most: u64,
    /// Number of the window in the high bits, and the stacks captured in it in the low bits.
    state: AtomicU64,
}

impl StackRate {
    /// `most` is the number of stacks that may be captured in each window of time.
    pub(crate) fn new(most: u64) -> Self {
        Self { most, state: AtomicU64::new(0) }
    }

    /// Whether a stack may be captured at this moment.
    pub(crate) fn admits(&self, now_ns: u64) -> bool {
        let window = now_ns / WINDOW_NS;
        let admit = |state: u64| {
            let count = if state >> COUNT_BITS == window { state & ((1 << COUNT_BITS) - 1) } else { 0 };
            (count < self.most).then_some((window << COUNT_BITS) | (count + 1))
        };
        self.state.fetch_update(Ordering::Relaxed, Ordering::Relaxed, admit).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_window_has_room_for_as_many() {
        let rate = StackRate::new(1_000);
        let admitted = |now_ns| (0..5_000).filter(|_| rate.admits(now_ns)).count();
        assert_eq!(
            [admitted(0), admitted(99_999_999), admitted(100_000_000), admitted(950_000_000)],
            [1_000, 0, 1_000, 1_000]
        );
    }
}
