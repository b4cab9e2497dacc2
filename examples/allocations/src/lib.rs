//! Allocations by class: how many objects and how many bytes, the largest sum first.
//!
//! The file's name comes from `ALLOCATIONS_PROFILER_OUTPUT`: a profiler must not write to the
//! program's own output.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use clr_profiler::{Callbacks, ClassId, Events, ModuleId, NameCache, ObjectId, Profiler, ProfilerInfo, Result, Setup};

// The class identifier is how the runtime finds a profiler: each has its own.
clr_profiler::export_profiler!(Allocations, "{4B7D2E91-6C1F-4A58-9E37-2D0A8C5F1B66}");

/// The profiler the runtime makes when it loads this library.
struct Allocations {
    info: ProfilerInfo,
    names: NameCache,
    sums: Mutex<Sums>,
}

#[derive(Default)]
struct Sums {
    /// Sums by class, while the class identifier is valid.
    live: HashMap<ClassId, (Arc<str>, Sum)>,
    /// Sums by class name of allocations before the class's module was unloaded.
    gone: HashMap<Arc<str>, Sum>,
}

#[derive(Default, Clone, Copy)]
struct Sum {
    objects: u64,
    bytes: u64,
}

impl Sum {
    fn add(&mut self, objects: u64, bytes: u64) {
        self.objects += objects;
        self.bytes += bytes;
    }
}

impl Profiler for Allocations {
    fn initialize(info: &ProfilerInfo) -> Result<(Self, Setup)> {
        let profiler = Self { info: info.clone(), names: NameCache::new(), sums: Mutex::default() };
        // Other events would be requested here, and arrive in other methods of `Callbacks`.
        let events = Events::OBJECT_ALLOCATED | Events::ENABLE_OBJECT_ALLOCATED | Events::MODULE_LOADS;
        Ok((profiler, Setup::new(events)))
    }
}

impl Callbacks for Allocations {
    fn object_allocated(&self, object: ObjectId<'_>, class: ClassId) {
        let bytes = self.info.object_size(object).unwrap_or(0) as u64;
        if let Some((_, sum)) = self.sums().live.get_mut(&class) {
            return sum.add(1, bytes);
        }
        // The first object of its class: no lock is held while the runtime is asked for the name.
        let name = self.names.class(&self.info, class);
        self.sums().live.entry(class).or_insert_with(|| (name, Sum::default())).1.add(1, bytes);
    }

    // The runtime reuses identifiers, so data stored under them must be removed with the module.
    fn module_unload_started(&self, module: ModuleId) {
        self.names.module_unloaded(module);
        let Sums { live, gone } = &mut *self.sums();
        live.drain().for_each(|(_, (name, sum))| gone.entry(name).or_default().add(sum.objects, sum.bytes));
    }

    fn shutdown(&self) {
        if let Some(path) = std::env::var_os("ALLOCATIONS_PROFILER_OUTPUT") {
            // A failure is ignored: the program's output is not ours.
            drop(std::fs::write(path, self.report()));
        }
    }
}

impl Allocations {
    fn sums(&self) -> MutexGuard<'_, Sums> {
        self.sums.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Bytes, objects and class name, a line per class.
    fn report(&self) -> String {
        let sums = self.sums();
        let mut by_name = sums.gone.clone();
        for (name, sum) in sums.live.values() {
            by_name.entry(Arc::clone(name)).or_default().add(sum.objects, sum.bytes);
        }
        let mut rows: Vec<_> = by_name.into_iter().collect();
        rows.sort_by(|(a, one), (b, other)| (other.bytes, a).cmp(&(one.bytes, b)));
        rows.iter().fold(String::new(), |mut text, (name, sum)| {
            let _ = writeln!(text, "{}\t{}\t{name}", sum.bytes, sum.objects);
            text
        })
    }
}

#[cfg(test)]
mod tests;
