//! What a thread's exceptions were about last: most programs throw along the same few paths.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// Things that are remembered. A power of two.
const SLOTS: usize = 128;

/// The numbers of functions and classes, which all lie at different places in memory. Only its thread uses
/// it; the atomics make it shareable, not shared.
pub(super) struct Recent {
    slots: [Slot; SLOTS],
}

#[derive(Default)]
struct Slot {
    id: AtomicUsize,
    epoch: AtomicU64,
    index: AtomicU32,
}

impl Default for Recent {
    fn default() -> Self {
        Self { slots: std::array::from_fn(|_| Slot::default()) }
    }
}

impl Recent {
    fn slot(&self, id: usize) -> &Slot {
        // Descriptions of methods and classes lie 8 bytes apart at least, often at round distances.
        let mixed = (id >> 3).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        &self.slots[mixed >> (usize::BITS - SLOTS.trailing_zeros())]
    }

    /// The number of `id`, asked for with `find` once as long as nothing is unloaded. `epoch` counts unloads.
    #[inline]
    pub(super) fn get(&self, id: usize, epoch: u64, find: impl FnOnce() -> u32) -> u32 {
        let slot = self.slot(id);
        if slot.id.load(Ordering::Relaxed) == id && slot.epoch.load(Ordering::Relaxed) == epoch {
            return slot.index.load(Ordering::Relaxed);
        }
        let index = find();
        slot.id.store(id, Ordering::Relaxed);
        slot.epoch.store(epoch, Ordering::Relaxed);
        slot.index.store(index, Ordering::Relaxed);
        index
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_unloaded_is_asked_for_again() {
        let recent = Recent::default();
        let ask = |id, epoch, answer| {
            let mut asked = false;
            let found = recent.get(id, epoch, || {
                asked = true;
                answer
            });
            (found, asked)
        };
        assert_eq!(ask(0x7000_1238, 1, 9), (9, true));
        assert_eq!(ask(0x7000_1238, 1, 0), (9, false));
        assert_eq!(ask(0x7000_1238, 2, 10), (10, true));
        assert_eq!(ask(0x7000_1240, 2, 4), (4, true));
    }
}
