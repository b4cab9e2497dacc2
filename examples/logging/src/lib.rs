//! Every callback that the runtime sends without slowing the program down much, one line each, with names, indented by nesting.
//!
//! The file's name comes from `LOGGING_PROFILER_OUTPUT`. Each line begins with the number of its thread.

use std::fmt::Display;
use std::sync::{Arc, OnceLock};

use clr_profiler::notice::{DynamicIl, GcReason, Generations, JitCache, SuspendReason};
use clr_profiler::{
    AppDomainId, AssemblyId, ClassId, Error, Events, FunctionId, Inlining, ModuleId, NameCache, NestedLog, ObjectId,
    Profiler, ProfilerInfo, Result, Setup, ThreadId,
};

clr_profiler::export_profiler!(Logging, "{A7F3D1C2-0E5B-4D29-9C3E-6B8F2A1D5E54}");

/// The profiler the runtime makes when it loads this library.
#[derive(Default)]
struct Logging(OnceLock<State>);

struct State {
    info: ProfilerInfo,
    names: NameCache,
    log: NestedLog,
}

/// A name where the runtime has one already, otherwise the identifier: while something is loading nothing can be asked.
fn or_id(name: Result<impl Display>, id: usize) -> String {
    name.map_or_else(|_| format!("{id:#x}"), |name| name.to_string())
}

impl State {
    fn app_domain(&self, id: AppDomainId) -> String {
        or_id(self.info.app_domain_info(id).map(|domain| domain.name), id.0)
    }

    fn assembly(&self, id: AssemblyId) -> String {
        or_id(self.info.assembly_info(id).map(|assembly| assembly.name), id.0)
    }

    fn module(&self, id: ModuleId) -> String {
        or_id(self.info.module_info(id).map(|module| module.path), id.0)
    }

    fn class(&self, id: ClassId) -> Arc<str> {
        self.names.class(&self.info, id)
    }

    fn function(&self, id: FunctionId) -> String {
        self.names.function(&self.info, id).signature.clone()
    }
}

fn outcome(status: Result<()>) -> String {
    status.map_or_else(|error| format!("failed: {error}"), |()| "ok".into())
}

/// Writes callbacks as lines: `begin` opens a level that the `end` of the same group closes.
macro_rules! callbacks {
    ($($name:ident($($arg:ident: $type:ty),*) $way:ident$(($group:literal))?, |$state:ident| $($value:expr),*;)*) => {
        $(fn $name(&self $(, $arg: $type)*) {
            let Some($state) = self.0.get() else { return };
            let text = [stringify!($name).to_owned() $(, $value.to_string())*].join(" ");
            $state.log.$way($($group,)? text);
        })*
    };
}

impl Profiler for Logging {
    fn initialize(&self, info: &ProfilerInfo) -> Result<Setup> {
        let path = std::env::var_os("LOGGING_PROFILER_OUTPUT").unwrap_or_else(|| "log.txt".into());
        let log = NestedLog::create(path).map_err(|error| Error::refused("initialize", error.to_string()))?;
        log.line("initialize");
        drop(self.0.set(State { info: info.clone(), names: NameCache::new(), log }));
        let loads = Events::APP_DOMAIN_LOADS | Events::ASSEMBLY_LOADS | Events::MODULE_LOADS | Events::CLASS_LOADS;
        let code = Events::JIT_COMPILATION | Events::CACHE_SEARCHES | Events::DYNAMIC_FUNCTION_UNLOADS;
        Ok(Setup::new(loads | code | Events::THREADS | Events::SUSPENSIONS | Events::EXCEPTIONS | Events::BASIC_GC))
    }

    // The names of what a module brought must be forgotten with it: identifiers are used again.
    fn module_unload_started(&self, module: ModuleId) {
        let Some(state) = self.0.get() else { return };
        state.names.module_unloaded(module);
        state.log.begin("module", format_args!("module_unload_started {:#x}", module.0));
    }

    fn dynamic_method_unloaded(&self, function: FunctionId) {
        let Some(state) = self.0.get() else { return };
        state.names.function_unloaded(function);
        state.log.line(format_args!("dynamic_method_unloaded {:#x}", function.0));
    }

    // Opens no level: where no precompiled code is found the runtime may never say that the search is over.
    fn jit_cached_function_search_started(&self, function: FunctionId) -> bool {
        if let Some(state) = self.0.get() {
            let text = format!("jit_cached_function_search_started {}", state.function(function));
            state.log.line(text);
        }
        true
    }

    fn jit_inlining(&self, caller: FunctionId, callee: FunctionId) -> Inlining {
        if let Some(state) = self.0.get() {
            state.log.line(format!("jit_inlining {} into {}", state.function(callee), state.function(caller)));
        }
        Inlining::Allow
    }

