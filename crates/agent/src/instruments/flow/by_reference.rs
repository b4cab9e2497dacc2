//! Addresses that were passed to active calls: `ref` and `out` arguments, whose targets are shown
//! again at the end of the call.
//!
//! A target on the thread's own stack stays in place while the call lasts. A target in the heap
//! stays in place until a collection; its address after the collection is not known. The memory may
//! also not belong to the runtime, and may be unmapped. So the system copies the target, and
//! refuses if nothing is mapped there.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU32, Ordering};

use clrscope_agent_base::memory::FixedVec;
use clrscope_agent_values::collections;
use clrscope_agent_values::completion::AwaitedTask;
use clrscope_agent_values::memory::{At, Ground, MemoryReader};
use clrscope_agent_values::plans::plan_of;

/// Most addresses that are kept of one call.
pub(super) const MOST: usize = 8;
/// Most bytes of a value that are copied.
pub(super) const MOST_BYTES: usize = 256;
/// Most calls of a thread.
const MOST_CALLS: usize = 10_000;

/// A call, by its stack pointer.
#[derive(Clone, Copy)]
struct Pending {
    sp: usize,
    function: u32,
    /// Epoch of the heap when the call began; `None` if a collection was running then.
    epoch: Option<u32>,
    /// Whether the call has given its result to the builder.
    is_complete: bool,
    addresses: [usize; MOST],
}

impl Pending {
    fn new(function: u32, sp: usize, addresses: [usize; MOST]) -> Self {
        Self { sp, function, epoch: collections::epoch(), is_complete: false, addresses }
    }

    /// Whether objects in the heap may have moved, or been swept.
    fn has_moved(&self) -> bool {
        self.epoch.is_none() || self.epoch != collections::epoch()
    }
}

thread_local! {
    /// Calls of a thread, once there is one, and the value of [`FORGOTTEN`] when it last compared
    /// it.
    static PENDING: RefCell<Option<(FixedVec<Pending>, u32)>> = const { RefCell::new(None) };
}

/// Number of times that all calls were forgotten. Threads drop the calls that they kept before the
/// last time.
static FORGOTTEN: AtomicU32 = AtomicU32::new(0);

/// Forgets all calls of all threads. Needed when recording was stopped, as calls have ended unseen.
pub(super) fn forget_all() {
    FORGOTTEN.fetch_add(1, Ordering::AcqRel);
}

/// Runs `act` on the calls of this thread. `None` without memory for them, and at the very end of a
/// thread.
fn with<R>(act: impl FnOnce(&mut FixedVec<Pending>) -> R) -> Option<R> {
    let act = |calls: &RefCell<Option<(FixedVec<Pending>, u32)>>| {
        let now = FORGOTTEN.load(Ordering::Acquire);
        let mut kept = calls.try_borrow_mut().ok()?;
        if kept.is_none() {
            *kept = FixedVec::new(MOST_CALLS).map(|calls| (calls, now));
        }
        let (calls, forgotten) = kept.as_mut()?;
        if std::mem::replace(forgotten, now) != now {
            while calls.pop().is_some() {}
        }
        Some(act(calls))
    };
    PENDING.try_with(act).ok().flatten()
}

/// Keeps addresses until the call ends.
pub(super) fn remember(function: u32, sp: usize, addresses: [usize; MOST]) {
    let _ = with(|calls| {
        while calls.last().is_some_and(|last| last.sp <= sp) {
            calls.pop();
        }
        // Targets of addresses that find no room are shown as not known when the call ends.
        let _ = calls.push(Pending::new(function, sp, addresses));
    });
}

/// The addresses that were kept for the call with this stack pointer; `None` if there are none.
pub(super) fn recall(sp: usize) -> Option<RecalledAddresses> {
    let found = with(|calls| {
        while calls.last().is_some_and(|last| last.sp < sp) {
            calls.pop();
        }
        let is_it = calls.last().is_some_and(|last| last.sp == sp);
        is_it.then(|| calls.pop()).flatten()
    });
    let last = found.flatten()?;
    Some(RecalledAddresses { sp, has_moved: last.has_moved(), is_complete: last.is_complete, addresses: last.addresses })
}

/// The active call of an `async` method's code that completes the method now, as its stack pointer
/// and its task. `builder` and `sp` belong to the call of the builder's completing method: its
/// argument, and the stack pointer of its caller.
pub(super) fn complete(sp: usize, builder: usize) -> Option<(usize, AwaitedTask)> {
    // Its frame begins with the caller's frame pointer, and a frame pointer points right below the
    // return address. SAFETY: the frame of the function that was just entered.
    let frame = unsafe { std::ptr::with_exposed_provenance::<usize>(sp - 16).read() };
    let callers = [sp, frame.wrapping_add(16)];
    let found = with(|calls| {
        calls.iter_mut().rev().find_map(|call| {
            let awaited = plan_of(call.function)?.awaited?;
            let is_builder = call.addresses[0].wrapping_add(awaited.builder as usize) == builder;
            // Where the builder may have moved, the frames decide: the code calls the builder
            // directly, or the call of the builder replaces it.
            let is_it = is_builder || call.has_moved() && callers.contains(&call.sp);
            is_it.then(|| {
                call.is_complete = true;
                (call.sp, awaited)
            })
        })
    });
    found.flatten()
}

/// The addresses that were kept for a call that ends.
#[derive(Clone, Copy)]
pub(super) struct RecalledAddresses {
    sp: usize,
    /// Whether there was a collection since the call began.
    pub(super) has_moved: bool,
    /// Whether the call has given its result to the builder.
    pub(super) is_complete: bool,
    addresses: [usize; MOST],
}

impl RecalledAddresses {
    /// Copies bytes of a target into `copy`: those `offset` bytes behind the address with this
    /// number. `None` if they can't be known.
    pub(super) fn value(&self, number: usize, offset: usize, copy: &mut [u8]) -> Option<()> {
        let address = self.addresses.get(number).copied().filter(|address| *address != 0)?.checked_add(offset)?;
        // Callers' frames lie above, and nothing on this thread's stack can be further away than
        // the size of the stack.
        let at = At::somewhere(address, copy.len());
        let is_of_caller = at.ground() == Ground::Held && address >= self.sp;
        (is_of_caller || !self.has_moved).then(|| MemoryReader::new().copy(at, copy))?.then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_finds_its_own_and_drops_what_exceptions_left() {
        remember(1, 900, [1; MOST]);
        remember(1, 800, [2; MOST]);
        remember(1, 700, [3; MOST]);
        assert_eq!(recall(800).map(|found| found.addresses), Some([2; MOST]), "700 ended by an exception");
        assert!(recall(800).is_none());
        assert!(recall(900).is_some_and(|found| !found.has_moved && found.addresses == [1; MOST]));
        remember(1, 900, [4; MOST]);
        collections::started();
        remember(1, 800, [5; MOST]);
        assert!(recall(800).is_some_and(|found| found.has_moved), "a collection goes on beside the program");
        collections::finished();
        remember(1, 800, [6; MOST]);
        assert!(recall(800).is_some_and(|found| !found.has_moved));
        assert!(recall(900).is_some_and(|found| found.has_moved));
    }
}
