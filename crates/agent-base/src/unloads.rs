//! Names of what may be unloaded at any moment: asked for only as long as nothing was.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Lets unloads wait for a question that is under way, and no question begin after an unload. A
/// question is asked under a lock, which unloads take, too: the runtime must not need an unload to
/// answer it.
#[derive(Debug, Default)]
pub struct Unloads {
    count: AtomicU64,
    /// Unloads that have begun and not ended.
    under_way: AtomicU64,
    /// Held for one question to the runtime at a time.
    asking: Mutex<()>,
}

impl Unloads {
    /// Number of unloads so far.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    /// Asks about something that was there when there had been `count` unloads; `None` where it may be gone.
    pub fn ask<R>(&self, count: u64, question: impl FnOnce() -> R) -> Option<R> {
        self.hold(count).map(|_held| question())
    }

    /// Keeps unloads waiting until the answer is dropped, for several questions about what was there
    /// when there had been `count` of them; `None` where it may be gone, or is going. Not for threads
    /// of the program: the runtime may stop one for a collection that the question waits for.
    pub fn hold(&self, count: u64) -> Option<UnloadsHeld<'_>> {
        let asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        let is_there = self.count() == count && self.under_way.load(Ordering::Acquire) == 0;
        is_there.then_some(UnloadsHeld { _asking: asking })
    }

    /// [`unloads`](Self::unloads), of what goes step by step until [`ends`](Self::ends): nobody
    /// asks meanwhile.
    pub fn begins(&self) {
        self.under_way.fetch_add(1, Ordering::AcqRel);
        self.unloads();
    }

    /// What began to go is gone. Who knew of it before, or found it while it went, asks about it no
    /// more.
    pub fn ends(&self) {
        self.count.fetch_add(1, Ordering::AcqRel);
        // One that had begun before anybody listened was not counted.
        let less = |under_way: u64| under_way.checked_sub(1);
        let _ = self.under_way.fetch_update(Ordering::AcqRel, Ordering::Acquire, less);
    }

    /// Unloading is about to begin: a question that is under way ends first, and others about what was there before don't begin.
    pub fn unloads(&self) {
        self.count.fetch_add(1, Ordering::AcqRel);
        drop(self.asking.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Keeps unloads waiting until it is dropped.
#[derive(Debug)]
pub struct UnloadsHeld<'a> {
    _asking: MutexGuard<'a, ()>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_asked_about_what_may_be_gone() {
        let unloads = Unloads::default();
        let before = unloads.count();
        assert_eq!(unloads.ask(before, || 1), Some(1));
        unloads.unloads();
        assert_eq!(unloads.ask(before, || 1), None);
        assert_eq!(unloads.ask(unloads.count(), || 1), Some(1));
    }

    #[test]
    fn nothing_is_asked_about_what_is_going_nor_about_what_was_met_meanwhile() {
        let unloads = Unloads::default();
        unloads.ends();
        assert_eq!(unloads.ask(unloads.count(), || 1), Some(1), "one began before anybody listened");
        unloads.begins();
        let meanwhile = unloads.count();
        assert_eq!(unloads.ask(meanwhile, || 1), None);
        unloads.begins();
        unloads.ends();
        assert_eq!(unloads.ask(unloads.count(), || 1), None, "another one is going still");
        unloads.ends();
        assert_eq!(unloads.ask(meanwhile, || 1), None);
        assert_eq!(unloads.ask(unloads.count(), || 1), Some(1));
    }
}
