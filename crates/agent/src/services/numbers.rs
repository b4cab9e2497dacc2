//! Numbers for pending operations in the program's code, for example awaits. The program keeps the
//! number next to the state of the operation.
//!
//! The number leads back to the facts about the operation, from any thread and after the collector
//! has moved the state. A table belongs to the process, not to a recording: an operation that is
//! under way when a recording ends keeps its number. Nothing here allocates or blocks.

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use clrscope_agent_base::arch::thread_address;
use clrscope_agent_base::os::memory;
use clrscope_contract::async_code::{AWAIT_BITS, NUMBERED_WAIT};

/// How many numbers there are: as many as fit into the state of an async method, between the bits
/// for the number of the await and the bit that marks such states.
pub(crate) const MOST: u32 = NUMBERED_WAIT >> AWAIT_BITS;
/// Number of lists of free numbers, so that threads do not contend for one.
const LISTS: usize = 16;

/// The facts about one operation under way.
///
/// # Safety
/// All-zero bytes must be a valid value of the type, and the type must not need drop.
pub(crate) unsafe trait Numbered: Sync + 'static {}

/// The entry of a number in the table.
#[repr(C)]
struct Slot<T> {
    known: T,
    /// The next free number plus one; 0 at the end of the list.
    next: AtomicU32,
    /// Whether the number is taken.
    is_taken: AtomicBool,
}

/// The head of a list of free numbers: a count of changes in the high bits, and the first number
/// plus one in the low bits.
#[derive(Debug, Default)]
#[repr(align(64))]
struct FreeList(AtomicU64);

/// A table of pending operations, by their numbers.
#[derive(Debug)]
pub(crate) struct Numbers<T> {
    /// Pages that are zero until they are touched, and that stay mapped.
    start: NonNull<Slot<T>>,
    /// How many different numbers have been given out so far.
    given: AtomicU32,
    free: [FreeList; LISTS],
    things: PhantomData<T>,
}

// SAFETY: slots can be shared, and lie in memory that is mapped for good.
unsafe impl<T: Numbered> Send for Numbers<T> {}
// SAFETY: as above.
unsafe impl<T: Numbered> Sync for Numbers<T> {}

impl<T: Numbered> Numbers<T> {
    /// Creates an empty table; `None` if the process has no address space left.
    pub(crate) fn map() -> Option<Self> {
        let start = memory::map(MOST as usize * size_of::<Slot<T>>())?.cast();
        Some(Self { start, given: AtomicU32::new(0), free: Default::default(), things: PhantomData })
    }

    #[inline]
    fn slot(&self, number: u32) -> Option<&Slot<T>> {
        // SAFETY: within the mapping, and zeros are a free slot, as `Numbered` promises of what is
        // known.
        (number < MOST).then(|| unsafe { self.start.add(number as usize).as_ref() })
    }

    /// The facts about the operation with this number.
    #[inline]
    pub(crate) fn known(&self, number: u32) -> Option<&T> {
        self.slot(number).map(|slot| &slot.known)
    }

    /// Takes a free number; `None` if none is left.
    #[inline]
    pub(crate) fn take_number(&self) -> Option<u32> {
        let own = own_list();
        let mut lists = (0..LISTS).map(|step| &self.free[(own + step) % LISTS]);
        let number = lists.find_map(|list| self.pop(list)).or_else(|| self.fresh())?;
        self.slot(number)?.is_taken.store(true, Ordering::Relaxed);
        Some(number)
    }

    /// Returns a number. Does nothing if the number was already returned: a broken awaiter may
    /// resume a method twice.
    #[inline]
    pub(crate) fn give_back(&self, number: u32) {
        let Some(slot) = self.slot(number) else { return };
        if !slot.is_taken.swap(false, Ordering::Relaxed) {
            return;
        }
        let list = &self.free[own_list()].0;
        let mut head = list.load(Ordering::Relaxed);
        loop {
            slot.next.store(head as u32, Ordering::Relaxed);
            match list.compare_exchange_weak(head, changed(head, number + 1), Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    /// All operations that may be pending.
    pub(crate) fn all(&self) -> impl Iterator<Item = &T> {
        (0..self.given.load(Ordering::Acquire).min(MOST)).filter_map(|number| self.known(number))
    }

    fn pop(&self, list: &FreeList) -> Option<u32> {
        let mut head = list.0.load(Ordering::Acquire);
        loop {
            let number = (head as u32).checked_sub(1)?;
            let next = self.slot(number)?.next.load(Ordering::Relaxed);
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

/// The head after a change to another first number. It differs from all heads before it.
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

    use super::*;

    // SAFETY: a number.
    unsafe impl Numbered for AtomicU64 {}

    fn numbers() -> Numbers<AtomicU64> {
        Numbers::map().expect("address space")
    }

    #[test]
    fn numbers_belong_to_one_at_a_time_on_any_thread() {
        let numbers = numbers();
        let taken: Vec<u32> = (0..1_000).filter_map(|_| numbers.take_number()).collect();
        assert_eq!(taken.iter().collect::<HashSet<_>>().len(), 1_000);
        // Given back on another thread, and found here.
        std::thread::scope(|scope| {
            scope.spawn(|| taken.iter().for_each(|number| numbers.give_back(*number)));
        });
        numbers.give_back(taken[0]);
        let again: HashSet<u32> = (0..1_000).filter_map(|_| numbers.take_number()).collect();
        assert_eq!(again, taken.into_iter().collect(), "none is new, and the one given back twice is there once");
        assert_eq!(numbers.take_number(), Some(1_000));
        assert!(numbers.known(MOST).is_none());
    }

    #[test]
    fn threads_that_take_and_give_back_never_share_a_number() {
        let numbers = numbers();
        std::thread::scope(|scope| {
            for thread in 1..=4_u64 {
                let numbers = &numbers;
                scope.spawn(move || {
                    for round in 0..20_000 {
                        let number = numbers.take_number().expect("a number");
                        let known = numbers.known(number).expect("its place");
                        known.store(thread, Ordering::Relaxed);
                        assert_eq!(known.swap(0, Ordering::Relaxed), thread, "round {round}");
                        numbers.give_back(number);
                    }
                });
            }
        });
        assert!(numbers.all().all(|known| known.load(Ordering::Relaxed) == 0));
    }
}
