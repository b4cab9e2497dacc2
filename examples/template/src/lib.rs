//! A profiler that counts how often each function is called, and writes the counts to a file when
//! the program ends.
//!
//! The file's name comes from `TEMPLATE_PROFILER_OUTPUT`: a profiler must not write to the
//! program's own output.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use clr_profiler::{
    CallHooks, Callbacks, CallerSp, ClientId, ClientTable, Events, FunctionId, FunctionMapper, Hooks, Mapped, ModuleId,
    NameCache, Profiler, ProfilerInfo, Result, Setup,
};

// The class identifier is how the runtime finds a profiler: each has its own.
clr_profiler::export_profiler!(CallCounter, "{6F0E8E6B-2C8E-4B6B-9A55-5D1E3B1F7C01}");

/// The profiler the runtime makes when it loads this library.
struct CallCounter(Arc<Counts>);

/// State that the methods of the profiler, the hooks and the mapper share.
struct Counts {
    info: ProfilerInfo,
    names: NameCache,
    functions: ClientTable<Counted>,
    known: Mutex<HashMap<String, ClientId>>,
}

/// A counted function. The hooks find it by its `ClientId`.
struct Counted {
    name: String,
    calls: AtomicU64,
}

impl Profiler for CallCounter {
    fn initialize(info: &ProfilerInfo) -> Result<(Self, Setup)> {
        let counts = Arc::new(Counts {
            info: info.clone(),
            names: NameCache::new(),
            functions: ClientTable::new(),
            known: Mutex::default(),
        });
        // Other events would be requested here, and arrive in other methods of `Callbacks`.
        let setup = Setup::new(Events::MODULE_LOADS).with_hooks(Hooks::safe(counts.clone(), counts.clone()));
        Ok((Self(counts), setup.without_inlining()))
    }
}

impl Callbacks for CallCounter {
    fn shutdown(&self) {
        if let Some(path) = std::env::var_os("TEMPLATE_PROFILER_OUTPUT") {
            // A failure is ignored: the program's output is not ours.
            drop(std::fs::write(path, self.0.report()));
        }
    }
}

/// The hooks, called at each enter and leave of a function: they must be short.
impl CallHooks for Counts {
    fn enter(&self, id: ClientId, _sp: CallerSp) {
        if let Some(function) = self.functions.get(id) {
            function.calls.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn leave(&self, _id: ClientId, _sp: CallerSp) {}

    fn tailcall(&self, _id: ClientId, _sp: CallerSp) {}
}

/// The mapper assigns a record to each function. The runtime calls it at each compilation of a
/// function, and expects the same answer each time.
impl FunctionMapper for Counts {
    fn map(&self, function: FunctionId) -> Mapped {
        let name = self.names.function(&self.info, function).signature.clone();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(id) = known.get(&name) {
            return Mapped::Hook(*id);
        }
        let counted = Counted { name: name.clone(), calls: AtomicU64::new(0) };
        let Some(id) = self.functions.push(counted) else { return Mapped::Skip };
        known.insert(name, id);
        Mapped::Hook(id)
    }

    // The runtime reuses identifiers, so data about them must be removed with the module.
    fn module_unloaded(&self, module: ModuleId) {
        self.names.module_unloaded(module);
    }
}

impl Counts {
    fn report(&self) -> String {
        let mut rows: Vec<_> = self.functions.iter().map(|(_, f)| (f.calls.load(Ordering::Relaxed), &f.name)).collect();
        rows.sort_by(|a, b| b.cmp(a));
        rows.iter().fold(String::new(), |mut text, (calls, name)| {
            let _ = writeln!(text, "{calls}\t{name}");
            text
        })
    }
}

#[cfg(test)]
mod tests;
