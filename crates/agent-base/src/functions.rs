//! The dictionary of functions: the index of each function, its names in the recording, and whether
//! it gets hooks.
//!
//! Everything here runs when the runtime compiles a method, before the first hook of the method
//! runs: a hook never asks for names. No lock is held while the runtime is asked.

use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use clr_profiler::callback_args::Inlining;
use clr_profiler::metadata::MemberRef;
use clr_profiler::metadata::signature::{self, Type};
use clr_profiler::{Callbacks, FunctionId, FunctionName, ModuleId, NameCache, ProfilerInfo, Token};
use clrscope_recording::layout;
use clrscope_recording::model::{self, Function, FunctionFlags, FunctionKind, LossReason, RemarkKind, SourceKind};
use clrscope_recording::writer::{ProcessWriter, monotonic_ns};

use crate::developer_log::{Level, log};
use crate::il;
use crate::os::process;
use crate::patterns::WatchedFilter;

/// The selection of functions that are recorded.
pub struct FunctionSelection {
    /// The include and exclude patterns of the request.
    pub filter: WatchedFilter,
    /// Whether functions of the framework are left out.
    pub just_my_code: bool,
    /// Whether helpers of the runtime are recorded. The user's code does not call them itself.
    pub helpers: bool,
    /// Whether trivial functions, which do almost nothing, are recorded.
    pub trivial: bool,
    /// Whether calls are counted. If so, the recording also says which calls are not counted.
    pub counts_calls: bool,
}

/// A function, with what hooks need to know of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KnownFunction {
    /// Index of the function in the recording.
    pub index: u32,
    /// Whether the function gets hooks.
    pub wanted: bool,
    /// Whether an include pattern names the function. If so, calls of the function are never
    /// inlined.
    pub named: bool,
    /// Whether the function passes the selection filters, even if it gets no hooks.
    pub passes: bool,
}

/// The dictionary of functions.
pub struct Functions {
    info: ProfilerInfo,
    writer: &'static ProcessWriter,
    names: NameCache,
    choice: FunctionSelection,
    tables: Mutex<Tables>,
}

#[derive(Default)]
struct Tables {
    by_id: HashMap<FunctionId, Entry>,
    modules: HashMap<ModuleId, Module>,
    native: HashMap<String, u32>,
    /// Functions that were inlined into others before they were seen themselves.
    inlined: HashSet<FunctionId>,
    functions: u32,
    module_count: u32,
}

#[derive(Clone, Copy)]
struct Entry {
    known: KnownFunction,
    module: ModuleId,
    noted: bool,
    inlined: bool,
}

#[derive(Clone, Copy)]
struct Module {
    index: u32,
    framework: bool,
}

impl Functions {
    /// Creates an empty dictionary. `choice` selects the functions that are recorded.
    pub fn new(info: &ProfilerInfo, writer: &'static ProcessWriter, choice: FunctionSelection) -> Self {
        let tables = Tables { functions: layout::function::FIRST, ..Tables::default() };
        Self { info: info.clone(), writer, names: NameCache::new(), choice, tables: Mutex::new(tables) }
    }

    fn tables(&self) -> MutexGuard<'_, Tables> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks up a function. Adds a new function, and notes it in the recording if the filters
    /// select it.
    pub fn get(&self, function: FunctionId) -> KnownFunction {
        if let Some(entry) = self.tables().by_id.get(&function) {
            return entry.known;
        }
        let name = self.names.function(&self.info, function);
        let module = self.module(name.module_id, &name.module);
        let passes = self.passes(&name, module);
        let wanted = passes && self.is_wanted(&name);
        let named = self.choice.filter.names(&name);
        if name.name.starts_with("[unknown]") {
            self.writer.state().lose(LossReason::NameUnknown, 1, monotonic_ns());
        }
        self.insert(function, &name, module, KnownFunction { index: 0, wanted, named, passes })
    }

    /// Like [`get`](Self::get), but the function's names are in the recording even if it gets no
    /// hooks.
    pub fn noted(&self, function: FunctionId) -> KnownFunction {
        let known = self.get(function);
        let first = self
            .tables()
            .by_id
            .get_mut(&function)
            .map(|entry| (!std::mem::replace(&mut entry.noted, true)).then_some(entry.inlined));
        if let Some(inlined) = first.flatten() {
            let name = self.names.function(&self.info, function);
            let module = self.module(name.module_id, &name.module);
            self.note(known.index, &name, module.index, inlined);
        }
        known
    }

