//! Return addresses that the runtime has replaced by its own.
//!
//! To stop a thread that runs compiled code which can't be stopped where it is, the runtime puts
//! the address of a function of its own in place of the return address of the innermost method, and
//! keeps the true one in its object for the thread, next to the place of the stack where it stood
//! (`Thread::HijackThread` in `src/coreclr/vm/threadsuspend.cpp`). A thread's identifier is the
//! address of that object. Where in it the two words lie is no promise of the runtime's, and is
//! learnt: the second is the place on the stack, and the first is where a call returns to.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use clr_profiler::ThreadId;
use clrscope_agent_base::os::memory::{copy_if_there, copy_while_there};
use clrscope_recording::writer::monotonic_ns;

use super::raw::RawSample;

/// Bytes of the runtime's object for a thread that are searched.
const SEARCHED: usize = 4096;

/// The runtime's objects for threads, as callbacks tell of them.
#[derive(Debug, Default)]
pub(super) struct RuntimeThreads {
    /// Addresses of the objects, by the system's number of the thread.
    known: Mutex<HashMap<u32, usize>>,
    /// Monotonic nanoseconds when the runtime last began to stop the threads.
    stopping_ns: AtomicU64,
}

impl RuntimeThreads {
    fn known(&self) -> MutexGuard<'_, HashMap<u32, usize>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A thread of the system runs a thread of the runtime's from now on.
    pub(super) fn assigned(&self, thread: ThreadId, os_id: u32) {
        self.known().insert(os_id, thread.as_raw());
    }

    /// A thread of the runtime's is gone, and its object with it.
    pub(super) fn destroyed(&self, thread: ThreadId) {
        self.known().retain(|_, known| *known != thread.as_raw());
    }

    /// The runtime begins to stop the threads.
    pub(super) fn stop_begins(&self) {
        self.stopping_ns.store(monotonic_ns(), Ordering::Release);
    }

    fn with_os_id(&self, os_id: u32) -> Option<usize> {
        self.known().get(&os_id).copied()
    }

    fn stopped_since(&self, time_ns: u64) -> bool {
        self.stopping_ns.load(Ordering::Acquire) > time_ns
    }
}

/// Finds return addresses that were replaced.
pub(crate) struct Hijacks {
    threads: &'static RuntimeThreads,
    /// Bytes from the beginning of the runtime's object for a thread to the true return address,
    /// once that was learnt.
    offset: Option<usize>,
}

impl Hijacks {
    pub(super) fn new(threads: &'static RuntimeThreads) -> Self {
        Self { threads, offset: None }
    }

    /// The return address that stood at `place` of the stack of a sample's thread, and whether that
    /// is certain: by the runtime's object for the thread, where that says so still, otherwise by
    /// what stands there now. `is_return_address` says whether a call returns to an address.
    pub(super) fn replaced(
        &mut self,
        sample: &RawSample,
        place: usize,
        mut is_return_address: impl FnMut(usize) -> bool,
    ) -> Option<(usize, bool)> {
        // A later stop may have replaced another address at the same place.
        let is_certain = !self.threads.stopped_since(sample.time_ns);
        let kept = self.threads.with_os_id(sample.os_id).and_then(|thread| self.kept(thread, place));
        if let Some((ip, offset)) = kept.filter(|(ip, _)| is_return_address(*ip)) {
            self.offset = Some(offset);
            return Some((ip, is_certain));
        }
        // The runtime puts the true address back when the thread goes on.
        let mut word = [0; 8];
        let now = copy_if_there(place, &mut word).then(|| usize::from_le_bytes(word))?;
        is_return_address(now).then_some((now, false))
    }

    /// The word in front of the one that names the place on the stack, and its offset.
    fn kept(&self, start: usize, place: usize) -> Option<(usize, usize)> {
        let mut bytes = [0; SEARCHED];
        let (offset, length) = self.offset.map_or((0, SEARCHED), |offset| (offset, 16));
        let there = copy_while_there(start.checked_add(offset)?, &mut bytes[..length]);
        find_pair(&bytes[..there], place).map(|(ip, at)| (ip, offset + at))
    }
}

/// The first word that is followed by `place`, and its offset.
fn find_pair(bytes: &[u8], place: usize) -> Option<(usize, usize)> {
    let words = bytes.as_chunks().0;
    let at = words.windows(2).position(|pair| usize::from_le_bytes(pair[1]) == place)?;
    Some((usize::from_le_bytes(words[at]), 8 * at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampling::raw::Registers;

    #[test]
    fn a_replaced_return_address_is_found_in_the_runtimes_object_wherever_it_keeps_it() {
        static THREADS: std::sync::LazyLock<RuntimeThreads> = std::sync::LazyLock::new(RuntimeThreads::default);
        let mut object = [0_usize; 64];
        (object[20], object[21], object[40], object[41]) = (0x77, 0x5000, 0x88, 0x6000);
        let start = std::hint::black_box(&mut object).as_mut_ptr().expose_provenance();
        THREADS.known().insert(5, start);
        let mut hijacks = Hijacks::new(&THREADS);
        let registers = Registers { ip: 1, sp: 0x4000, bp: 0 };
        let sample = RawSample { registers, os_id: 5, time_ns: 10, ..RawSample::default() };
        let is_return_address = |ip: usize| ip == 0x77;
        assert_eq!(hijacks.replaced(&sample, 0x6000, is_return_address), None, "no call returns there");
        assert_eq!(hijacks.offset, None);
        assert_eq!(hijacks.replaced(&sample, 0x5000, is_return_address), Some((0x77, true)));
        assert_eq!(hijacks.offset, Some(160));
        assert_eq!(hijacks.replaced(&sample, 0x6000, |_| true), None, "it is known where the words lie");
        THREADS.stop_begins();
        assert_eq!(hijacks.replaced(&sample, 0x5000, is_return_address), Some((0x77, false)), "stopped again since");
        THREADS.known().clear();
        assert_eq!(hijacks.replaced(&sample, 0x5000, is_return_address), None);
        std::hint::black_box(&object);
    }
}
