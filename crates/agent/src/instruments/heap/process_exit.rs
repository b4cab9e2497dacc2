//! The moment at which a program begins to end, for a profiler that takes roots by events: by the
//! time of `Shutdown` the runtime has closed its sessions (seen on 8, 9 and 10).
//!
//! Before that it calls `AppContext.OnProcessExit`, which tells the program's own handlers, on the
//! thread that ends the program. The first call of a method is seen by the search for its precompiled
//! code, or by its compilation.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use clr_profiler::{FunctionId, ModuleId, NameCache, ProfilerInfo, Token};
use clrscope_contract::async_code::CORE_LIBRARY;

const TYPE: &str = "System.AppContext";
const METHOD: &str = "OnProcessExit";

/// The method that the runtime calls when a program begins to end.
#[derive(Default)]
pub(super) struct ProcessExit {
    method: OnceLock<Option<(ModuleId, Token)>>,
    has_come: AtomicBool,
}

impl ProcessExit {
    /// A module has its assembly: the framework's own, which is the first, has the method.
    pub(super) fn module_attached(&self, info: &ProfilerInfo, names: &NameCache, module: ModuleId) {
        if self.method.get().is_some() || !names.assembly(info, module).is_ok_and(|name| &*name == CORE_LIBRARY) {
            return;
        }
        let find = || {
            let metadata = names.metadata(info, module).ok()?;
            let ty = metadata.find_type_def(TYPE, None).ok()??;
            Some((module, *metadata.methods_named(ty, METHOD).ok()?.first()?))
        };
        let _ = self.method.set(find());
    }

    /// Whether `function`, which is about to run for the first time, says that the program begins to
    /// end; once.
    pub(super) fn begins(&self, info: &ProfilerInfo, function: FunctionId) -> bool {
        let Some((module, token)) = self.method.get().copied().flatten() else { return false };
        let is_it = info.function_info(function).is_ok_and(|found| found.module == module && found.token == token);
        is_it && !self.has_come.swap(true, Ordering::AcqRel)
    }
}
