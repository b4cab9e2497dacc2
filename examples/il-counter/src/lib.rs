//! Counts how often each method of the program is called, by an addition that is inserted into its
//! code, without a hook or a call.
//!
//! The file's name comes from `IL_COUNTER_OUTPUT`. `IL_COUNTER_EXITS=1` counts the ends of calls as
//! well, `IL_COUNTER_MODULES=all` counts the runtime's own methods, too, and `IL_COUNTER_STRESS=1`
//! makes all branches long and puts a `nop` before each instruction, which must change nothing.

use std::collections::HashMap;
use std::env;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use clr_profiler::il::{Code, Edits, Opcode};
use clr_profiler::metadata::MetadataImport;
use clr_profiler::{
    BodyWriter, BodyWriters, Callbacks, Events, FunctionId, MethodToWrite, ModuleId, Profiler, ProfilerInfo, Result,
    Setup, Token,
};

clr_profiler::export_profiler!(IlCounter, "{6F0E8E6B-2C8E-4B6B-9A55-5D1E3B1F7C21}");

/// The profiler the runtime makes when it loads this library.
struct IlCounter {
    info: ProfilerInfo,
    writers: BodyWriters,
    counters: Arc<Counters>,
    /// Modules, and whether their methods are counted.
    modules: Mutex<HashMap<ModuleId, bool>>,
    /// Methods that were left unchanged, and the reasons.
    refused: Mutex<Vec<String>>,
}

/// Inserts the additions.
#[derive(Default)]
struct Counters(Mutex<Vec<Counter>>);

/// Number of calls of a method, and how many of them have ended, by return or exception. The code
/// adds to the numbers as long as the process lives, so they are never freed.
struct Counter {
    calls: &'static [AtomicU64; 2],
    metadata: MetadataImport,
    method: Token,
}

impl BodyWriter for Counters {
    fn edits(&self, method: &MethodToWrite<'_>) -> Result<Edits> {
        let calls: &'static [AtomicU64; 2] = Box::leak(Box::default());
        let [entered, left] = calls.each_ref().map(|count| Code::add_one(count.as_ptr().expose_provenance() as u64));
        lock(&self.0).push(Counter { calls, metadata: method.metadata.clone(), method: method.token });
        let mut edits = Edits::new();
        edits.at_entry(entered);
        if env::var_os("IL_COUNTER_EXITS").is_some() {
            edits.at_exits(left);
        }
        Ok(edits)
    }
}

/// Inserts changes that have no effect.
struct Stress;

impl BodyWriter for Stress {
    fn edits(&self, method: &MethodToWrite<'_>) -> Result<Edits> {
        let mut edits = Edits::new();
        edits.lengthen_branches();
        for place in method.body.places() {
            edits.before(place, Code::new().plain(Opcode::Nop));
        }
        Ok(edits)
    }
}

impl Profiler for IlCounter {
    fn initialize(info: &ProfilerInfo) -> Result<(Self, Setup)> {
        let counters = Arc::new(Counters::default());
        let mut writers = BodyWriters::new(info).with(counters.clone());
        if env::var_os("IL_COUNTER_STRESS").is_some() {
            writers = writers.with(Arc::new(Stress));
        }
        let this = Self { info: info.clone(), writers, counters, modules: Mutex::default(), refused: Mutex::default() };
        Ok((this, Setup::new(Events::MODULE_LOADS | Events::CACHE_SEARCHES)))
    }
}

impl Callbacks for IlCounter {
    fn module_load_finished(&self, module: ModuleId, status: Result<()>) {
        let is_counted = status.is_ok() && self.is_own(module);
        lock(&self.modules).insert(module, is_counted);
        if is_counted {
            // SAFETY: an addition to memory that stays, and instructions that do nothing, are right
            // for every method.
            match unsafe { self.writers.write_module(module) } {
                Ok(written) => {
                    let each = written.refused.iter().map(|(method, error)| format!("{:#x}: {error}", method.as_raw()));
                    lock(&self.refused).extend(each);
                }
                Err(error) => lock(&self.refused).push(format!("a module: {error}")),
            }
        }
    }

    /// Rejects precompiled code of counted modules, because it has no additions.
    fn jit_cached_function_search_started(&self, function: FunctionId) -> bool {
        let module = self.info.function_info(function).map(|about| about.module);
        !module.is_ok_and(|module| lock(&self.modules).get(&module) == Some(&true))
    }

    fn module_unload_started(&self, module: ModuleId) {
        lock(&self.modules).remove(&module);
    }

    fn shutdown(&self) {
        if let Some(path) = env::var_os("IL_COUNTER_OUTPUT") {
            // A failure is ignored: the program's output is not ours.
            drop(std::fs::write(path, self.report()));
        }
    }
}

impl IlCounter {
    /// Whether a module belongs to the program and not to the runtime.
    fn is_own(&self, module: ModuleId) -> bool {
        let Ok(about) = self.info.module_info(module) else { return false };
        let is_of_runtime = about.path.contains("/shared/Microsoft.");
        about.flags.is_on_disk() && (!is_of_runtime || env::var("IL_COUNTER_MODULES").is_ok_and(|all| all == "all"))
    }

    fn report(&self) -> String {
        let mut rows = Vec::new();
        for counter in &*lock(&self.counters.0) {
            let [calls, left] = counter.calls.each_ref().map(|count| count.load(Ordering::Relaxed));
            if calls > 0 {
                let name = name(&counter.metadata, counter.method);
                rows.push((
                    calls,
                    left,
                    name.unwrap_or_else(|error| format!("{:#x}: {error}", counter.method.as_raw())),
                ));
            }
        }
        rows.sort_by(|a, b| b.cmp(a));
        let mut text = String::new();
        for (calls, left, name) in rows {
            let _ = writeln!(text, "{calls}\t{left}\t{name}");
        }
        for refused in &*lock(&self.refused) {
            let _ = writeln!(text, "refused\t{refused}");
        }
        text
    }
}

/// `Namespace.Outer+Inner::Method`.
fn name(metadata: &MetadataImport, method: Token) -> Result<String> {
    let about = metadata.method(method)?;
    let mut class = metadata.type_def(about.class)?.name;
    let mut inner = about.class;
    while let Some(outer) = metadata.enclosing_type(inner)? {
        class = format!("{}+{class}", metadata.type_def(outer)?.name);
        inner = outer;
    }
    Ok(format!("{class}::{}", about.name))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
