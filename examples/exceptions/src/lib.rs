//! The story of each exception: its type and message, the stack it was thrown on, filters, finally
//! blocks and the catcher.
//!
//! The file's name comes from `EXCEPTIONS_PROFILER_OUTPUT`. The stack is a shadow stack, which the
//! framework keeps.

use std::path::Path;
use std::sync::Arc;

use clr_profiler::{
    CallStacks, Callbacks, Error, Events, ExceptionReader, FunctionId, ModuleId, NamedFunctions, NestedLog, ObjectId,
    Profiler, ProfilerInfo, Result, Setup,
};

clr_profiler::export_profiler!(Exceptions, "{0C8B5F0A-5B8B-4C57-9E0B-5C6E4C0B8A21}");

/// Maximum number of characters of a message that are kept.
const LONGEST_MESSAGE: usize = 200;

/// The profiler the runtime makes when it loads this library.
struct Exceptions {
    info: ProfilerInfo,
    functions: Arc<NamedFunctions>,
    /// The shadow stacks, without any action at calls.
    stacks: Arc<CallStacks<()>>,
    reader: ExceptionReader,
    log: NestedLog,
}

impl Profiler for Exceptions {
    fn initialize(info: &ProfilerInfo) -> Result<(Self, Setup)> {
        let path = std::env::var_os("EXCEPTIONS_PROFILER_OUTPUT").unwrap_or_else(|| "exceptions.txt".into());
        Self::start(info, path.as_ref())
    }
}

impl Exceptions {
    fn start(info: &ProfilerInfo, path: &Path) -> Result<(Self, Setup)> {
        let log = NestedLog::create(path).map_err(|error| Error::refused("initialize", error.to_string()))?;
        // From .NET 9 on the runtime throws by managed code of its own, which does not belong into
        // the stack.
        let functions = Arc::new(NamedFunctions::new(info, |function| !function.is_exception_handling()));
        let stacks = CallStacks::new(info, ())?;
        let setup = Setup::new(Events::MODULE_LOADS).without_inlining();
        let setup = setup.with_call_stacks(stacks.clone(), functions.clone());
        Ok((Self { info: info.clone(), functions, stacks, reader: ExceptionReader::new(), log }, setup))
    }

    fn thrown(&self, exception: ObjectId<'_>) {
        let names = self.functions.names();
        let class = self.info.class_of_object(exception).map(|class| names.class(&self.info, class));
        let content = self.reader.read(&self.info, names, exception, LONGEST_MESSAGE);
        let message = content
            .and_then(|content| content.message)
            .map_or_else(String::new, |text| format!(": {:?}", text.to_string()));
        self.log.line(format_args!("{}{message}", class.as_deref().unwrap_or("?")));
        for call in self.stacks.snapshot().iter().rev() {
            let name = self.functions.get(call.function).map_or("?", |function| &function.name);
            self.log.line_below(2, format_args!("at {name}"));
        }
    }

    fn step(&self, what: &str, function: FunctionId) {
        let name = self.functions.names().function(&self.info, function);
        self.log.line_below(1, format_args!("{what} {}", name.name));
    }
}

impl Callbacks for Exceptions {
    fn exception_thrown(&self, exception: ObjectId<'_>) {
        self.thrown(exception);
    }

    fn exception_search_filter_enter(&self, function: FunctionId) {
        self.step("filter of", function);
    }

    fn exception_search_catcher_found(&self, function: FunctionId) {
        self.step("will be caught by", function);
    }

    fn exception_unwind_finally_enter(&self, function: FunctionId) {
        self.step("finally of", function);
    }

    fn exception_catcher_enter(&self, function: FunctionId, _exception: ObjectId<'_>) {
        self.step("caught by", function);
    }

    fn module_unload_started(&self, _module: ModuleId) {
        // The runtime reuses identifiers, so data about them must be removed with the module.
        // `functions` does so itself.
        self.reader.module_unloaded();
    }
}

#[cfg(test)]
mod tests;
