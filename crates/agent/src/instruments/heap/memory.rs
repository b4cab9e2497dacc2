//! Memory of the managed heap while the program is suspended.

use std::sync::atomic::AtomicU64;

use clr_profiler::HeapRange;

/// Proves that the program is suspended, and that the heap ranges are where the runtime says.
pub(super) struct StopProof(());

impl StopProof {
    /// Makes the proof, in a callback in which the runtime gives the addresses of objects.
    ///
    /// # Safety
    /// The caller is in
    /// [`garbage_collection_started`](clr_profiler::Callbacks::garbage_collection_started) or
    /// [`garbage_collection_finished`](clr_profiler::Callbacks::garbage_collection_finished), and
    /// drops the proof before it returns.
    pub(super) unsafe fn in_collection() -> Self {
        Self(())
    }

    /// The words of a heap range. The runtime must have given the range in this callback.
    pub(super) fn words<'s>(&'s self, range: &HeapRange) -> &'s [AtomicU64] {
        if range.start == 0 || !range.start.is_multiple_of(8) {
            return &[];
        }
        let start = std::ptr::with_exposed_provenance::<AtomicU64>(range.start);
        // SAFETY: the runtime has just said that these bytes of the heap are in use, and frees no
        // memory before the callback returns; the proof does not outlive the callback. Native code
        // that has pinned an object may write to it meanwhile, so the words are atomic; any bytes
        // are valid numbers.
        unsafe { std::slice::from_raw_parts(start, range.bytes / 8) }
    }
}
