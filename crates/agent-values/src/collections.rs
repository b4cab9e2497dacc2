//! Tracks garbage collections, as far as hooks need them: objects move and memory disappears only
//! during collections.

use std::sync::atomic::{AtomicU32, Ordering};

/// Collections that have begun.
static BEGUN: AtomicU32 = AtomicU32::new(0);
/// Collections in progress. If there is one while hooks run, it sweeps concurrently with the
/// program.
static UNDER_WAY: AtomicU32 = AtomicU32::new(0);

/// Call it when a recording begins, as earlier collections may have gone unseen. A collection that
/// was in progress when an earlier recording of the process ended is over, or its end will not be
/// reported.
pub(crate) fn begin_anew() {
    BEGUN.fetch_add(1, Ordering::AcqRel);
    UNDER_WAY.store(0, Ordering::Release);
}

/// Call it when a collection begins. Every thread that runs managed code is suspended.
pub fn started() {
    UNDER_WAY.fetch_add(1, Ordering::AcqRel);
    BEGUN.fetch_add(1, Ordering::AcqRel);
}

/// Call it when a collection has ended.
pub fn finished() {
    let less = |count: u32| Some(count.saturating_sub(1));
    let _ = UNDER_WAY.fetch_update(Ordering::AcqRel, Ordering::Acquire, less);
}

/// Number of collections that have begun; `None` while one is in progress. No collection begins
/// while a hook runs. Between two equal answers there was no collection: nothing in the heap has
/// moved, and no memory of the heap was given back.
pub fn epoch() -> Option<u32> {
    let begun = BEGUN.load(Ordering::Acquire);
    (UNDER_WAY.load(Ordering::Acquire) == 0).then_some(begun)
}
