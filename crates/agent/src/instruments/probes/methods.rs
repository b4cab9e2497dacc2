//! Methods with probes, and others that were compiled anew because of them.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use clr_profiler::il::Edits;
use clr_profiler::{BodyWriter, MethodToWrite, ModuleId, Token, WrittenBody};
use clrscope_recording::writer::MethodLanes;

use super::code::{self, Signatures};

/// A method of a module.
pub(super) type Method = (ModuleId, Token);

/// The methods that were compiled anew. No lock is held while the runtime is asked.
#[derive(Default)]
pub(super) struct Methods(Mutex<Table>);

/// Table behind the lock.
#[derive(Default)]
pub(super) struct Table {
    pub(super) probed: HashMap<Method, Probed>,
    /// Methods that had taken in a probed one.
    inliners: HashSet<Method>,
    /// Modules in which methods were looked for and found.
    modules: HashSet<ModuleId>,
    /// The recording is over: no further method is compiled anew.
    is_over: bool,
}

/// A method with probes.
pub(super) struct Probed {
    pub(super) signature: String,
    pub(super) lanes: MethodLanes,
    pub(super) signatures: Signatures,
    /// The method's code with the probes, once it is made.
    pub(super) body: Option<Arc<WrittenBody>>,
}

impl Methods {
    pub(super) fn lock(&self) -> MutexGuard<'_, Table> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A module has chosen methods; whether they are to get probes now.
    pub(super) fn module_comes(&self, module: ModuleId) -> bool {
        let mut table = self.lock();
        !table.is_over && table.modules.insert(module)
    }

    /// Forgets a module that is unloaded.
    pub(super) fn module_goes(&self, module: ModuleId) {
        let mut table = self.lock();
        table.probed.retain(|method, _| method.0 != module);
        table.inliners.retain(|method| method.0 != module);
        table.modules.remove(&module);
    }

    /// The code with probes of a method that is compiled anew. What has none is noted as one that had taken in another.
    pub(super) fn body_of(&self, method: Method) -> Option<Arc<WrittenBody>> {
        let mut table = self.lock();
        let body = table.probed.get(&method).and_then(|probed| probed.body.clone());
        if body.is_none() {
            table.inliners.insert(method);
        }
        body
    }

    /// The recording is over: all methods that were compiled anew.
    pub(super) fn end(&self) -> Vec<Method> {
        let mut table = self.lock();
        table.is_over = true;
        let inliners = table.inliners.iter().filter(|method| !table.probed.contains_key(*method));
        table.probed.keys().chain(inliners).copied().collect()
    }

    /// Whether the recording is over.
    pub(super) fn are_over(&self) -> bool {
        self.lock().is_over
    }
}

impl BodyWriter for Methods {
    fn edits(&self, method: &MethodToWrite<'_>) -> clr_profiler::Result<Edits> {
        let table = self.lock();
        let probed = table.probed.get(&(method.module, method.token));
        Ok(probed.map_or_else(Edits::new, |probed| code::edits(probed.lanes, probed.signatures)))
    }
}

#[cfg(test)]
mod tests {
    use clr_profiler::fake::FakeRuntime;

    use super::*;

    #[test]
    fn methods_that_had_taken_in_others_get_their_own_code_back_too() {
        let methods = Methods::default();
        let runtime = FakeRuntime::new().module("Shop").module("Plugin");
        let [module, other] = ["Shop", "Plugin"].map(|name| runtime.module_id(name));
        assert!(methods.module_comes(module) && !methods.module_comes(module), "told of twice");
        assert!(methods.module_comes(other));
        assert!(methods.body_of((module, Token::new(0x0600_0001))).is_none());
        assert!(methods.body_of((other, Token::new(0x0600_0002))).is_none());
        methods.module_goes(other);
        assert_eq!(methods.end(), [(module, Token::new(0x0600_0001))]);
        assert!(methods.are_over() && !methods.module_comes(other), "no more after the end");
    }
}