    /// The function, if it was looked up before; never asks the runtime.
    pub fn known(&self, function: FunctionId) -> Option<KnownFunction> {
        self.tables().by_id.get(&function).map(|entry| entry.known)
    }

    /// Whether a function that was looked up before belongs to the framework; never asks the
    /// runtime.
    pub fn is_framework(&self, function: FunctionId) -> bool {
        let tables = self.tables();
        let module = tables.by_id.get(&function).map(|entry| entry.module);
        module.and_then(|module| tables.modules.get(&module)).is_some_and(|module| module.framework)
    }

    /// Whether include patterns name functions. Calls of those functions must not be inlined.
    pub fn names_functions(&self) -> bool {
        self.choice.filter.names_any()
    }

    /// Adds a remark to the recording.
    pub fn remark(&self, kind: RemarkKind, text: &str) {
        self.writer.remark(monotonic_ns(), kind, text);
    }

    /// Cache of the names of classes and modules.
    pub fn names(&self) -> &NameCache {
        &self.names
    }

    fn insert(&self, function: FunctionId, name: &FunctionName, module: Module, new: KnownFunction) -> KnownFunction {
        let (known, is_new, inlined) = {
            let mut tables = self.tables();
            match tables.by_id.get(&function) {
                // Another thread compiled the same function in the meantime.
                Some(entry) => (entry.known, false, entry.inlined),
                None => {
                    let known = KnownFunction { index: tables.functions, ..new };
                    tables.functions += 1;
                    let inlined = tables.inlined.remove(&function);
                    let entry = Entry { known, module: name.module_id, noted: new.wanted, inlined };
                    tables.by_id.insert(function, entry);
                    (known, true, inlined)
                }
            }
        };
        if is_new {
            log(Level::Debug, || {
                let what = if known.wanted { "recorded" } else { "not recorded" };
                format!("function {}: {} {}, {what}", known.index, name.module, name.signature)
            });
        }
        if is_new && known.wanted {
            self.note(known.index, name, module.index, inlined);
        }
        known
    }

    /// Notes that the compiler inlines the function. Never asks the runtime.
    fn inlined(&self, function: FunctionId) {
        let noted = {
            let mut tables = self.tables();
            match tables.by_id.get_mut(&function) {
                Some(entry) => {
                    let is_first = !std::mem::replace(&mut entry.inlined, true);
                    (is_first && entry.noted).then_some(entry.known.index)
                }
                None => {
                    tables.inlined.insert(function);
                    None
                }
            }
        };
        if let Some(index) = noted {
            self.writer.function_inlined(index);
        }
    }

    fn note(&self, index: u32, name: &FunctionName, module: u32, inlined: bool) {
        self.writer.function(
            index,
            Function {
                name: name.name.clone(),
                signature: name.signature.clone(),
                raw_name: name.raw_name.clone(),
                module,
                token: name.token.as_raw(),
                kind: FunctionKind::Managed,
                source: source_kind(name),
                flags: FunctionFlags {
                    dynamic: name.token.as_raw() == 0,
                    inlined,
                    tail_recursive: self.choice.counts_calls && self.is_tail_recursive(name),
                    ..FunctionFlags::default()
                },
            },
        );
    }

    fn passes(&self, name: &FunctionName, module: Module) -> bool {
        let passes = self.choice.filter.passes(name);
        passes && !(self.choice.just_my_code && module.framework)
    }

    fn is_wanted(&self, name: &FunctionName) -> bool {
        let choice = &self.choice;
        if !choice.helpers && is_runtime_helper(name) {
            return false;
        }
        choice.trivial || !self.is_trivial(name)
    }

    fn is_trivial(&self, name: &FunctionName) -> bool {
        self.info.il_function_body(name.module_id, name.token).is_ok_and(|body| il::is_trivial(&body))
    }

