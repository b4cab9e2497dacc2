//! Identifiers of classes, functions and assemblies whose module can be unloaded, as far as the
//! profiler queried them. Once the module is gone, queries about them are refused.
//!
//! An identifier is the address of a structure of the runtime. The runtime may reuse the address
//! for another class or function. So an identifier that the runtime hands out is alive, whatever
//! the table says about it ([`ClassId::received`] and the same methods of the other types). One
//! table serves the process, as identifiers are addresses in the process. The table stays empty if
//! no module can be unloaded, and then no lookup happens.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

use crate::unloads::{InModule, ModuleLife};
use crate::{AssemblyId, ClassId, FunctionId, Result};

/// Maximum number of identifiers. At this number the table drops identifiers whose module is gone.
const MOST: usize = 1 << 16;

static MEMBERS: Members = Members::new();

struct Members {
    any: AtomicBool,
    /// A bit per identifier, by hash; several identifiers may share a bit. If the bit is not set,
    /// the identifier is not in the table.
    filter: [AtomicU64; 64],
    lives: RwLock<Option<HashMap<usize, ModuleLife>>>,
}

impl Members {
    const fn new() -> Self {
        Self { any: AtomicBool::new(false), filter: [const { AtomicU64::new(0) }; 64], lives: RwLock::new(None) }
    }

    /// Word and bit of an identifier in the filter.
    fn bit(&self, id: usize) -> (&AtomicU64, u64) {
        let mixed = (id >> 3).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 52;
        (&self.filter[mixed >> 6], 1 << (mixed & 63))
    }

    fn note(&self, id: usize, life: &ModuleLife) {
        let mut lives = self.lives.write().unwrap_or_else(PoisonError::into_inner);
        let lives = lives.get_or_insert_default();
        if lives.len() >= MOST {
            lives.retain(|_, life| !life.is_over());
        }
        lives.insert(id, life.clone());
        let (word, bit) = self.bit(id);
        word.fetch_or(bit, Ordering::Release);
        self.any.store(true, Ordering::Release);
    }

    fn life(&self, id: usize) -> Option<ModuleLife> {
        if !self.any.load(Ordering::Acquire) {
            return None;
        }
        let (word, bit) = self.bit(id);
        if word.load(Ordering::Acquire) & bit == 0 {
            return None;
        }
        self.lives.read().unwrap_or_else(PoisonError::into_inner).as_ref()?.get(&id).cloned()
    }

    /// The runtime has just handed out the identifier, so it names something alive. Drops an old
    /// entry.
    #[inline]
    fn received(&self, id: usize) {
        if self.any.load(Ordering::Relaxed) {
            self.forget_if_gone(id);
        }
    }

    #[cold]
    fn forget_if_gone(&self, id: usize) {
        if self.life(id).is_some_and(|life| life.is_over()) {
            let mut lives = self.lives.write().unwrap_or_else(PoisonError::into_inner);
            lives.as_mut().and_then(|lives| lives.remove(&id));
        }
    }
}

macro_rules! members {
    ($($id:ident),*) => {$(
        impl $id {
            /// Makes an identifier that the runtime has just handed out.
            #[inline]
            pub(crate) fn received(raw: usize) -> Self {
                MEMBERS.received(raw);
                Self(raw)
            }

            /// Notes that this is unloaded together with the module of `life`.
            pub(crate) fn goes_with(self, life: &ModuleLife) {
                MEMBERS.note(self.0, life);
            }

            /// The life of the module with which this is unloaded, if known.
            pub(crate) fn life(self) -> Option<ModuleLife> {
                MEMBERS.life(self.0)
            }

            /// Begins a query about this identifier. A module that can be unloaded stays loaded
            /// until the query ends.
            ///
            /// # Errors
            /// A refusal with a reason if the module is gone.
            pub(crate) fn enter(self, method: &'static str) -> Result<Option<InModule>> {
                self.life().map(|life| life.enter_owned(method)).transpose()
            }
        }
    )*};
}

members!(ClassId, FunctionId, AssemblyId);

impl ClassId {
    /// Whether the runtime has reported that it unloads the module of this class. Tables with
    /// classes as keys use this to drop unloaded classes, because the runtime does not report the
    /// unload of array classes and of each instantiation of a generic class. Makes no query to the
    /// runtime, so it is safe everywhere.
    #[must_use]
    pub fn is_gone(self) -> bool {
        self.life().is_some_and(|life| life.is_over())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ModuleId;
    use crate::unloads::CollectibleModules;

    #[test]
    fn what_went_with_its_module_is_refused_until_the_identifier_is_handed_out_again() {
        let modules = CollectibleModules::default();
        let module = ModuleId(0x7777_0000);
        modules.loaded(module, true);
        let (class, other) = (ClassId::received(0x7777_0008), ClassId::received(0x7777_0010));
        class.goes_with(&modules.life(module).unwrap());
        assert!(class.enter("A").unwrap().is_some() && other.enter("A").unwrap().is_none());
        assert!(!class.is_gone() && !other.is_gone());
        modules.unloading(module);
        assert_eq!(class.enter("A").err().unwrap().to_string(), "A: the module was unloaded");
        assert!(other.enter("A").unwrap().is_none());
        assert!(class.is_gone() && !other.is_gone());
        assert!(ClassId::received(0x7777_0008).enter("A").unwrap().is_none());
    }
}
