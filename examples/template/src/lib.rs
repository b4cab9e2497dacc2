//! A profiler that counts how often each function is called, and writes the counts to a file when the program ends.
//!
//! The file's name comes from `TEMPLATE_PROFILER_OUTPUT`: a profiler must not write to the program's own output.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use clr_profiler::{
    CallHooks, CallerSp, ClientId, ClientTable, Events, FunctionId, FunctionMapper, Hooks, Mapped, NameCache, Profiler,
    ProfilerInfo, Result, Setup,
};

// The class identifier is how the runtime finds a profiler: each has its own.
clr_profiler::export_profiler!(CallCounter, "{6F0E8E6B-2C8E-4B6B-9A55-5D1E3B1F7C01}");

/// The profiler the runtime makes when it loads this library.
#[derive(Default)]
struct CallCounter {
    functions: Arc<Functions>,
}

impl Profiler for CallCounter {
    fn initialize(&self, info: &ProfilerInfo) -> Result<Setup> {
        let (info, functions) = (info.clone(), self.functions.clone());
        let mapper = Mapper { info, names: NameCache::new(), functions, known: Mutex::default() };
        let hooks = Hooks::safe(self.functions.clone(), Arc::new(mapper));
        // Other events would be asked for here, and told by other methods of this trait.
        Ok(Setup::new(Events::NONE).with_hooks(hooks).without_inlining())
    }

    fn shutdown(&self) {
        if let Some(path) = std::env::var_os("TEMPLATE_PROFILER_OUTPUT") {
            // There is nobody to tell about a failure: the program's output is not ours.
            drop(std::fs::write(path, self.functions.report()));
        }
    }
}

/// What is known about each function; found again by its `ClientId` in the hooks.
#[derive(Default)]
struct Functions(ClientTable<Counted>);

struct Counted {
    name: String,
    calls: AtomicU64,
}

impl CallHooks for Functions {
    fn enter(&self, id: ClientId, _sp: CallerSp) {
        if let Some(function) = self.0.get(id) {
            function.calls.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn leave(&self, _id: ClientId, _sp: CallerSp) {}

    fn tailcall(&self, _id: ClientId, _sp: CallerSp) {}
}

impl Functions {
    fn report(&self) -> String {
        let mut rows: Vec<_> = self.0.iter().map(|(_, f)| (f.calls.load(Ordering::Relaxed), &f.name)).collect();
        rows.sort_by(|a, b| b.cmp(a));
        rows.iter().fold(String::new(), |mut text, (calls, name)| {
            let _ = writeln!(text, "{calls}\t{name}");
            text
        })
    }
}

/// Gives each function a record. The runtime asks at each compilation of a function, and wants the same answer each time;
/// its identifiers are used again once code was unloaded, so names are the key.
struct Mapper {
    info: ProfilerInfo,
    names: NameCache,
    functions: Arc<Functions>,
    known: Mutex<HashMap<String, ClientId>>,
}

impl FunctionMapper for Mapper {
    fn map(&self, function: FunctionId) -> Mapped {
        let name = self.names.function(&self.info, function).signature.clone();
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(id) = known.get(&name) {
            return Mapped::Hook(*id);
        }
        let Some(id) = self.functions.0.push(Counted { name: name.clone(), calls: AtomicU64::new(0) }) else {
            return Mapped::Skip;
        };
        known.insert(name, id);
        Mapped::Hook(id)
    }
}

#[cfg(test)]
mod tests;
