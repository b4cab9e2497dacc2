//! Remembers the objects that were thrown, to tell the first throw of an object from later ones.
//!
//! `throw;` and an exception rethrown by `await` keep the stack trace in the object. At `throw e;`
//! the runtime has removed the stack trace before it reports the throw, and nothing in the object
//! shows that it was thrown before. So weak handles, which keep nothing alive, follow the objects,
//! and an object is found by its address. Only collections move them: the first throw after a
//! collection asks for all addresses again.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use clr_profiler::{HandleKind, ObjectHandle, ObjectId, ProfilerInfo};
use rustc_hash::FxHashMap;

/// Most objects of one generation; when it is full, the objects of the previous generation are
/// forgotten.
const MOST: usize = 8_192;

/// The objects that were thrown and are alive.
pub(super) struct ThrownObjects {
    info: ProfilerInfo,
    /// Collections that have begun.
    collections: AtomicU64,
    /// `None` once the agent has released all handles of the runtime.
    known: Mutex<Option<Known<ObjectHandle>>>,
}

/// Handles by the addresses of their objects.
struct Known<H> {
    /// Number of collections when the addresses were asked for.
    as_of: u64,
    young: FxHashMap<usize, H>,
    old: FxHashMap<usize, H>,
}

impl ThrownObjects {
    /// Starts without objects.
    pub(super) fn new(info: &ProfilerInfo) -> Self {
        Self { info: info.clone(), collections: AtomicU64::new(0), known: Mutex::new(Some(Known::default())) }
    }

    /// Call it when a collection begins, as it moves objects.
    pub(super) fn collection_begins(&self) {
        self.collections.fetch_add(1, Ordering::AcqRel);
    }

    /// Releases all handles. Call it when no callback about exceptions comes any more.
    pub(super) fn release(&self) {
        let all = self.known().take();
        drop(all);
    }

    /// Notes a throw, and returns whether the object was thrown before. Called in the callback
    /// about the throw, where no collection can move the object. `is_traced`: the object carries a
    /// stack trace.
    pub(super) fn is_thrown_again(&self, exception: ObjectId<'_>, is_traced: bool) -> bool {
        let address = exception.address();
        // Handles are made and freed while the lock is not held.
        let (gone, is_known) = {
            let mut known = self.known();
            let Some(known) = &mut *known else { return is_traced };
            let gone = known.up_to_date(self.collections.load(Ordering::Acquire), place_now);
            (gone, known.has(address))
        };
        drop(gone);
        if is_known {
            return true;
        }
        // The runtime refuses a handle where it has no memory, or is a fake one.
        let Ok(handle) = self.info.create_handle(exception, HandleKind::Weak) else { return is_traced };
        let left = match &mut *self.known() {
            Some(known) => known.add(address, handle),
            None => Left::Nothing,
        };
        // Two threads may throw the same object at once, and the other thread was first.
        is_traced || matches!(left, Left::Second(_))
    }

    fn known(&self) -> MutexGuard<'_, Option<Known<ObjectHandle>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Address of the object of a handle; `None` once it was collected.
fn place_now(handle: &ObjectHandle) -> Option<usize> {
    handle.with(|object| object.map(|object| object.address())).ok().flatten()
}

/// Handles that are not needed, to be freed after the lock is released.
enum Left<H> {
    Nothing,
    /// All handles of a generation that was forgotten.
    #[expect(dead_code, reason = "held until it is dropped")]
    Forgotten(FxHashMap<usize, H>),
    /// Another handle of an object that has a handle already.
    Second(H),
}

impl<H> Default for Known<H> {
    fn default() -> Self {
        Self { as_of: 0, young: FxHashMap::default(), old: FxHashMap::default() }
    }
}

impl<H> Known<H> {
    /// Asks for the objects' addresses, if there was a collection since the last time. Returns the
    /// handles of objects that are gone.
    fn up_to_date(&mut self, collections: u64, place_now: impl Fn(&H) -> Option<usize>) -> Vec<H> {
        let mut gone = Vec::new();
        if self.as_of == collections {
            return gone;
        }
        self.as_of = collections;
        for generation in [&mut self.young, &mut self.old] {
            for (_, handle) in std::mem::take(generation) {
                match place_now(&handle) {
                    Some(address) => drop(generation.insert(address, handle)),
                    None => gone.push(handle),
                }
            }
        }
        gone
    }

    /// Whether the object at this address was thrown. An object that is thrown again is kept
    /// longer.
    fn has(&mut self, address: usize) -> bool {
        let of_old = self.old.remove(&address);
        if let Some(handle) = of_old {
            self.young.insert(address, handle);
            return true;
        }
        self.young.contains_key(&address)
    }

    fn add(&mut self, address: usize, handle: H) -> Left<H> {
        if self.has(address) {
            return Left::Second(handle);
        }
        let is_full = self.young.len() >= MOST;
        let left = if is_full {
            Left::Forgotten(std::mem::replace(&mut self.old, std::mem::take(&mut self.young)))
        } else {
            Left::Nothing
        };
        self.young.insert(address, handle);
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_again(known: &mut Known<usize>, address: usize) -> bool {
        matches!(known.add(address, address), Left::Second(_))
    }

    #[test]
    fn an_object_is_known_where_a_collection_has_moved_it() {
        let mut known = Known::default();
        assert_eq!([8, 16, 8].map(|address| is_again(&mut known, address)), [false, false, true]);
        // The first is collected, and the second lies where the first was.
        let gone = known.up_to_date(1, |&handle| (handle == 16).then_some(8));
        assert_eq!(gone, [8]);
        assert_eq!([8, 16].map(|address| is_again(&mut known, address)), [true, false]);
        assert!(known.up_to_date(1, |_| None).is_empty(), "asked once for each collection");
    }

    #[test]
    fn the_last_ones_are_known_and_those_that_are_thrown_all_the_time() {
        let mut known = Known::default();
        for address in 1..=3 * MOST {
            assert!(!is_again(&mut known, address * 8));
            assert_eq!(is_again(&mut known, 4), address > 1);
        }
        assert!(known.young.len() + known.old.len() <= 2 * MOST);
        assert!(is_again(&mut known, 3 * MOST * 8) && !is_again(&mut known, 8));
    }
}