    /// Whether the function ends with a call to itself, which the compiler may turn into a loop.
    /// The call may name the function's own token, an instantiation, or a method of an
    /// instantiation of its type. Never for a function marked `NoInlining` or `NoOptimization`: the
    /// runtime allows no such tail calls there (`CEEInfo::canTailCall` in its `jitinterface.cpp`).
    fn is_tail_recursive(&self, name: &FunctionName) -> bool {
        /// `miNoInlining` and `miNoOptimization` (ECMA-335, II.23.1.11).
        const KEPT: u32 = 0x8 | 0x40;
        let Ok(body) = self.info.il_function_body(name.module_id, name.token) else { return false };
        let (Ok(metadata), mut own) = (self.names.metadata(&self.info, name.module_id), None) else { return false };
        let mut is_itself = |called: Token| {
            let Some(own) = own.get_or_insert_with(|| metadata.method(name.token).ok()) else { return false };
            // The runtime uses the row of a token and ignores its table.
            let called = match called.table() == Token::METHOD_SPEC {
                true => metadata.method_spec(called).map_or(called, |spec| spec.method),
                false => called,
            };
            let is_of_own_type = |member: &MemberRef| {
                let spec = (member.parent.table() == Token::TYPE_SPEC).then(|| metadata.type_spec(member.parent).ok());
                let parent = spec.flatten().and_then(|blob| signature::type_spec(&blob).ok());
                matches!(parent, Some(Type::Generic { token, .. }) if token == own.class)
            };
            let is_own = |member: &MemberRef| {
                member.name == own.name && member.signature == own.signature && is_of_own_type(member)
            };
            own.impl_flags & KEPT == 0
                && (called == name.token
                    || called.table() == Token::MEMBER_REF
                        && metadata.member_ref(called).is_ok_and(|member| is_own(&member)))
        };
        il::calls_itself_last(&body, &mut is_itself)
    }

    fn module(&self, id: ModuleId, name: &str) -> Module {
        if let Some(found) = self.tables().modules.get(&id) {
            return *found;
        }
        let info = self.info.module_info(id).ok();
        let is_made = info.as_ref().is_some_and(|info| info.flags.is_dynamic());
        let path = info.map(|info| info.path).unwrap_or_default();
        let framework = is_framework(&path, name);
        let path = if is_made { path } else { beside_program(path) };
        let (module, is_new) = {
            let mut tables = self.tables();
            match tables.modules.get(&id) {
                Some(found) => (*found, false),
                None => {
                    tables.module_count += 1;
                    let module = Module { index: tables.module_count, framework };
                    tables.modules.insert(id, module);
                    (module, true)
                }
            }
        };
        if is_new {
            let metadata = self.names.metadata(&self.info, id);
            let version = metadata.and_then(|metadata| metadata.assembly_version()).unwrap_or_default();
            self.writer.module(
                module.index,
                model::Module { name: name.to_owned(), path, version, framework, ..model::Module::default() },
            );
        }
        module
    }

    /// Index of a module; 0 if the runtime can't describe it. Notes a new module in the recording.
    /// Call only where calls into the runtime are allowed.
    pub fn module_index(&self, id: ModuleId) -> u32 {
        if let Some(found) = self.tables().modules.get(&id) {
            return found.index;
        }
        self.names.assembly(&self.info, id).map_or(0, |name| self.module(id, &name).index)
    }

    /// Whether a module belongs to the framework. Call only where calls into the runtime are
    /// allowed.
    pub fn is_framework_module(&self, id: ModuleId, path: &str) -> bool {
        self.names.assembly(&self.info, id).is_ok_and(|name| is_framework(path, &name))
    }

    /// Whether a method passes the selection filters; the method need not be compiled. A method
    /// that the runtime can't name does not pass. Call only where calls into the runtime are
    /// allowed.
    pub fn passes_method(&self, module: ModuleId, method: Token) -> bool {
        if self.choice.filter.is_empty() {
            return true;
        }
        self.names.method(&self.info, module, method).is_ok_and(|name| self.choice.filter.passes(&name))
    }

