//! Names of what may be unloaded at any moment: asked for only as long as nothing was.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// Lets unloads wait for a question that is under way, and no question begin after an unload. A
/// question is asked under a lock, which unloads take, too: the runtime must not need an unload to
/// answer it.
#[derive(Debug, Default)]
pub struct Unloads {
    count: AtomicU64,
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
        let _asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        (self.count() == count).then(question)
    }

    /// Unloading is about to begin: a question that is under way ends first, and others about what was there before don't begin.
    pub fn unloads(&self) {
        self.count.fetch_add(1, Ordering::AcqRel);
        drop(self.asking.lock().unwrap_or_else(PoisonError::into_inner));
    }
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
}
