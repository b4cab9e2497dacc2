//! Pins for exceptions while the runtime searches for a handler.
//!
//! From .NET 9 on the runtime passes an exception to a filter by address. It reads the address
//! before it notifies profilers of the filter, and allows collections in between
//! (`CallFilterFunclet` in its `exceptionhandling.cpp`, dotnet/runtime#132462). If a collection
//! moves the exception in that time, the filter gets a stale address, and the program crashes
//! because of this fault of the runtime. This can happen wherever a profiler asks for notifications
//! of exceptions. A pinned exception does not move.
//!
//! Each thread has a stack of pins: one for each exception that it has thrown and that may not be
//! handled yet. A pin is removed when the thread leaves a catch block. It is removed at the latest
//! when the thread throws again with a stack no deeper than at the pinned throw: from then on the
//! runtime does not search for a handler of that exception.

use std::sync::{Mutex, MutexGuard, PoisonError};

use clr_profiler::{Callbacks, HandleKind, ObjectHandle, ObjectId, ProfilerInfo, ThreadId};
use rustc_hash::FxHashMap;

/// First version of the runtime that needs the pins.
const FIRST_MAJOR: u16 = 9;
/// Pins of one thread at most; beyond this number the oldest is removed. Only filters that throw
/// within filters have so many exceptions at once.
const MOST: usize = 64;

/// The pinned exceptions.
pub(crate) struct HeldExceptions {
    info: ProfilerInfo,
    /// `None` if no pins are needed, or the recording is over.
    threads: Mutex<Option<FxHashMap<ThreadId, Pins>>>,
}

/// The pins of a thread, the oldest first.
type Pins = Vec<Pin<ObjectHandle>>;

/// A pin, with the thread's stack pointer when the runtime reported the exception.
struct Pin<P> {
    sp: usize,
    _pin: P,
}

impl HeldExceptions {
    /// Creates the stacks of pins, without any pins.
    pub(crate) fn new(info: &ProfilerInfo) -> Self {
        let needs_it = info.runtime_version().is_ok_and(|version| version.major >= FIRST_MAJOR);
        Self { info: info.clone(), threads: Mutex::new(needs_it.then(FxHashMap::default)) }
    }

    /// Removes all pins, and adds no more. Call it when no more callbacks about exceptions come.
    pub(crate) fn let_go(&self) {
        let all = self.threads().take();
        drop(all);
    }

    fn threads(&self) -> MutexGuard<'_, Option<FxHashMap<ThreadId, Pins>>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Takes the pins of exceptions whose search for a handler is over, given that the thread throws
/// with the stack pointer `sp`, and makes room for one pin.
fn take_done<P>(pins: &mut Vec<Pin<P>>, sp: usize) -> Vec<Pin<P>> {
    let under_way = pins.iter().rposition(|held| held.sp > sp).map_or(0, |last| last + 1);
    let mut done = pins.split_off(under_way);
    if pins.len() >= MOST {
        done.push(pins.remove(0));
    }
    done
}

impl Callbacks for HeldExceptions {
    fn exception_thrown(&self, exception: ObjectId<'_>) {
        if self.threads().is_none() {
            return;
        }
        let here = 0_u8;
        let sp = (&raw const here).addr();
        let Ok(thread) = self.info.current_thread() else { return };
        // The runtime refuses a handle where it has no memory: the exception then stays unpinned.
        let Ok(pin) = self.info.create_handle(exception, HandleKind::Pinned) else { return };
        // Dropping a pin calls the runtime, so pins are dropped after the lock is released.
        let mut done = Vec::new();
        if let Some(threads) = &mut *self.threads() {
            let pins = threads.entry(thread).or_default();
            done = take_done(pins, sp);
            pins.push(Pin { sp, _pin: pin });
        }
        drop(done);
    }

    fn exception_catcher_leave(&self) {
        let Ok(thread) = self.info.current_thread() else { return };
        let done = self.threads().as_mut().and_then(|threads| threads.get_mut(&thread)?.pop());
        drop(done);
    }

    fn thread_destroyed(&self, thread: ThreadId) {
        let done = self.threads().as_mut().and_then(|threads| threads.remove(&thread));
        drop(done);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn throw(pins: &mut Vec<Pin<()>>, sp: usize) -> Vec<usize> {
        let done = take_done(pins, sp);
        pins.push(Pin { sp, _pin: () });
        done.iter().map(|held| held.sp).collect()
    }

    /// Stacks grow downwards.
    #[test]
    fn exceptions_are_held_until_their_thread_throws_where_its_stack_is_no_deeper() {
        let mut pins = Vec::new();
        assert!(throw(&mut pins, 900).is_empty());
        assert!(throw(&mut pins, 500).is_empty(), "a filter of the first throws");
        assert_eq!(throw(&mut pins, 500), [500], "and again");
        assert!(throw(&mut pins, 300).is_empty());
        assert_eq!(throw(&mut pins, 600), [500, 300]);
        assert_eq!(throw(&mut pins, 900), [900, 600]);
        assert_eq!(pins.len(), 1);
    }

    #[test]
    fn a_thread_holds_no_more_exceptions_than_it_may() {
        let mut pins = Vec::new();
        let done: Vec<usize> = (0..=MOST).flat_map(|at| throw(&mut pins, 10_000 - at)).collect();
        assert_eq!((pins.len(), done), (MOST, vec![10_000]));
    }
}
