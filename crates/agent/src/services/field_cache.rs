//! Cache of the encoded fields that a thread has written. It helps because most programs throw
//! exceptions on the same few paths.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use clrscope_recording::events::ShortFields;

/// Entries of the cache. A power of two.
const SLOTS: usize = 128;

/// The encoded functions and classes, by their identifiers. Identifiers are addresses and therefore
/// distinct. Only the owning thread uses the cache. The atomics only satisfy `Sync`.
pub(crate) struct FieldCache {
    slots: [Slot; SLOTS],
}

#[derive(Default)]
struct Slot {
    id: AtomicUsize,
    epoch: AtomicU64,
    fields: AtomicU64,
}

impl Default for FieldCache {
    fn default() -> Self {
        Self { slots: std::array::from_fn(|_| Slot::default()) }
    }
}

impl FieldCache {
    #[inline]
    fn slot(&self, id: usize) -> &Slot {
        // Descriptions of methods and classes lie 8 bytes apart at least, often at round distances.
        let mixed = (id >> 3).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        &self.slots[mixed >> (usize::BITS - SLOTS.trailing_zeros())]
    }

    /// Drops all entries. Call it when another recording begins.
    pub(crate) fn clear(&self) {
        self.slots.iter().for_each(|slot| slot.id.store(0, Ordering::Relaxed));
    }

    /// The encoded fields of `id`. `find` makes them at the first call, and again after an unload.
    /// `epoch` is the number of unloads so far.
    #[inline]
    pub(crate) fn get(&self, id: usize, epoch: u64, find: impl FnOnce() -> ShortFields) -> ShortFields {
        let slot = self.slot(id);
        if slot.id.load(Ordering::Relaxed) == id && slot.epoch.load(Ordering::Relaxed) == epoch {
            return ShortFields::from_bits(slot.fields.load(Ordering::Relaxed));
        }
        let fields = find();
        slot.id.store(id, Ordering::Relaxed);
        slot.epoch.store(epoch, Ordering::Relaxed);
        slot.fields.store(fields.to_bits(), Ordering::Relaxed);
        fields
    }
}

#[cfg(test)]
mod tests {
    use clrscope_recording::events::Tag;

    use super::*;

    #[test]
    fn what_was_unloaded_is_asked_for_again() {
        let cache = FieldCache::default();
        let ask = |id, epoch, answer| {
            let mut asked = false;
            let found = cache.get(id, epoch, || {
                asked = true;
                ShortFields::numbered(Tag::FUNCTION, answer)
            });
            (found, asked)
        };
        let answer = |index, asked| (ShortFields::numbered(Tag::FUNCTION, index), asked);
        assert_eq!(ask(0x7000_1238, 1, 9), answer(9, true));
        assert_eq!(ask(0x7000_1238, 1, 0), answer(9, false));
        assert_eq!(ask(0x7000_1238, 2, 10), answer(10, true));
        assert_eq!(ask(0x7000_1240, 2, 4), answer(4, true));
    }
}
