//! Functions with their names, for hooks that need the name of the called function.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::{FunctionName, NameCache};
use crate::{ClientId, ClientTable, Events, FunctionId, FunctionMapper, Mapped, ModuleId, ProfilerInfo};

/// A ready-made [`FunctionMapper`] that hooks the functions accepted by a closure, and keeps their
/// names.
///
/// A hook finds the name with [`get`](Self::get) by the [`ClientId`] that it receives: two loads,
/// no lock. Functions with the same signature and module share a client identifier, so the name
/// stays correct when the runtime reuses its own identifiers. The table forgets unloaded functions
/// by itself: the framework adds the necessary events to the setup.
///
/// ```
/// use std::sync::Arc;
/// use clr_profiler::{CallHooks, CallerSp, ClientId, Hooks, NamedFunctions, ProfilerInfo, Setup};
///
/// struct Names(Arc<NamedFunctions>);
///
/// impl CallHooks for Names {
///     fn enter(&self, id: ClientId, _sp: CallerSp) {
///         let _signature: Option<&str> = self.0.get(id).map(|name| name.signature.as_str());
///     }
///     fn leave(&self, _id: ClientId, _sp: CallerSp) {}
///     fn tailcall(&self, _id: ClientId, _sp: CallerSp) {}
/// }
///
/// fn setup(info: &ProfilerInfo) -> Setup {
///     let functions = Arc::new(NamedFunctions::new(info, |function| &*function.module == "Shop"));
///     Setup::default().with_hooks(Hooks::safe(Arc::new(Names(functions.clone())), functions))
/// }
/// ```
pub struct NamedFunctions {
    info: ProfilerInfo,
    names: NameCache,
    choice: Box<dyn Fn(&FunctionName) -> bool + Send + Sync>,
    table: ClientTable<Arc<FunctionName>>,
    known: Mutex<HashMap<(Arc<str>, String), ClientId>>,
}

impl NamedFunctions {
    /// Hooks the functions that satisfy `choice`, which is called at each compilation, with loader
    /// locks held, and must always return the same for a function.
    #[must_use]
    pub fn new(info: &ProfilerInfo, choice: impl Fn(&FunctionName) -> bool + Send + Sync + 'static) -> Self {
        Self {
            info: info.clone(),
            names: NameCache::new(),
            choice: Box::new(choice),
            table: ClientTable::new(),
            known: Mutex::default(),
        }
    }

    /// The names of a hooked function; `None` for an identifier that this table did not assign. For
    /// hooks.
    #[must_use]
    pub fn get(&self, id: ClientId) -> Option<&FunctionName> {
        self.table.get(id).map(|name| &**name)
    }

    /// The name cache of this table, for names of classes and of functions that are not hooked. Not
    /// for hooks.
    #[must_use]
    pub fn names(&self) -> &NameCache {
        &self.names
    }
}

impl FunctionMapper for NamedFunctions {
    fn needs(&self) -> Events {
        Events::MODULE_LOADS | Events::DYNAMIC_FUNCTION_UNLOADS
    }

    fn module_unloaded(&self, module: ModuleId) {
        self.names.module_unloaded(module);
    }

    fn function_unloaded(&self, function: FunctionId) {
        self.names.function_unloaded(function);
    }

    fn map(&self, function: FunctionId) -> Mapped {
        let name = self.names.function(&self.info, function);
        if !(self.choice)(&name) {
            return Mapped::Skip;
        }
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (Arc::clone(&name.module), name.signature.clone());
        if let Some(id) = known.get(&key) {
            return Mapped::Hook(*id);
        }
        let Some(id) = self.table.push(name) else { return Mapped::Skip };
        known.insert(key, id);
        Mapped::Hook(id)
    }
}
