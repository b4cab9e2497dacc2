//! Modules that are gone: of those that can be unloaded, whether the runtime has begun to.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use crate::gate::{Gate, Inside};
use crate::{Error, HResult, ModuleId, Result};

/// Life of a module that can be unloaded: calls about it pass, until the runtime begins to unload
/// it.
#[derive(Clone, Default)]
pub(crate) struct ModuleLife(Arc<Gate<1>>);

/// Collectible modules, those that are gone among them until their identifiers are used again. All
/// others stay as long as the process.
#[derive(Default)]
pub(crate) struct CollectibleModules {
    /// There has been one: otherwise no lookup is needed.
    any: AtomicBool,
    lives: RwLock<HashMap<ModuleId, ModuleLife>>,
    /// Held while the runtime lists its modules, until the lives of all in the list are known.
    listing: Mutex<()>,
}

/// A call about a module that is under way; the runtime waits for its end before it unloads the
/// module.
pub(crate) struct InModule(ModuleLife);

impl Drop for InModule {
    fn drop(&mut self) {
        self.0.0.leave();
    }
}

impl ModuleLife {
    /// Whether the runtime has begun to unload the module.
    pub(crate) fn is_over(&self) -> bool {
        self.0.is_closed()
    }

    /// A call begins that borrows nothing.
    pub(crate) fn enter_owned(self, method: &'static str) -> Result<InModule> {
        if self.0.enter_owned() { Ok(InModule(self)) } else { Err(gone(method)) }
    }

    /// A call about the module begins.
    ///
    /// # Errors
    /// A sentence where the module is gone.
    pub(crate) fn enter(&self, method: &'static str) -> Result<Inside<'_>> {
        self.0.enter().ok_or_else(|| gone(method))
    }
}

impl CollectibleModules {
    /// Whether a module that was loaded can be unloaded. The identifier may have been another
    /// module's, which is gone; or a list has had the module before, and who got it from there
    /// keeps its life.
    pub(crate) fn loaded(&self, module: ModuleId, is_collectible: bool) {
        if !is_collectible && !self.any.load(Ordering::Acquire) {
            return;
        }
        let mut lives = self.lives.write().unwrap_or_else(PoisonError::into_inner);
        if lives.get(&module).is_some_and(ModuleLife::is_over) {
            lives.remove(&module);
        }
        if is_collectible {
            lives.entry(module).or_default();
            self.any.store(true, Ordering::Release);
        }
    }

    /// Keeps unloads waiting until the answer is dropped. The runtime takes a module out of its
    /// list before it says that it unloads it (`GCLoaderAllocators` in `vm/loaderallocator.cpp`):
    /// all that a list has meanwhile are there.
    pub(crate) fn list(&self) -> MutexGuard<'_, ()> {
        self.listing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The life of a module that is known to be collectible.
    pub(crate) fn keep(&self, module: ModuleId) -> ModuleLife {
        let mut lives = self.lives.write().unwrap_or_else(PoisonError::into_inner);
        self.any.store(true, Ordering::Release);
        lives.entry(module).or_default().clone()
    }

    /// A call about a module begins; `None` for modules that stay as long as the process.
    ///
    /// # Errors
    /// A sentence where the module is gone.
    pub(crate) fn enter(&self, module: ModuleId, method: &'static str) -> Result<Option<InModule>> {
        self.life(module).map(|life| life.enter_owned(method)).transpose()
    }

    /// The life of a module, where it is known that it can be unloaded.
    pub(crate) fn life(&self, module: ModuleId) -> Option<ModuleLife> {
        if !self.any.load(Ordering::Acquire) {
            return None;
        }
        self.lives.read().unwrap_or_else(PoisonError::into_inner).get(&module).cloned()
    }

    /// Whether there has been a collectible module.
    pub(crate) fn any(&self) -> bool {
        self.any.load(Ordering::Acquire)
    }

    /// The runtime begins to unload a module: calls about it are refused from now on, and those
    /// under way end before this returns.
    pub(crate) fn unloading(&self, module: ModuleId) {
        drop(self.list());
        if let Some(life) = self.life(module) {
            life.0.close();
            life.0.wait_until_empty();
        }
    }
}

#[cold]
fn gone(method: &'static str) -> Error {
    Error::refused(method, "the module was unloaded").with_hresult(HResult::DATA_INCOMPLETE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_about_a_module_are_refused_from_its_unloading_until_its_identifier_is_another_s() {
        let modules = CollectibleModules::default();
        let (stays, goes) = (ModuleId(8), ModuleId(16));
        modules.loaded(stays, false);
        assert!(modules.life(stays).is_none() && !modules.any());
        modules.loaded(goes, true);
        let life = modules.life(goes).unwrap();
        assert!(life.enter("A").is_ok());
        modules.unloading(goes);
        assert_eq!(life.enter("A").err().unwrap().to_string(), "A: the module was unloaded");
        assert!(modules.life(goes).unwrap().enter("A").is_err());
        modules.loaded(goes, true);
        assert!(modules.life(goes).unwrap().enter("A").is_ok() && life.enter("A").is_err());
        modules.unloading(goes);
        modules.loaded(goes, false);
        assert!(modules.life(goes).is_none());
    }

    #[test]
    fn a_module_that_was_listed_before_its_load_is_told_of_keeps_its_life() {
        let (modules, module) = (CollectibleModules::default(), ModuleId(8));
        let listed = modules.keep(module);
        modules.loaded(module, false);
        modules.loaded(module, true);
        modules.unloading(module);
        assert!(listed.is_over());
    }

    #[test]
    fn an_unload_waits_for_a_list() {
        let (modules, module) = (CollectibleModules::default(), ModuleId(8));
        std::thread::scope(|scope| {
            let list = modules.list();
            let life = modules.keep(module);
            let unload = scope.spawn(|| modules.unloading(module));
            for _ in 0..1_000 {
                std::thread::yield_now();
                assert!(!life.is_over() && !unload.is_finished());
            }
            drop(list);
            unload.join().unwrap();
            assert!(life.is_over());
        });
    }
}
