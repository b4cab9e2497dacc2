//! Memory that hooks and callbacks use without the heap and without waiting for the disk.
//!
//! - [`Patience`]: the wait of a thread that needs memory of a segment before the helper thread has
//!   backed it
//! - [`FixedVec`]: a thread's own list of fixed capacity
//! - [`PublishedState`]: shared state that hooks read without a lock

use std::ops::{Deref, DerefMut};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use std::time::Duration;

use clrscope_recording::writer::{Arena, EventStore, StackTable, ThreadTable, monotonic_ns};

use crate::helper::HelperHandle;
use crate::hooks;
use crate::os::memory as pages;
use crate::os::threads::nap;
use crate::recording_lifetime::keep;

/// Longest wait for memory that the helper thread is about to back. A busy disk can be slow: with a
/// limit of 200 ms, while six busy loops and three builds ran next to the program, 4 of 25 runs
/// lost their first events.
pub const PATIENCE: Duration = Duration::from_secs(2);
/// Pause between two attempts to get memory. A sleep and not a yield, as the helper thread may need
/// this processor.
const NAP: Duration = Duration::from_micros(50);
/// Naps until the helper thread is woken again: other threads may have taken the memory that it
/// backed last.
const NAPS_PER_WAKE: u32 = 16;

/// Memory of a recording that the helper thread extends in its rounds.
pub trait GrowingMemory {
    /// Amount of memory backed so far. It may be in any unit.
    fn backed(&self) -> usize;

    /// Whether waiting for this many more bytes makes sense: the limit is not reached, and the disk
    /// has not refused space.
    fn may_give(&self, bytes: usize) -> bool;
}

impl GrowingMemory for EventStore {
    fn backed(&self) -> usize {
        self.segment().committed()
    }

    fn may_give(&self, bytes: usize) -> bool {
        self.used() + bytes <= self.limit() && !self.is_refused()
    }
}

impl GrowingMemory for Arena {
    fn backed(&self) -> usize {
        self.segment().committed()
    }

    fn may_give(&self, _bytes: usize) -> bool {
        !self.is_full() && !self.is_refused()
    }
}

impl GrowingMemory for ThreadTable {
    fn backed(&self) -> usize {
        ThreadTable::backed(self)
    }

    fn may_give(&self, _bytes: usize) -> bool {
        self.may_grow()
    }
}

impl GrowingMemory for StackTable {
    fn backed(&self) -> usize {
        self.segment().committed()
    }

    fn may_give(&self, _bytes: usize) -> bool {
        !self.is_full() && !self.is_refused()
    }
}

/// Lets threads wait, at most [`PATIENCE`], for one area of [`GrowingMemory`]. After a wait in
/// vain, no thread waits again until more memory is backed. So a hanging disk stops a program only
/// once for this long, and not at every call.
pub struct Patience {
    helper: HelperHandle,
    /// Amount that was backed when a thread last waited in vain.
    in_vain: AtomicUsize,
}

impl Patience {
    /// Creates the state before any wait.
    pub fn new(helper: HelperHandle) -> Self {
        Self { helper, in_vain: AtomicUsize::new(usize::MAX) }
    }

    /// Whether [`wait`](Self::wait) would wait now.
    pub fn would_wait(&self, memory: &impl GrowingMemory, bytes: usize) -> bool {
        self.makes_sense(memory, bytes, memory.backed())
    }

    fn makes_sense(&self, memory: &impl GrowingMemory, bytes: usize, backed: usize) -> bool {
        let was_in_vain = self.in_vain.load(Ordering::Relaxed) == backed;
        !was_in_vain && memory.may_give(bytes) && !self.helper.is_gone() && !hooks::is_stopped()
    }

    /// Sleeps until `take` gets something from `memory`; `take` needs `bytes` bytes. `None` if no
    /// more memory can come, if recording has ended, or after [`PATIENCE`]. Safe in a hook: neither
    /// allocates nor takes a lock.
    #[cold]
    pub fn wait<T>(&self, memory: &impl GrowingMemory, bytes: usize, mut take: impl FnMut() -> Option<T>) -> Option<T> {
        self.wait_at_most(PATIENCE, memory, bytes, &mut take)
    }

    fn wait_at_most<T>(
        &self,
        most: Duration,
        memory: &impl GrowingMemory,
        bytes: usize,
        take: &mut impl FnMut() -> Option<T>,
    ) -> Option<T> {
        let backed = memory.backed();
        let deadline = monotonic_ns() + most.as_nanos() as u64;
        let mut naps = 0_u32;
        while self.makes_sense(memory, bytes, backed) {
            if naps.is_multiple_of(NAPS_PER_WAKE) {
                self.helper.wake();
            }
            naps = naps.wrapping_add(1);
            nap(NAP);
            if let Some(taken) = take() {
                return Some(taken);
            }
            if monotonic_ns() >= deadline {
                self.in_vain.store(backed, Ordering::Relaxed);
            }
        }
        None
    }
}

/// A list of fixed capacity in its own memory pages. The pages are mapped when the list is created,
/// backed by the system as the list fills, and unmapped when the list is dropped. Pushing never
/// allocates.
pub struct FixedVec<T: Copy> {
    start: NonNull<T>,
    length: usize,
    capacity: usize,
}

impl<T: Copy> FixedVec<T> {
    /// An empty list; `None` if the process has no address space left for `capacity` items.
    pub fn new(capacity: usize) -> Option<Self> {
        const { assert!(align_of::<T>() <= 4096, "pages are aligned to 4096 bytes") };
        let bytes = capacity.checked_mul(size_of::<T>())?;
        Some(Self { start: pages::map(bytes)?.cast(), length: 0, capacity })
    }

