//! The waits under way: each has a number, which the waiting method keeps in its own state.
//!
//! The number leads back to when and where the wait began, whichever thread ends it, and wherever
//! the collector has moved the method's box meanwhile. The table is the process's, not the
//! recording's: a method that waits when a recording ends keeps its number. Nothing here allocates
//! or blocks.

use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use clrscope_agent_base::arch::thread_address;
use clrscope_agent_base::memory::PublishedState;
use clrscope_agent_base::os::memory;
use clrscope_contract::async_code::{AWAIT_BITS, NUMBERED_WAIT};

use super::place::Place;

/// Numbers there are: as many as fit between the bits of the await and the mark.
const MOST: u32 = NUMBERED_WAIT >> AWAIT_BITS;
/// Lists of free numbers, so that threads do not fight for one.
const LISTS: usize = 16;

/// A wait under way.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Wait {
    /// Ticks when it began; 0 of one that is no longer recorded.
    began: AtomicU64,
    /// Ticks when it ended.
    pub(super) ended: AtomicU64,
    /// Where the method waits; null before its first wait.
    place: AtomicPtr<Place>,
    /// Number of the stack with the path; 0 where none was taken.
    pub(super) path: AtomicU32,
    /// The next free number and one; 0 at the end of the list.
    next: AtomicU32,
    /// A method has the number.
    is_taken: AtomicBool,
}

impl Wait {
    /// The wait begins. Records of it belong to its place.
    pub(super) fn begin(&self, place: &'static Place, now: u64) {
        self.place.store(ptr::from_ref(place).cast_mut(), Ordering::Relaxed);
        self.path.store(0, Ordering::Relaxed);
        self.began.store(now.max(1), Ordering::Release);
    }

    /// Where the method waits, or waited last.
    pub(super) fn place(&self) -> Option<&'static Place> {
        // SAFETY: null, or a place that `begin` was given, which is never freed.
        unsafe { self.place.load(Ordering::Relaxed).as_ref() }
    }

    /// Ticks when it began; `None` of one that is no longer recorded.
    pub(super) fn began(&self) -> Option<u64> {
        Some(self.began.load(Ordering::Acquire)).filter(|began| *began != 0)
    }

    /// Ticks when it began, for the caller that records it; later callers get `None`.
    pub(super) fn claim(&self) -> Option<u64> {
        Some(self.began.swap(0, Ordering::AcqRel)).filter(|began| *began != 0)
    }
}

/// The head of a list of free numbers: a count of changes above the first number and one.
#[derive(Debug, Default)]
#[repr(align(64))]
struct FreeList(AtomicU64);

/// The waits of the process.
#[derive(Debug)]
pub(super) struct Waits {
    /// Pages that are zero until they are touched, mapped for good.
    start: NonNull<Wait>,
    /// Numbers that were given out so far, each at least once.
    given: AtomicU32,
    free: [FreeList; LISTS],
}

// SAFETY: the waits are atomics in memory that is mapped for good.
unsafe impl Send for Waits {}
// SAFETY: as above.
unsafe impl Sync for Waits {}

static WAITS: PublishedState<Waits> = PublishedState::nothing();
/// Only one table is made.
static MADE: Mutex<()> = Mutex::new(());

