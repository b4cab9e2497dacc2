//! Questions to the runtime about things that may be unloaded at any moment. They are asked only if
//! nothing was unloaded since the thing was seen.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Longest wait of an unload for questions about objects that survived a collection.
const LONGEST_WAIT: Duration = Duration::from_millis(500);

/// Makes unloads wait for the current question, and prevents questions after an unload. A question
/// holds a lock that unloads also take. So the runtime must not need an unload to answer the
/// question.
#[derive(Debug, Default)]
pub struct Unloads {
    count: AtomicU64,
    /// Unloads that have begun and not ended.
    under_way: AtomicU64,
    /// Held for one question to the runtime at a time.
    asking: Mutex<()>,
    /// Unloads of dynamic methods so far.
    methods: AtomicU64,
    /// While unloads of modules wait: the number of unloads of dynamic methods when the wait began.
    /// Locked only for moments.
    keeps: Mutex<Option<u64>>,
    released: Condvar,
}

/// When something was seen. Later questions about it need this moment.
#[derive(Clone, Copy, Debug)]
pub enum Seen {
    /// Seen after this many unloads of any kind.
    After(u64),
    /// Seen alive at the end of a full collection, after which unloads of modules
    /// [wait](Unloads::keep).
    Kept {
        /// Number of unloads of dynamic methods at that moment.
        methods: u64,
    },
}

impl Unloads {
    /// Number of unloads so far.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Acquire)
    }

    /// Asks a question about something that existed after `count` unloads. `None` if it may have
    /// been unloaded since.
    pub fn ask<R>(&self, count: u64, question: impl FnOnce() -> R) -> Option<R> {
        self.hold(count).map(|_held| question())
    }

    /// Makes unloads wait until the returned guard is dropped, for several queries about things
    /// that existed after `count` unloads. `None` if they may be gone, or are being unloaded.
    /// Threads of the program must not call this: the runtime may suspend the caller for a
    /// collection that the query waits for.
    pub fn hold(&self, count: u64) -> Option<UnloadsHeld<'_>> {
        let asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        let is_there = self.count() == count && self.under_way.load(Ordering::Acquire) == 0;
        is_there.then_some(UnloadsHeld { _asking: asking })
    }

    /// Makes each unload of a module that begins from now on wait until [`release`](Self::release),
    /// at most half a second. Call it in the callback for the end of a full collection, while the
    /// program is suspended. A module unloads after a collection has found its loader dead
    /// (`LoaderAllocator::GCLoaderAllocators` in the runtime's loaderallocator.cpp). So a module
    /// that is alive now can't begin to unload before another full collection has ended, which
    /// comes after this call, and unloads that are already going on are of other modules.
    pub fn keep(&self) {
        *self.keeps() = Some(self.methods.load(Ordering::Acquire));
    }

    /// Ends the wait of unloads that [`keep`](Self::keep) began.
    pub fn release(&self) {
        *self.keeps() = None;
        self.released.notify_all();
    }

    /// The moment of the call of [`keep`](Self::keep), for queries about things alive then. `None`
    /// if it was not called, or an unload has waited too long.
    pub fn kept(&self) -> Option<Seen> {
        self.keeps().map(|methods| Seen::Kept { methods })
    }

    fn keeps(&self) -> MutexGuard<'_, Option<u64>> {
        self.keeps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queries the runtime about a type or a module. `None` if it may have been unloaded since.
    pub fn ask_of_module<R>(&self, seen: Seen, question: impl FnOnce() -> R) -> Option<R> {
        match seen {
            Seen::After(count) => self.ask(count, question),
            Seen::Kept { .. } => {
                let _asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
                let keeps = self.keeps().is_some();
                keeps.then(question)
            }
        }
    }

    /// Asks a question about a function, which may be a dynamic method. `None` if it may have been
    /// unloaded since.
    pub fn ask_of_function<R>(&self, seen: Seen, question: impl FnOnce() -> R) -> Option<R> {
        let is_there = || match seen {
            Seen::After(_) => true,
            Seen::Kept { methods } => self.methods.load(Ordering::Acquire) == methods,
        };
        self.ask_of_module(seen, || is_there().then(question)).flatten()
    }

    /// Waits while questions about survivors of a collection are asked. A wait that takes too long
    /// ends them.
    fn wait(&self) {
        let keeps = self.released.wait_timeout_while(self.keeps(), LONGEST_WAIT, |keeps| keeps.is_some());
        *keeps.unwrap_or_else(PoisonError::into_inner).0 = None;
    }

    /// Call it when a dynamic method is about to be unloaded. Waits for one question at most, as a
    /// collection may be waiting for this thread.
    pub fn method_unloads(&self) {
        self.methods.fetch_add(1, Ordering::AcqRel);
        self.unloads();
    }

    /// Like [`unloads`](Self::unloads), for an unload that takes several steps until
    /// [`ends`](Self::ends) is called. No queries are made in the meantime.
    pub fn begins(&self) {
        self.wait();
        self.under_way.fetch_add(1, Ordering::AcqRel);
        self.unloads();
    }

    /// Call it when the unload that [began](Self::begins) is complete. No more queries are made
    /// about things seen before or during it.
    pub fn ends(&self) {
        self.count.fetch_add(1, Ordering::AcqRel);
        // An unload that had begun before the agent listened was not counted.
        let less = |under_way: u64| under_way.checked_sub(1);
        let _ = self.under_way.fetch_update(Ordering::AcqRel, Ordering::Acquire, less);
    }

    /// Call it when an unload is about to begin. Waits for the current question, and prevents later
    /// questions about things seen before the unload.
    pub fn unloads(&self) {
        self.count.fetch_add(1, Ordering::AcqRel);
        drop(self.asking.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// A guard: unloads wait until it is dropped.
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
    fn what_a_collection_left_is_asked_about_while_other_modules_go() {
        let unloads = Unloads::default();
        assert!(unloads.kept().is_none());
        unloads.begins();
        unloads.keep();
        let seen = unloads.kept().expect("it was asked for");
        unloads.ends();
        assert_eq!(unloads.ask_of_module(seen, || 1), Some(1), "one that had begun was another one");
        assert_eq!(unloads.ask_of_function(seen, || 1), Some(1));
        unloads.method_unloads();
        assert_eq!(unloads.ask_of_function(seen, || 1), None, "a dynamic method may be gone");
        std::thread::scope(|scope| {
            let waits = scope.spawn(|| unloads.begins());
            assert_eq!(unloads.ask_of_module(seen, || 1), Some(1), "an unload that begins waits");
            unloads.release();
            waits.join().expect("an unload");
        });
        assert_eq!(unloads.ask_of_module(seen, || 1), None);
    }

    #[test]
    fn an_unload_waits_half_a_second_at_most_and_ends_all_questions() {
        let unloads = Unloads::default();
        unloads.keep();
        let seen = unloads.kept().expect("it was asked for");
        let began = std::time::Instant::now();
        unloads.begins();
        assert!(began.elapsed() >= LONGEST_WAIT);
        assert_eq!(unloads.ask_of_module(seen, || 1), None);
        assert!(unloads.kept().is_none());
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
