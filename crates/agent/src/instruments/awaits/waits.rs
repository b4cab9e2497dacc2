//! The pending waits. Each wait has a number, which the waiting method keeps in its own state
//! ([`Numbers`]). The number leads to the time and place at which the wait began.

use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use clrscope_agent_base::memory::PublishedState;

use super::place::Place;
use crate::services::numbers::{Numbered, Numbers};
use crate::services::request_work;

/// A pending wait.
#[derive(Debug)]
pub(super) struct Wait {
    /// Ticks when the wait began; 0 if it is no longer recorded.
    began: AtomicU64,
    /// Ticks when the wait ended.
    pub(super) ended: AtomicU64,
    /// Where the method waits; null before its first wait.
    place: AtomicPtr<Place>,
    /// Number of the stack with the call path; 0 if no path was recorded.
    pub(super) path: AtomicU32,
    /// Id of the request for which the method waits; 0 for none.
    pub(super) request: AtomicU64,
}

impl Wait {
    /// Begins the wait at a place.
    pub(super) fn begin(&self, place: &'static Place, now: u64) {
        self.place.store(ptr::from_ref(place).cast_mut(), Ordering::Relaxed);
        self.path.store(0, Ordering::Relaxed);
        self.request.store(request_work::request(), Ordering::Relaxed);
        self.began.store(now.max(1), Ordering::Release);
    }

    /// Where the method waits, or waited last.
    pub(super) fn place(&self) -> Option<&'static Place> {
        // SAFETY: null, or a place that `begin` was given, which is never freed.
        unsafe { self.place.load(Ordering::Relaxed).as_ref() }
    }

    /// Ticks when the wait began; `None` if the wait is not recorded any more.
    pub(super) fn began(&self) -> Option<u64> {
        Some(self.began.load(Ordering::Acquire)).filter(|began| *began != 0)
    }

    /// Ticks when the wait began. Only the first caller gets them, and records the wait; later
    /// callers get `None`.
    pub(super) fn claim(&self) -> Option<u64> {
        Some(self.began.swap(0, Ordering::AcqRel)).filter(|began| *began != 0)
    }
}

// SAFETY: zeros are a wait that is over, at no place.
unsafe impl Numbered for Wait {}

/// The waits of the process.
pub(super) type Waits = Numbers<Wait>;

static WAITS: PublishedState<Waits> = PublishedState::nothing();
/// Only one table is made.
static MADE: Mutex<()> = Mutex::new(());

/// Returns the table of the process, and creates it if necessary; `None` if the process has no
/// address space left.
pub(super) fn open() -> Option<&'static Waits> {
    let _alone = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    of_process().or_else(|| Some(WAITS.publish_for_good(Waits::map()?)))
}

/// The table of the process; `None` if it was not created yet.
#[inline]
pub(super) fn of_process() -> Option<&'static Waits> {
    WAITS.get()
}

#[cfg(test)]
mod tests {
    use clr_profiler::il::Label;

    use super::*;
    use crate::instruments::awaits::place::MethodPlaces;
    use crate::services::await_places::{AsyncCode, Await, Awaited};

    fn an_await() -> Await {
        let awaited = Awaited::Named(String::new());
        Await { number: 0, store: Label::at(9), il_offset: 7, result: None, awaited }
    }

    fn place() -> &'static Place {
        let places = Box::leak(Box::new(MethodPlaces::new(&AsyncCode { state: 1, awaits: vec![an_await()] })));
        &places.places()[0]
    }

    #[test]
    fn who_claims_a_wait_first_records_it() {
        let waits = Waits::map().expect("address space");
        let wait = waits.take_number().and_then(|number| waits.known(number)).expect("a wait");
        wait.begin(place(), 0);
        assert_eq!((wait.began(), wait.claim(), wait.claim(), wait.began()), (Some(1), Some(1), None, None));
    }
}
