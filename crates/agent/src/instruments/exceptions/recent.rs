//! The functions that a thread's exceptions were about last: most programs throw along the same few paths.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use clr_profiler::FunctionId;
use clrscope_recording::events::Thing;

/// Functions that are remembered. A power of two.
const SLOTS: usize = 64;

/// What one thread remembers. Only that thread uses it; the atomics are for the compiler's peace.
pub(super) struct Recent {
    slots: [Slot; SLOTS],
}

#[derive(Default)]
struct Slot {
    function: AtomicUsize,
    epoch: AtomicU64,
    index: AtomicU32,
}

impl Default for Recent {
    fn default() -> Self {
        Self { slots: std::array::from_fn(|_| Slot::default()) }
    }
}

impl Recent {
    fn slot(&self, function: FunctionId) -> &Slot {
        // Method descriptions lie 8 bytes apart at least, often at round distances.
        let mixed = (function.0 >> 3).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        &self.slots[mixed >> (usize::BITS - SLOTS.trailing_zeros())]
    }

    /// The function, if it was seen since the last unload.
    pub(super) fn get(&self, function: FunctionId, epoch: u64) -> Option<Thing> {
        let slot = self.slot(function);
        let same = slot.function.load(Ordering::Relaxed) == function.0 && slot.epoch.load(Ordering::Relaxed) == epoch;
        same.then(|| Thing { id: function.0 as u64, index: slot.index.load(Ordering::Relaxed) })
    }

    /// Remembers it, in place of another.
    pub(super) fn put(&self, function: FunctionId, thing: Thing, epoch: u64) {
        let slot = self.slot(function);
        slot.function.store(function.0, Ordering::Relaxed);
        slot.epoch.store(epoch, Ordering::Relaxed);
        slot.index.store(thing.index, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_unloaded_is_forgotten() {
        let recent = Recent::default();
        let function = FunctionId(0x7000_1238);
        assert_eq!(recent.get(function, 0), None);
        let thing = Thing { id: 0x7000_1238, index: 9 };
        recent.put(function, thing, 0);
        assert_eq!((recent.get(function, 0), recent.get(function, 1)), (Some(thing), None));
        assert_eq!(recent.get(FunctionId(0x7000_1240), 0), None);
    }
}