    /// Appends an item. Returns whether there was room.
    #[inline]
    pub fn push(&mut self, item: T) -> bool {
        let fits = self.length < self.capacity;
        if fits {
            // SAFETY: below the capacity, so within the mapping, which is writable and ours alone.
            unsafe { self.start.add(self.length).write(item) };
            self.length += 1;
        }
        fits
    }

    /// Removes the last item and returns it; `None` if the list is empty.
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        let last = self.last().copied()?;
        self.length -= 1;
        Some(last)
    }
}

impl FixedVec<u8> {
    /// A list that contains `capacity` zeros; `None` if the process has no address space left.
    pub fn zeros(capacity: usize) -> Option<Self> {
        // Fresh pages are zero, which is a value of each byte.
        Self::new(capacity).map(|empty| {
            let mut full = empty;
            full.length = capacity;
            full
        })
    }
}

impl<T: Copy> Deref for FixedVec<T> {
    type Target = [T];

    #[inline]
    fn deref(&self) -> &[T] {
        // SAFETY: the first `length` items lie within the mapping and were written, or are bytes of
        // fresh pages.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.length) }
    }
}

impl<T: Copy> DerefMut for FixedVec<T> {
    #[inline]
    fn deref_mut(&mut self) -> &mut [T] {
        // SAFETY: as in `deref`, and the mapping belongs to this list alone.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.length) }
    }
}

impl<T: Copy> Drop for FixedVec<T> {
    fn drop(&mut self) {
        // SAFETY: the whole mapping that `new` made, to which no reference is left. Items need no
        // drop: they are `Copy`.
        unsafe { pages::unmap(self.start.cast(), self.capacity * size_of::<T>()) };
    }
}

/// State that is created once and that hooks read without a lock.
pub struct PublishedState<T: 'static>(AtomicPtr<T>);

impl<T> PublishedState<T> {
    /// Creates a cell with nothing published yet.
    pub const fn nothing() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// Publishes `state` for the lifetime of the recording. The publisher
    /// [withdraws](Self::withdraw) the state at the end.
    pub fn publish(&self, state: T) -> &'static T
    where
        T: Send + Sync,
    {
        self.know(keep(state))
    }

    /// Publishes `state` for good: it stays for the next recording of the process.
    pub fn publish_for_good(&self, state: T) -> &'static T {
        self.know(Box::leak(Box::new(state)))
    }

    fn know(&self, state: &'static T) -> &'static T {
        self.0.store(ptr::from_ref(state).cast_mut(), Ordering::Release);
        state
    }

    /// The state; `None` if it is not published. Safe in a hook.
    #[inline]
    pub fn get(&self) -> Option<&'static T> {
        // SAFETY: null, or a published state: no `&mut` to it exists, and if it is freed at all,
        // then only when it is no longer used.
        unsafe { self.0.load(Ordering::Acquire).as_ref() }
    }

    /// Withdraws the state in a forked child, whose hooks must do nothing. Async-signal-safe.
    pub fn withdraw(&self) {
        self.0.store(ptr::null_mut(), Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::time::Instant;

    use super::*;

    struct Memory {
        backed: Cell<usize>,
        is_full: bool,
    }

    impl GrowingMemory for Memory {
        fn backed(&self) -> usize {
            self.backed.get()
        }

        fn may_give(&self, _bytes: usize) -> bool {
            !self.is_full
        }
    }

    #[test]
    fn a_wait_ends_as_soon_as_there_is_memory() {
        let patience = Patience::new(HelperHandle::new());
        let memory = Memory { backed: Cell::new(1), is_full: false };
        let mut attempts = 0;
        let taken = patience.wait(&memory, 8, || {
            attempts += 1;
            (attempts == 3).then_some(7)
        });
        assert_eq!((taken, attempts), (Some(7), 3));
    }

    #[test]
    fn nobody_waits_where_nothing_can_come() {
        let patience = Patience::new(HelperHandle::new());
        let memory = Memory { backed: Cell::new(1), is_full: true };
        assert_eq!(patience.wait::<()>(&memory, 8, || panic!("nothing to take")), None);
    }

    #[test]
    fn after_a_wait_in_vain_nobody_waits_until_more_is_backed() {
        let patience = Patience::new(HelperHandle::new());
        let memory = Memory { backed: Cell::new(1), is_full: false };
        let most = Duration::from_millis(5);
        let started = Instant::now();
        assert_eq!(patience.wait_at_most::<()>(most, &memory, 8, &mut || None), None);
        assert!(started.elapsed() >= most);
        assert_eq!(patience.wait::<()>(&memory, 8, || panic!("waits again")), None);
        memory.backed.set(2);
        assert_eq!(patience.wait(&memory, 8, || Some(())), Some(()));
    }

    #[test]
    fn a_fixed_list_takes_as_many_as_it_has_room_for() {
        let mut list = FixedVec::new(2).expect("address space");
        assert_eq!((list.push(1_u64), list.push(2), list.push(3)), (true, true, false));
        assert_eq!(list[..], [1, 2]);
        list[0] = 9;
        assert_eq!((list.pop(), list.pop(), list.pop()), (Some(2), Some(9), None));
        assert!(FixedVec::<u64>::new(usize::MAX / 2).is_none());
        assert!(FixedVec::zeros(10_000).expect("address space").iter().all(|&byte| byte == 0));
    }

    #[test]
    fn what_is_published_is_found_until_it_is_withdrawn() {
        let _alone = crate::recording_lifetime::tests::alone();
        static NUMBER: PublishedState<u32> = PublishedState::nothing();
        assert_eq!(NUMBER.get(), None);
        assert_eq!((*NUMBER.publish(7), NUMBER.get()), (7, Some(&7)));
        NUMBER.withdraw();
        assert_eq!(NUMBER.get(), None);
    }
}
