//! Unloads of modules: notes for each module that can be unloaded whether the runtime has begun to
//! unload it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use crate::gate::{Gate, Inside};
use crate::{Error, HResult, ModuleId, Result};

/// Life of a module that can be unloaded. Queries about the module are allowed until the runtime
/// begins to unload it.
#[derive(Clone, Default)]
pub(crate) struct ModuleLife(Arc<Gate<1>>);

/// Collectible modules. Unloaded modules are included until the runtime reuses their identifiers.
/// All other modules stay loaded until the process ends.
#[derive(Default)]
pub(crate) struct CollectibleModules {
    /// Whether there has been a collectible module; otherwise no lookup is needed.
    any: AtomicBool,
    lives: RwLock<HashMap<ModuleId, ModuleLife>>,
    /// Held while the runtime lists its modules, until the lives of all listed modules are known.
    listing: Mutex<()>,
}

/// A running query about a module. The runtime waits for its end before it unloads the module.
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

    /// Begins a query about the module, without a borrow.
    pub(crate) fn enter_owned(self, method: &'static str) -> Result<InModule> {
        if self.0.enter_owned() { Ok(InModule(self)) } else { Err(gone(method)) }
    }

    /// Begins a query about the module.
    ///
    /// # Errors
    /// A refusal with a reason if the module is unloaded.
    pub(crate) fn enter(&self, method: &'static str) -> Result<Inside<'_>> {
        self.0.enter().ok_or_else(|| gone(method))
    }
}

impl CollectibleModules {
    /// Notes that a module was loaded, and whether it can be unloaded. The identifier may have
    /// belonged to another module that is unloaded. Or the module was in a list before: then it
    /// keeps the life that it got there.
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

    /// Makes unloads wait until the returned value is dropped. The runtime removes a module from
    /// its list before it reports the unload (`GCLoaderAllocators` in `vm/loaderallocator.cpp`). So
    /// all modules of a list made in the meantime are loaded.
    pub(crate) fn list(&self) -> MutexGuard<'_, ()> {
        self.listing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The life of a module that is known to be collectible; creates it if necessary.
    pub(crate) fn keep(&self, module: ModuleId) -> ModuleLife {
        let mut lives = self.lives.write().unwrap_or_else(PoisonError::into_inner);
        self.any.store(true, Ordering::Release);
        lives.entry(module).or_default().clone()
    }

    /// Begins a query about a module; `None` for modules that stay loaded until the process ends.
    ///
    /// # Errors
    /// A refusal with a reason if the module is unloaded.
    pub(crate) fn enter(&self, module: ModuleId, method: &'static str) -> Result<Option<InModule>> {
        self.life(module).map(|life| life.enter_owned(method)).transpose()
    }

    /// The life of a module, if the module is known to be collectible.
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

    /// The runtime begins to unload a module. Queries about it are refused from now on; this waits
    /// until running queries have ended.
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
