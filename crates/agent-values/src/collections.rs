//! Collections, as far as hooks have to know of them: objects move and memory goes in no other
//! time.

use std::sync::atomic::{AtomicU32, Ordering};

/// Collections that have begun.
static BEGUN: AtomicU32 = AtomicU32::new(0);
/// Collections that are under way: more than none where hooks run means that one sweeps alongside
/// the program.
static UNDER_WAY: AtomicU32 = AtomicU32::new(0);

/// A recording begins: collections may have come and gone unseen, and one that was under way when
/// an earlier recording of the process ended is over, or will not be told of.
pub(crate) fn begin_anew() {
    BEGUN.fetch_add(1, Ordering::AcqRel);
    UNDER_WAY.store(0, Ordering::Release);
}

/// A collection begins. Every thread that runs managed code stands still.
pub fn started() {
    UNDER_WAY.fetch_add(1, Ordering::AcqRel);
    BEGUN.fetch_add(1, Ordering::AcqRel);
}

/// A collection has ended.
pub fn finished() {
    let less = |count: u32| Some(count.saturating_sub(1));
    let _ = UNDER_WAY.fetch_update(Ordering::AcqRel, Ordering::Acquire, less);
}

/// Number of collections that have begun; `None` where one is under way. While a hook runs none
/// begins, and between two equal answers none was: nothing in the heap has moved, and no memory of
/// it was given back.
pub fn epoch() -> Option<u32> {
    let begun = BEGUN.load(Ordering::Acquire);
    (UNDER_WAY.load(Ordering::Acquire) == 0).then_some(begun)
}
