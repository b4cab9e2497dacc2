//! The modules with counters, and their methods.

use std::collections::HashMap;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use clr_profiler::{ModuleId, Token};

use super::instrumentation::InstrumentedMethod;

/// The modules with counters. No lock is held while the runtime is queried.
#[derive(Default)]
pub(super) struct CoveredModules(RwLock<HashMap<ModuleId, CoveredModule>>);

/// A module's methods with counters.
pub(super) struct CoveredModule(HashMap<Token, Arc<InstrumentedMethod>>);

impl CoveredModule {
    pub(super) fn new(methods: impl Iterator<Item = (Token, Arc<InstrumentedMethod>)>) -> Self {
        Self(methods.collect())
    }

    /// The methods, in the order of their tokens.
    pub(super) fn tokens(&self) -> Vec<Token> {
        let mut tokens: Vec<Token> = self.0.keys().copied().collect();
        tokens.sort_unstable_by_key(|token| token.as_raw());
        tokens
    }

    /// Withdraws the records of all methods. Call it when none of them has counters in its code.
    pub(super) fn withdraw(&self) {
        self.0.values().for_each(|method| method.withdraw());
    }
}

impl CoveredModules {
    fn read(&self) -> RwLockReadGuard<'_, HashMap<ModuleId, CoveredModule>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, HashMap<ModuleId, CoveredModule>> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn insert(&self, id: ModuleId, module: CoveredModule) {
        self.write().insert(id, module);
    }

    pub(super) fn remove(&self, id: ModuleId) -> Option<CoveredModule> {
        self.write().remove(&id)
    }

    /// Whether a module has counters.
    pub(super) fn has(&self, id: ModuleId) -> bool {
        self.read().contains_key(&id)
    }

    /// The method with its counters; `None` if it has none.
    pub(super) fn method(&self, module: ModuleId, method: Token) -> Option<Arc<InstrumentedMethod>> {
        self.read().get(&module)?.0.get(&method).cloned()
    }

    /// Withdraws the record of a method whose code has no counters.
    pub(super) fn withdraw(&self, module: ModuleId, method: Token) {
        let removed = self.write().get_mut(&module).and_then(|module| module.0.remove(&method));
        if let Some(method) = removed {
            method.withdraw();
        }
    }
}