    callbacks! {
        shutdown() line, |s|;
        app_domain_creation_started(id: AppDomainId) begin("domain"), |s| format_args!("{:#x}", id.0);
        app_domain_creation_finished(id: AppDomainId, status: Result<()>) end("domain"), |s| s.app_domain(id), outcome(status);
        app_domain_shutdown_started(id: AppDomainId) begin("domain"), |s| s.app_domain(id);
        app_domain_shutdown_finished(id: AppDomainId, status: Result<()>) end("domain"), |s| format_args!("{:#x}", id.0), outcome(status);
        assembly_load_started(id: AssemblyId) begin("assembly"), |s| format_args!("{:#x}", id.0);
        assembly_load_finished(id: AssemblyId, status: Result<()>) end("assembly"), |s| s.assembly(id), outcome(status);
        assembly_unload_started(id: AssemblyId) begin("assembly"), |s| format_args!("{:#x}", id.0);
        assembly_unload_finished(id: AssemblyId, status: Result<()>) end("assembly"), |s| format_args!("{:#x}", id.0), outcome(status);
        module_load_started(id: ModuleId) begin("module"), |s| format_args!("{:#x}", id.0);
        module_load_finished(id: ModuleId, status: Result<()>) end("module"), |s| s.module(id), outcome(status);
        module_unload_finished(id: ModuleId, status: Result<()>) end("module"), |s| format_args!("{:#x}", id.0), outcome(status);
        module_attached_to_assembly(id: ModuleId, assembly: AssemblyId) line, |s| s.module(id), "to", s.assembly(assembly);
        class_load_started(id: ClassId) begin("class"), |s| format_args!("{:#x}", id.0);
        class_load_finished(id: ClassId, status: Result<()>) end("class"), |s| s.class(id), outcome(status);
        class_unload_started(id: ClassId) begin("class"), |s| format_args!("{:#x}", id.0);
        class_unload_finished(id: ClassId, status: Result<()>) end("class"), |s| format_args!("{:#x}", id.0), outcome(status);
        jit_compilation_started(id: FunctionId, _safe: bool) begin("jit"), |s| s.function(id);
        jit_compilation_finished(id: FunctionId, status: Result<()>, _safe: bool) end("jit"), |s| s.function(id), outcome(status);
        jit_cached_function_search_finished(id: FunctionId, result: JitCache) line, |s| s.function(id), result;
        dynamic_method_jit_compilation_started(id: FunctionId, _safe: bool, _il: DynamicIl<'_>) begin("jit"), |s| s.function(id);
        dynamic_method_jit_compilation_finished(id: FunctionId, status: Result<()>, _safe: bool) end("jit"), |s| s.function(id), outcome(status);
        thread_created(id: ThreadId) line, |s| format_args!("{:#x}", id.0);
        thread_destroyed(id: ThreadId) line, |s| format_args!("{:#x}", id.0);
        thread_assigned_to_os_thread(id: ThreadId, os_thread: u32) line, |s| format_args!("{:#x}", id.0), "is", os_thread;
        thread_name_changed(id: ThreadId, name: &str) line, |s| format_args!("{:#x}", id.0), name;
        runtime_suspend_started(reason: SuspendReason) begin("suspend"), |s| reason;
        runtime_suspend_finished() line, |s|;
        runtime_suspend_aborted() end("suspend"), |s|;
        runtime_resume_started() line, |s|;
        runtime_resume_finished() end("suspend"), |s|;
        runtime_thread_suspended(id: ThreadId) line, |s| format_args!("{:#x}", id.0);
        runtime_thread_resumed(id: ThreadId) line, |s| format_args!("{:#x}", id.0);
        garbage_collection_started(generations: Generations<'_>, reason: GcReason) begin("gc"), |s| reason, "generation", generations.oldest().unwrap_or(0);
        garbage_collection_finished() end("gc"), |s|;
        exception_thrown(exception: ObjectId<'_>) line, |s| or_id(s.info.class_of_object(exception).map(|id| s.class(id)), exception.address());
        exception_search_function_enter(id: FunctionId) begin("asked"), |s| s.function(id);
        exception_search_function_leave() end("asked"), |s|;
        exception_search_filter_enter(id: FunctionId) begin("filter"), |s| s.function(id);
        exception_search_filter_leave() end("filter"), |s|;
        exception_search_catcher_found(id: FunctionId) line, |s| s.function(id);
        exception_unwind_function_enter(id: FunctionId) line, |s| s.function(id);
        exception_unwind_function_leave() line, |s|;
        exception_unwind_finally_enter(id: FunctionId) line, |s| s.function(id);
        exception_unwind_finally_leave() line, |s|;
        exception_catcher_enter(id: FunctionId, _exception: ObjectId<'_>) line, |s| s.function(id);
        exception_catcher_leave() line, |s|;
    }
}

#[cfg(test)]
mod tests;
