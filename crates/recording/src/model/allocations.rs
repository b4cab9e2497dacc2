//! Allocations of objects: the records of `alloc`, and how they were sampled.

use crate::codec::{numbered, record};
use crate::layout::{allocation, u32_at, u64_at};

/// One object, in the unit of [`Allocation::objects_weight`].
const ONE: u64 = 1024;

/// One record of `alloc`; see [`layout::allocation`](crate::layout::allocation) for its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Allocation {
    /// Nanoseconds from the start of the process's recording until the record was begun.
    pub time_ns: u64,
    /// Number of recorded objects.
    pub objects: u64,
    /// Bytes of these objects.
    pub bytes: u64,
    /// Bytes that the objects represent: their own if each object is recorded, more if they are
    /// sampled.
    pub weight: u64,
    /// Number of objects that the recorded ones represent, in 1024ths: one each if every object is
    /// recorded, more if they are sampled.
    pub objects_weight: u64,
    /// Sum of squares: for each sampled object, the square of the number of objects that it
    /// represents; 0 if every object is recorded.
    pub squares: u64,
    /// Index into [`Process::types`](super::Process::types), 0 if unknown.
    pub object_type: u32,
    /// Number of the [stack](super::Stacks), 0 for none.
    pub stack: u32,
    /// The heap that contains the objects.
    pub heap: ObjectHeap,
    /// Meaning of the record.
    pub kind: AllocationKind,
    /// Number of the tracked object, from 1; 0 if none.
    pub object: u32,
    /// Number of collections in the process that had ended when the object was allocated, or when
    /// it was found to be gone.
    pub collections: u64,
}

impl Allocation {
    /// Estimated number of objects that the record represents.
    #[must_use]
    pub fn estimated_objects(&self) -> f64 {
        self.objects_weight as f64 / ONE as f64
    }

    /// The stored form of the record.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; allocation::BYTES] {
        let mut bytes = [0; allocation::BYTES];
        let numbers = [
            (allocation::TIME, self.time_ns),
            (allocation::OBJECTS, self.objects),
            (allocation::SIZE, self.bytes),
            (allocation::BEYOND, self.weight.saturating_sub(self.bytes)),
            (allocation::OBJECTS_BEYOND, self.objects_weight.saturating_sub(self.objects.saturating_mul(ONE))),
            (allocation::SQUARES, self.squares),
            (allocation::COLLECTIONS, self.collections),
        ];
        for (at, value) in numbers {
            bytes[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
        let words = [
            (allocation::TYPE, self.object_type),
            (allocation::STACK, self.stack),
            (allocation::FLAGS, self.heap as u32 | (self.kind as u32) << allocation::KIND),
            (allocation::OBJECT, self.object),
        ];
        for (at, value) in words {
            bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        }
        bytes
    }

    /// The records in a chunk's bytes; a truncated record is left out.
    pub fn all(chunk: &[u8]) -> impl Iterator<Item = Self> {
        chunk.chunks_exact(allocation::BYTES).map(|bytes| {
            let flags = u32_at(bytes, allocation::FLAGS);
            let (objects, size) = (u64_at(bytes, allocation::OBJECTS), u64_at(bytes, allocation::SIZE));
            let objects_beyond = u64_at(bytes, allocation::OBJECTS_BEYOND);
            Self {
                time_ns: u64_at(bytes, allocation::TIME),
                objects,
                bytes: size,
                weight: size.saturating_add(u64_at(bytes, allocation::BEYOND)),
                objects_weight: objects.saturating_mul(ONE).saturating_add(objects_beyond),
                squares: u64_at(bytes, allocation::SQUARES),
                object_type: u32_at(bytes, allocation::TYPE),
                stack: u32_at(bytes, allocation::STACK),
                heap: ObjectHeap::from_number(flags & 0xFF),
                kind: AllocationKind::from_number(flags >> allocation::KIND & 0xFF),
                object: u32_at(bytes, allocation::OBJECT),
                collections: u64_at(bytes, allocation::COLLECTIONS),
            }
        })
    }
}

by_number! {
    /// The heap that contains an object.
    ObjectHeap {
        /// The heap of small objects: generations 0 to 2.
        #[default]
        Small = 0 "small",
        /// The large object heap.
        Large = 1 "large",
        /// The pinned object heap.
        Pinned = 2 "pinned",
    }
}

by_number! {
    /// Meaning of a record of `alloc`.
    AllocationKind {
        /// Allocated objects.
        #[default]
        Allocated = 0 "allocated",
        /// A tracked object is gone: its number, and the time of detection.
        Gone = 1 "gone",
        /// The number of collections that had ended at a time.
        Collections = 2 "collections",
        /// An object that is tracked from now on. Other records count it among the allocated
        /// objects.
        Followed = 3 "followed",
    }
}

/// Source of the allocation events.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u32)]
pub enum AllocationEngine {
    /// Unknown.
    #[default]
    Unknown = 0,
    /// Every object is recorded, with the runtime's callback.
    Exact = 1,
    /// Sampled with the same probability for each byte, with the runtime's randomized events (.NET
    /// 10).
    Randomized = 2,
    /// Sampled with the runtime's allocation ticks: the object that completes another 100 KiB.
    Ticks = 3,
}

numbered!(AllocationEngine: Unknown, Exact, Randomized, Ticks);

impl AllocationEngine {
    /// The name in JSON and in tables.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Exact => "exact",
            Self::Randomized => "randomized",
            Self::Ticks => "ticks",
        }
    }
}

record! {
    /// Sampling of allocations: how `alloc` recorded them in one process.
    #[derive(Debug, Clone, Default, PartialEq, Eq)]
    pub struct AllocationSampling {
        /// Engine for objects on the small object heap.
        pub engine: AllocationEngine,
        /// Mean number of bytes between two samples; 0 if every object is recorded.
        pub mean_bytes: u64,
        /// Whether every object of the large object heap is recorded.
        pub large_exact: bool,
        /// Whether every object of the pinned object heap is recorded.
        pub pinned_exact: bool,
        /// Whether objects are tracked until they are gone.
        pub follows: bool,
        /// Memory in bytes of the instrument's own tables, without the recorded data, when the
        /// record was written. Only earlier versions write this; see
        /// [`OwnMemory`](super::OwnMemory).
        pub own_bytes: u64,
        /// One sentence: why a better engine was not used and what would allow it. Empty if there
        /// is no better engine.
        pub why_engine: String,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_come_back_and_a_cut_one_is_none() {
        let record = |number: u32| Allocation {
            time_ns: u64::MAX - u64::from(number),
            objects: 7 << 40,
            bytes: 8 << 50,
            weight: u64::MAX,
            objects_weight: (7 << 50) + 9,
            squares: 1 << 61,
            object_type: number,
            stack: u32::MAX,
            heap: ObjectHeap::ALL[number as usize % ObjectHeap::ALL.len()],
            kind: AllocationKind::ALL[number as usize % AllocationKind::ALL.len()],
            object: 9,
            collections: 1 << 60,
        };
        let all: Vec<_> = (0..9).map(record).collect();
        let mut bytes: Vec<u8> = all.iter().flat_map(Allocation::to_bytes).collect();
        bytes.pop();
        assert_eq!(Allocation::all(&bytes).collect::<Vec<_>>(), all[..8]);
    }
}
