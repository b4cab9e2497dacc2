//! Return addresses that the runtime has replaced.
//!
//! The runtime may have to stop a thread in compiled code that can't be stopped at its current
//! instruction. Then it replaces the return address of the innermost method by the address of a
//! function of its own. It keeps the true address in its object for the thread, next to the
//! replaced address's position on the stack (`Thread::HijackThread` in
//! `src/coreclr/vm/threadsuspend.cpp`). A thread's identifier is the address of that object. The
//! runtime does not promise the offset of the two words in it, so the offset is learnt: the second
//! word is the position on the stack, and the first word is a return address.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use clr_profiler::ThreadId;
use clrscope_agent_base::os::memory::{copy_if_there, copy_while_there};
use clrscope_recording::writer::monotonic_ns;

use super::raw::RawSample;

/// Bytes of the runtime's object for a thread that are searched.
const SEARCHED: usize = 4096;

/// The runtime's objects for threads, as callbacks report them.
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

    /// Call it when a thread of the system begins to run a managed thread.
    pub(super) fn assigned(&self, thread: ThreadId, os_id: u32) {
        self.known().insert(os_id, thread.as_raw());
    }

    /// Call it when a managed thread is gone, together with its object.
    pub(super) fn destroyed(&self, thread: ThreadId) {
        self.known().retain(|_, known| *known != thread.as_raw());
    }

    /// Call it when the runtime begins to stop the threads.
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

/// Finds the true return addresses for those that the runtime replaced.
pub(crate) struct Hijacks {
    threads: &'static RuntimeThreads,
    /// Offset of the true return address in the runtime's object for a thread, once that was
    /// learnt.
    offset: Option<usize>,
}

impl Hijacks {
    pub(super) fn new(threads: &'static RuntimeThreads) -> Self {
        Self { threads, offset: None }
    }

    /// The return address that was at `place` on the stack of a sample's thread, and whether it is
    /// certain. The address comes from the runtime's object for the thread, if that object still
    /// refers to `place`, and otherwise from the current contents of `place`. `is_return_address`
    /// says whether a call returns to an address.
    pub(super) fn replaced(
        &mut self,
        sample: &RawSample,
        place: usize,
        mut is_return_address: impl FnMut(usize) -> bool,
    ) -> Option<(usize, bool)> {
        // A later suspension may have replaced another address at the same place.
        let is_certain = !self.threads.stopped_since(sample.time_ns);
        let kept = self.threads.with_os_id(sample.os_id).and_then(|thread| self.kept(thread, place));
        if let Some((ip, offset)) = kept.filter(|(ip, _)| is_return_address(*ip)) {
            self.offset = Some(offset);
            return Some((ip, is_certain));
        }
        // The runtime restores the true address when the thread resumes.
        let mut word = [0; 8];
        let now = copy_if_there(place, &mut word).then(|| usize::from_le_bytes(word))?;
        is_return_address(now).then_some((now, false))
    }

    /// The word before the one that holds the position on the stack, and its offset.
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