impl Waits {
    /// Makes the table of the process, unless it is there; `None` where there is no address space.
    pub(super) fn open() -> Option<&'static Self> {
        let _alone = MADE.lock().unwrap_or_else(PoisonError::into_inner);
        Self::of_process().or_else(|| Some(WAITS.publish_for_good(Self::map()?)))
    }

    /// The table of the process, once it is made.
    #[inline]
    pub(super) fn of_process() -> Option<&'static Self> {
        WAITS.get()
    }

    /// An empty table; `None` where the process has no address space left.
    fn map() -> Option<Self> {
        let start = memory::map(MOST as usize * size_of::<Wait>())?.cast();
        Some(Self { start, given: AtomicU32::new(0), free: Default::default() })
    }

    /// The wait of a number.
    #[inline]
    pub(super) fn wait(&self, number: u32) -> Option<&Wait> {
        // SAFETY: within the mapping, and zeros are a wait that is over.
        (number < MOST).then(|| unsafe { self.start.add(number as usize).as_ref() })
    }

    /// Takes a number that no method has; `None` where there is none left.
    #[inline]
    pub(super) fn take_number(&self) -> Option<u32> {
        let own = own_list();
        let mut lists = (0..LISTS).map(|step| &self.free[(own + step) % LISTS]);
        let number = lists.find_map(|list| self.pop(list)).or_else(|| self.fresh())?;
        self.wait(number)?.is_taken.store(true, Ordering::Relaxed);
        Some(number)
    }

    /// Gives a number back that a method has no more. Of one that was given back before nothing
    /// happens: a broken awaiter may go on with a method twice.
    #[inline]
    pub(super) fn give_back(&self, number: u32) {
        let Some(wait) = self.wait(number) else { return };
        if !wait.is_taken.swap(false, Ordering::Relaxed) {
            return;
        }
        let list = &self.free[own_list()].0;
        let mut head = list.load(Ordering::Relaxed);
        loop {
            wait.next.store(head as u32, Ordering::Relaxed);
            match list.compare_exchange_weak(head, changed(head, number + 1), Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    /// Every wait that a method may be in.
    pub(super) fn all(&self) -> impl Iterator<Item = &Wait> {
        (0..self.given.load(Ordering::Acquire).min(MOST)).filter_map(|number| self.wait(number))
    }

    fn pop(&self, list: &FreeList) -> Option<u32> {
        let mut head = list.0.load(Ordering::Acquire);
        loop {
            let number = (head as u32).checked_sub(1)?;
            let next = self.wait(number)?.next.load(Ordering::Relaxed);
            match list.0.compare_exchange_weak(head, changed(head, next), Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => return Some(number),
                Err(now) => head = now,
            }
        }
    }

    fn fresh(&self) -> Option<u32> {
        let next = |given: u32| (given < MOST).then_some(given + 1);
        self.given.fetch_update(Ordering::AcqRel, Ordering::Relaxed, next).ok()
    }
}

/// A head that leads to another number, which differs from all before it.
fn changed(head: u64, first: u32) -> u64 {
    ((head >> 32) + 1) << 32 | u64::from(first)
}

/// The list that the calling thread uses first.
#[inline]
fn own_list() -> usize {
    let thread = thread_address();
    (thread >> 12 ^ thread >> 20) % LISTS
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use clr_profiler::il::Label;

    use super::*;
    use crate::instruments::awaits::place::MethodPlaces;
    use crate::instruments::awaits::places::{AsyncCode, Await, Awaited};

    fn an_await() -> Await {
        let awaited = Awaited::Named(String::new());
        Await { number: 0, store: Label::at(9), il_offset: 7, result: None, awaited }
    }

    fn place() -> &'static Place {
        let places = Box::leak(Box::new(MethodPlaces::new(&AsyncCode { state: 1, awaits: vec![an_await()] })));
        &places.places()[0]
    }

    #[test]
    fn numbers_are_one_methods_at_a_time_on_any_thread() {
        let waits = Waits::map().expect("address space");
        let taken: Vec<u32> = (0..1_000).filter_map(|_| waits.take_number()).collect();
        assert_eq!(taken.iter().collect::<HashSet<_>>().len(), 1_000);
        // Given back on another thread, and found here.
        std::thread::scope(|scope| {
            scope.spawn(|| taken.iter().for_each(|number| waits.give_back(*number)));
        });
        waits.give_back(taken[0]);
        let again: HashSet<u32> = (0..1_000).filter_map(|_| waits.take_number()).collect();
        assert_eq!(again, taken.into_iter().collect(), "none is new, and the one given back twice is there once");
        assert_eq!(waits.take_number(), Some(1_000));
    }

    #[test]
    fn threads_that_take_and_give_back_never_share_a_number() {
        let waits = Waits::map().expect("address space");
        std::thread::scope(|scope| {
            for thread in 1..=4_u64 {
                let waits = &waits;
                let place = place();
                scope.spawn(move || {
                    for round in 0..20_000 {
                        let number = waits.take_number().expect("a number");
                        let wait = waits.wait(number).expect("its wait");
                        wait.begin(place, thread);
                        assert_eq!(wait.claim(), Some(thread), "round {round}");
                        waits.give_back(number);
                    }
                });
            }
        });
        assert!(waits.all().all(|wait| wait.claim().is_none()));
    }

    #[test]
    fn who_claims_a_wait_first_records_it() {
        let waits = Waits::map().expect("address space");
        let wait = waits.take_number().and_then(|number| waits.wait(number)).expect("a wait");
        wait.begin(place(), 0);
        assert_eq!((wait.began(), wait.claim(), wait.claim(), wait.began()), (Some(1), Some(1), None, None));
        assert!(waits.wait(MOST).is_none());
    }
}