    /// The index of the unmanaged function that `function` calls, named by the P/Invoke map of
    /// `function`. Without names there, one index represents all such functions.
    pub fn native(&self, function: Option<FunctionId>) -> u32 {
        let (library, entry) = function.and_then(|f| self.import_of(f)).unwrap_or_default();
        let name = match (library.is_empty(), entry.is_empty()) {
            (_, true) => "[native]".to_owned(),
            (true, false) => format!("[native]{entry}"),
            (false, false) => format!("[{library}]{entry}"),
        };
        let (index, is_new) = {
            let mut tables = self.tables();
            match tables.native.get(&name) {
                Some(index) => (*index, false),
                None => {
                    let index = tables.functions;
                    tables.functions += 1;
                    tables.native.insert(name.clone(), index);
                    (index, true)
                }
            }
        };
        if is_new {
            let [signature, raw_name] = [name.clone(), name.clone()];
            let native = Function { name, signature, raw_name, kind: FunctionKind::Native, ..Function::default() };
            self.writer.function(index, native);
        }
        index
    }

    /// Adds a native library, or another file with code, to the recording. Returns its index.
    pub fn library(&self, module: model::Module) -> u32 {
        let index = {
            let mut tables = self.tables();
            tables.module_count += 1;
            tables.module_count
        };
        self.writer.module(index, module);
        index
    }

    fn import_of(&self, function: FunctionId) -> Option<(String, String)> {
        let name = self.names.function(&self.info, function);
        let metadata = self.names.metadata(&self.info, name.module_id).ok()?;
        let import = metadata.pinvoke_map(name.token).ok()??;
        let file = Path::new(&import.library).file_name()?.to_string_lossy().into_owned();
        let entry =
            if import.entry_point.is_empty() { name.name.rsplit("::").next()?.to_owned() } else { import.entry_point };
        Some((file, entry))
    }

    /// Forgets the ids of an unloaded module: the runtime reuses them.
    fn forget_module(&self, module: ModuleId) {
        self.names.module_unloaded(module);
        let gone: Vec<u32> = {
            let mut tables = self.tables();
            tables.modules.remove(&module);
            let gone =
                tables.by_id.values().filter(|entry| entry.module == module).map(|entry| entry.known.index).collect();
            tables.by_id.retain(|_, entry| entry.module != module);
            // It is not known to which module these belong, and their identifiers may be reused.
            tables.inlined.clear();
            gone
        };
        for index in gone {
            self.writer.function_unloaded(index);
        }
    }

    /// Forgets the id of a dynamic method that was freed.
    fn forget_function(&self, function: FunctionId) {
        self.names.function_unloaded(function);
        self.tables().by_id.remove(&function);
    }
}

/// Forgets names when the runtime is about to reuse their identifiers, forbids inlining of
/// functions that includes name, and marks other functions that are inlined.
impl Callbacks for Functions {
    /// Notes the modules that were loaded before the agent was attached. Functions are noted when
    /// they are first seen.
    fn profiler_attach_complete(&self) {
        for module in self.info.modules().unwrap_or_default() {
            if let Ok(name) = self.names.assembly(&self.info, module) {
                self.module(module, &name);
            }
        }
    }

    fn jit_inlining(&self, _caller: FunctionId, callee: FunctionId) -> Inlining {
        if self.names_functions() && self.get(callee).named {
            return Inlining::Forbid;
        }
        self.inlined(callee);
        Inlining::Allow
    }

    fn module_unload_finished(&self, module: ModuleId, _status: clr_profiler::Result<()>) {
        self.forget_module(module);
    }

    fn dynamic_method_unloaded(&self, function: FunctionId) {
        self.forget_function(function);
    }

    /// The library stays in the process, and so does this object. Metadata that it holds open
    /// occupies the runtime's memory.
    fn profiler_detach_succeeded(&self) {
        self.names.forget_all();
        let mut tables = self.tables();
        tables.by_id = HashMap::new();
        tables.inlined = HashSet::new();
    }
}

fn source_kind(name: &FunctionName) -> SourceKind {
    use clr_profiler::{Closure, StateMachine};
    match (&name.source_kind.state_machine, &name.source_kind.closure) {
        (StateMachine::Async, _) => SourceKind::Async,
        (StateMachine::Iterator | StateMachine::AsyncIterator, _) => SourceKind::Iterator,
        (StateMachine::None, Closure::Lambda) => SourceKind::Lambda,
        (StateMachine::None, Closure::LocalFunction(_)) => SourceKind::LocalFunction,
        // A kind that a later version of the framework adds is treated as plain here.
        _ => SourceKind::Plain,
    }
}

