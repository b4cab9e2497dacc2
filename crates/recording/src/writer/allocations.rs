//! Records of allocations whose numbers grow while the program runs.

use std::sync::atomic::Ordering;

use super::Chunk;
use super::fields::Fields;
use crate::layout::allocation;
use crate::model::Allocation;

/// A record of allocations in a chunk. Only the thread that took the chunk may add to the record;
/// the memory stays mapped for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AllocationCell(Fields<{ allocation::BYTES }>);

impl AllocationCell {
    /// Adds an object of `bytes` bytes.
    #[inline]
    pub fn add(self, bytes: u64) {
        self.0.add_alone(allocation::OBJECTS, 1);
        self.0.add_alone(allocation::SIZE, bytes);
    }

    /// Adds a sampled object of `bytes` bytes, which represents `weight` allocated bytes. `weight`
    /// is at least `bytes`.
    #[inline]
    pub fn add_sampled(self, bytes: u64, weight: u64) {
        let (bytes, weight) = (bytes.max(1), weight.max(bytes).max(1));
        let stands_for = weight as f64 / bytes as f64;
        self.add(bytes);
        self.0.add_alone(allocation::BEYOND, weight - bytes);
        self.0.add_alone(allocation::OBJECTS_BEYOND, ((stands_for - 1.0) * 1024.0) as u64);
        self.0.add_alone(allocation::SQUARES, (stands_for * stands_for) as u64);
    }

    /// Sets the number of the stack. Any thread may call this.
    pub fn set_stack(self, stack: u32) {
        self.0.u32(allocation::STACK).store(stack, Ordering::Relaxed);
    }
}

impl Chunk {
    /// Appends a record of allocations and publishes it; `None` if the chunk has no room. Only for
    /// the thread that took the chunk.
    pub fn append_allocation(self, record: &Allocation, mono_ns: u64) -> Option<AllocationCell> {
        let at = self.used();
        if !self.append(&record.to_bytes(), mono_ns) {
            return None;
        }
        // SAFETY: the record that was just written: within the chunk, which is backed and stays
        // mapped. A chunk's bytes begin at a multiple of eight, and hold records of a multiple of
        // eight bytes and nothing else.
        Some(AllocationCell(unsafe { Fields::at(self.payload().add(at)) }))
    }
}
