//! Calls of probed methods, counted for each path of callers. Each thread adds to its own records.

use std::sync::atomic::Ordering;

use super::Chunk;
use super::fields::Fields;
use crate::layout::probe_callers as layout;
use crate::model::ProbeCaller;

/// A record of calls in a chunk. Only the thread that owns the record may add to it. The memory
/// stays mapped for ever, so that a call may keep the address until it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallerCell(Fields<{ layout::BYTES }>);

impl CallerCell {
    /// The record at an address from [`address`](Self::address); `None` for 0.
    ///
    /// # Safety
    /// Any other address must come from [`address`](Self::address) of a record of this process.
    #[must_use]
    #[inline]
    pub unsafe fn at(address: usize) -> Option<Self> {
        // SAFETY: the caller's promise: a record, which is aligned and stays mapped.
        (address != 0).then(|| Self(unsafe { Fields::at(std::ptr::with_exposed_provenance_mut(address)) }))
    }

    /// Address of the record, for code that passes it back.
    #[must_use]
    #[inline]
    pub fn address(self) -> usize {
        self.0.address().expose_provenance()
    }

    /// Whether the record belongs to this path of this thread.
    #[must_use]
    #[inline]
    pub fn is_of(self, thread: u32, path: u64) -> bool {
        let (of, on) = (self.0.u32(layout::THREAD), self.0.u64(layout::PATH));
        on.load(Ordering::Relaxed) == path && of.load(Ordering::Relaxed) == thread
    }

    /// Counts the beginning of a call.
    #[inline]
    pub fn begin(self) {
        self.0.add_alone(layout::CALLS, 1);
    }

    /// Counts the end of a call that took `ticks` ticks.
    #[inline]
    pub fn end(self, ticks: u64, has_failed: bool) {
        self.0.add_alone(layout::TICKS, ticks);
        self.0.add_alone(layout::ENDED, 1);
        if has_failed {
            self.0.add_alone(layout::FAILED, 1);
        }
    }

    /// One bit per caller on the path. A set bit says that no frame pointer leads to the next
    /// callers.
    #[must_use]
    #[inline]
    pub fn gaps(self) -> u32 {
        self.0.u32(layout::GAPS).load(Ordering::Relaxed)
    }

    /// Sets the bits of [`gaps`](Self::gaps). Any thread may call this.
    pub fn set_gaps(self, gaps: u32) {
        self.0.u32(layout::GAPS).store(gaps, Ordering::Relaxed);
    }

    /// Sets the number of the stack. Any thread may call this.
    pub fn set_stack(self, stack: u32) {
        self.0.u32(layout::STACK).store(stack, Ordering::Relaxed);
    }
}

impl Chunk {
    /// Appends a record of calls by callers and publishes it; `None` if the chunk has no room. Only
    /// one thread at a time may append to the chunk.
    pub fn append_caller(self, record: &ProbeCaller, mono_ns: u64) -> Option<CallerCell> {
        let at = self.used();
        if !self.append(&record.to_bytes(), mono_ns) {
            return None;
        }
        // SAFETY: the record that was just written: within the chunk, which is backed and stays
        // mapped. A chunk's bytes begin at a multiple of eight, and hold records of a multiple of
        // eight bytes and nothing else.
        Some(CallerCell(unsafe { Fields::at(self.payload().add(at)) }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::writer::{EventStore, Keep};

    #[test]
    fn calls_are_added_to_the_record_that_an_address_leads_to() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = EventStore::create_slow(&folder.path().join("callers.seg"), 1 << 20, Keep::First).expect("a store");
        let chunk = store.allocate_chunk(0, 4 << 10, 1).expect("a chunk");
        let record = |method| ProbeCaller { method, thread: 3, path: 7 << 40, ..ProbeCaller::default() };
        let [first, second] = [1, 2].map(|method| chunk.append_caller(&record(method), 2).expect("room"));
        assert!(first.is_of(3, 7 << 40) && !first.is_of(2, 7 << 40) && !first.is_of(3, 7));
        // SAFETY: the record's own address.
        let again = unsafe { CallerCell::at(first.address()) }.expect("a record");
        (0..3).for_each(|_| again.begin());
        again.end(100, true);
        again.end(50, false);
        second.set_stack(9);
        // SAFETY: 0 is no address.
        assert!(unsafe { CallerCell::at(0) }.is_none());
        // SAFETY: what was published of a chunk that no thread writes to.
        let bytes = unsafe { std::slice::from_raw_parts(chunk.payload(), chunk.used()) };
        let counted = ProbeCaller { calls: 3, failed: 1, ended: 2, ticks: 150, ..record(1) };
        assert_eq!(ProbeCaller::all(bytes).collect::<Vec<_>>(), [counted, ProbeCaller { stack: 9, ..record(2) }]);
    }
}