/// Functions of CoreLib that compiled code calls implicitly: casts, statics, exception handling,
/// dispatch of tail calls, stubs. They are not the user's calls, and on .NET 10 they are 7 % of a
/// compiler's calls.
pub fn is_runtime_helper(name: &FunctionName) -> bool {
    const TYPES: [&str; 14] = [
        "System.Runtime.CompilerServices.CastHelpers",
        "System.Runtime.CompilerServices.StaticsHelpers",
        "System.Runtime.CompilerServices.InitHelpers",
        "System.Runtime.CompilerServices.ThreadStaticsHelpers",
        "System.Runtime.CompilerServices.VirtualDispatchHelpers",
        "System.Runtime.CompilerServices.GenericsHelpers",
        "System.Runtime.CompilerServices.BoxingHelpers",
        "System.Runtime.EH",
        "System.Runtime.InternalCalls",
        "System.Runtime.StackFrameIterator",
        "System.Runtime.ExceptionServices.InternalCalls",
        "System.Runtime.CompilerServices.TailCallArgBuffer",
        "System.StubHelpers.StubHelpers",
        "System.Math+Helpers",
    ];
    if &*name.module != "System.Private.CoreLib" {
        return false;
    }
    let (type_name, method) = name.name.split_once("::").unwrap_or_default();
    TYPES.contains(&type_name)
        || (type_name == "System.Runtime.CompilerServices.RuntimeHelpers" && method.contains("TailCall"))
}

/// Full path of an assembly. For an assembly within a single-file program, the runtime gives a name
/// without a folder. Its path is then that of a file next to the program.
pub fn beside_program(path: String) -> String {
    let has_folder = Path::new(&path).parent().is_none_or(|folder| folder != Path::new(""));
    match process::executable().parent() {
        Some(folder) if !path.is_empty() && !has_folder => folder.join(path).to_string_lossy().into_owned(),
        _ => path,
    }
}

/// Beginnings of the names of framework assemblies, and of assemblies that find and run tests:
/// xUnit, NUnit, MSTest and their adapters. The test platform's names begin with `Microsoft.` like
/// the framework's. The comparison is case-sensitive: a program's own tests of NUnit are
/// `NUnit.Something`.
const FRAMEWORK_BEGINNINGS: &[&str] =
    &["System.", "Microsoft.", "xunit.", "nunit.", "NUnit3.TestAdapter", "MSTest.", "MSTestAdapter."];

/// Names of other framework assemblies, and of the test platform's programs.
const FRAMEWORK_NAMES: &[&str] = &[
    "System",
    "mscorlib",
    "netstandard",
    "WindowsBase",
    "testhost",
    "testhost.x86",
    "vstest.console",
    "datacollector",
];

/// Whether an assembly belongs to the framework or to a test runner: it lies in a shared
/// framework's folder, or its name says so, as in a self-contained program.
fn is_framework(path: &str, name: &str) -> bool {
    path.contains("/shared/Microsoft.")
        || FRAMEWORK_BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
        || FRAMEWORK_NAMES.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::is_framework;

    #[test]
    fn the_framework_and_what_runs_tests_are_told_by_their_names() {
        let framework = [
            "System.Private.CoreLib",
            "Microsoft.AspNetCore.Http",
            "netstandard",
            // `dotnet test`, and the assemblies that it loads for each test framework.
            "testhost",
            "Microsoft.TestPlatform.CrossPlatEngine",
            "Microsoft.VisualStudio.TestPlatform.ObjectModel",
            "Microsoft.Testing.Platform",
            "xunit.core",
            "xunit.execution.dotnet",
            "xunit.runner.visualstudio.testadapter",
            "xunit.v3.core",
            "nunit.framework",
            "NUnit3.TestAdapter",
            "MSTest.TestFramework",
            "MSTestAdapter.PlatformServices",
        ];
        for name in framework {
            assert!(is_framework("/app/it.dll", name), "{name}");
        }
        for name in ["App", "App.Tests", "Xunit2.Tests", "NUnit.Own", "testhosts", "MSTests", "SystemTests"] {
            assert!(!is_framework("/app/it.dll", name), "{name}");
        }
        assert!(is_framework("/usr/share/dotnet/shared/Microsoft.NETCore.App/8.0.0/Any.dll", "Any"));
    }
}
