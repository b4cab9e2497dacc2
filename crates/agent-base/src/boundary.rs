//! The boundary that no panic crosses, for entry points that the framework does not already guard.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

static CAUGHT: AtomicU64 = AtomicU64::new(0);

/// Runs `body`. A panic ends it quietly and is counted.
pub fn guard(body: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(body)) {
        // Dropping the payload runs foreign code, which may panic itself.
        std::mem::forget(payload);
        count_caught();
    }
}

/// Counts a panic that was caught elsewhere.
pub(crate) fn count_caught() {
    CAUGHT.fetch_add(1, Ordering::Relaxed);
}

/// Panics caught here so far; see [`faults`](crate::faults).
pub fn caught() -> u64 {
    CAUGHT.load(Ordering::Relaxed)
}
