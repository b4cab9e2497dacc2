//! Names of functions and types, as a C# programmer would write them.

mod csharp;
mod function;
mod members;
mod source;
mod statics;
mod table;
mod types;
mod visual_basic;

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::metadata::MetadataImport;
use crate::metadata::signature::Type;
use crate::{ClassId, FunctionId, ModuleId, ProfilerInfo, Result, Token};
use csharp::Context;
use types::ModuleNames;

pub use source::{Closure, SourceKind, StateMachine};
pub use table::NamedFunctions;

/// A function's names.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct FunctionName {
    /// `Namespace.Type::Method` without type arguments, arity and parameters, nested types joined
    /// by `+`; state machines, lambdas and local functions as the method they were written in.
    pub name: String,
    /// Signature as C# would write it, with type arguments and parameter types (constructors by
    /// their type's name, accessors as `Total.get`), and at the end what kind of code it is where
    /// it is not the method itself: `Shop.Checkout.Pay(Shop.Order) (async)`. Where the source
    /// method can't be told from its overloads, `(...)`. Type parameters of a class whose code is
    /// shared over reference types stand for themselves, on .NET 10 as on 8 and 9, which do not
    /// give the arguments; among those of a method `__Canon` stands for all reference types.
    pub signature: String,
    /// Name as the metadata has it: ``Shop.Checkout+<Pay>d__5`1::MoveNext``.
    pub raw_name: String,
    /// The simple name of the assembly it is declared in; empty where there is none.
    pub module: Arc<str>,
    /// Token; nil for functions without metadata.
    pub token: Token,
    /// Module.
    pub module_id: ModuleId,
    /// Part of the source method that this code is.
    pub source_kind: SourceKind,
}

impl FunctionName {
    /// Whether it is the runtime's own exception handling, which from .NET 9 on is managed code: it
    /// enters between throw and unwinding and never leaves. A mapper that skips it keeps the shadow
    /// stack the program's.
    #[must_use]
    pub fn is_exception_handling(&self) -> bool {
        const TYPES: [&str; 3] = [
            "System.Runtime.EH::",
            "System.Runtime.StackFrameIterator::",
            "System.Runtime.ExceptionServices.InternalCalls::",
        ];
        &*self.module == "System.Private.CoreLib" && TYPES.iter().any(|prefix| self.name.starts_with(prefix))
    }
}

/// Names of functions and types, as a C# programmer would write them, looked up once.
///
/// Code that the compiler made of a part of a method has the name of that method:
///
/// ```
/// use clr_profiler::{FunctionId, NameCache, ProfilerInfo};
///
/// /// `Shop.Checkout.Pay(Shop.Order) (async)` for the state machine that `async` made of `Pay`.
/// fn in_a_callback(names: &NameCache, info: &ProfilerInfo, function: FunctionId) -> String {
///     let name = names.function(info, function);
///     if name.source_kind.is_plain() { name.name.clone() } else { name.signature.clone() }
/// }
/// ```
///
/// Usable from every thread. It holds at most [`LIMIT`](Self::LIMIT) functions and as many types;
/// when it is full it begins again. Notify the cache of what the runtime unloads
/// ([`module_unloaded`](Self::module_unloaded), [`function_unloaded`](Self::function_unloaded)):
/// identifiers are used again, and the metadata of a module that is gone must not be touched.
///
/// A name costs 7 µs on average when it is first looked up (24,000 functions of the C# compiler)
/// and up to 6 KiB of stack, the runtime's own part included.
///
/// The cache may be used in callbacks about functions, classes, modules and exceptions, in
/// [`object_allocated`](crate::Callbacks::object_allocated), in the mapper, and on threads of the
/// profiler's own; not in hooks, nor while a collection runs
/// ([`for_each_callback!`](crate::for_each_callback) says it of each callback). A look-up loads no
/// type, but may let a collection run: ask for the size of an object before the name of its class.
#[derive(Default)]
pub struct NameCache {
    known: Mutex<CachedNames>,
}

#[derive(Default)]
struct CachedNames {
    functions: HashMap<FunctionId, Arc<FunctionName>>,
    classes: HashMap<ClassId, Arc<str>>,
    modules: HashMap<ModuleId, Arc<ModuleNames>>,
    /// Counts unloads: what was looked up before one is not stored after it.
    unloads: u64,
}

/// Type arguments nested deeper than this are cut.
const DEPTH: u32 = 16;

impl NameCache {
    /// Most functions, and most types, that are kept.
    pub const LIMIT: usize = 1 << 16;

    /// An empty cache.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The names of a function. One the runtime says nothing about is `[unknown]::0x1234`.
    #[must_use]
    pub fn function(&self, info: &ProfilerInfo, function: FunctionId) -> Arc<FunctionName> {
        let (known, unloads) = {
            let known = self.lock();
            (known.functions.get(&function).cloned(), known.unloads)
        };
        if let Some(name) = known {
            return name;
        }
        // No lock is held while the runtime is asked: it takes locks of its own and may be slow.
        match self.resolve(info, function) {
            Ok(name) => {
                let name = Arc::new(name);
                self.store(unloads, |known| &mut known.functions, function, &name);
                name
            }
            Err(_) => Arc::new(unknown(function)),
        }
    }

    /// The names of a function, straight from the runtime.
    ///
    /// # Errors
    /// The runtime's error, for instance `CORPROF_E_DATAINCOMPLETE` while the module is still
    /// loading.
    pub fn resolve(&self, info: &ProfilerInfo, function: FunctionId) -> Result<FunctionName> {
        function::resolve(self, info, function)
    }

    /// The names of a method of a module, whether it was compiled or not: type parameters stand for
    /// themselves. Not kept.
    ///
    /// # Errors
    /// The runtime's error: for a token that is none of a method.
    pub fn method(&self, info: &ProfilerInfo, module: ModuleId, method: Token) -> Result<FunctionName> {
        function::resolve_method(self, info, module, method)
    }

    /// A class as C# writes it: `System.Collections.Generic.Dictionary<string, int>.Enumerator`,
    /// `int[,]`. One the runtime says nothing about is `?`.
    #[must_use]
    pub fn class(&self, info: &ProfilerInfo, class: ClassId) -> Arc<str> {
        self.class_within(info, class, DEPTH)
    }

    fn class_within(&self, info: &ProfilerInfo, class: ClassId, depth: u32) -> Arc<str> {
        let (known, unloads) = {
            let known = self.lock();
            (known.classes.get(&class).cloned(), known.unloads)
        };
        if let Some(name) = known {
            return name;
        }
        let Some(inner) = depth.checked_sub(1).filter(|_| !class.is_null()) else { return "?".into() };
        match function::resolve_class(self, info, class, inner) {
            Ok(name) => {
                let name: Arc<str> = name.into();
                self.store(unloads, |known| &mut known.classes, class, &name);
                name
            }
            Err(_) => "?".into(),
        }
    }

    /// A type in a signature of this module as C# writes it, by metadata alone: nothing of it need
    /// be loaded. `type_arguments` are what the type's generic parameters stand for,
    /// `method_arguments` what the method's do; others are `T0` and `M0`.
    ///
    /// # Errors
    /// The runtime's error about the module.
    pub fn type_in_signature(
        &self,
        info: &ProfilerInfo,
        module: ModuleId,
        ty: &Type,
        type_arguments: &[Arc<str>],
        method_arguments: &[Arc<str>],
    ) -> Result<String> {
        let module = self.module(info, module)?;
        let mut text = String::new();
        Context { module: &module, type_arguments, method_arguments }.write_type(&mut text, ty);
        Ok(text)
    }

    /// The names of a function if they have been looked up before. Asks the runtime nothing, so it
    /// is safe while a collection runs, too.
    #[must_use]
    pub fn known_function(&self, function: FunctionId) -> Option<Arc<FunctionName>> {
        self.lock().functions.get(&function).cloned()
    }

    /// The name of a class if it has been looked up before. Asks the runtime nothing, so it is safe
    /// while a collection runs, too.
    #[must_use]
    pub fn known_class(&self, class: ClassId) -> Option<Arc<str>> {
        self.lock().classes.get(&class).cloned()
    }

    /// The simple name of a module's assembly.
    ///
    /// # Errors
    /// The runtime's error, for instance `CORPROF_E_DATAINCOMPLETE` while the module is still
    /// loading.
    pub fn assembly(&self, info: &ProfilerInfo, module: ModuleId) -> Result<Arc<str>> {
        Ok(Arc::clone(&self.module(info, module)?.assembly))
    }

    /// The metadata of a module, opened once: [`ProfilerInfo::module_metadata`] takes 20 µs each
    /// time.
    ///
    /// # Errors
    /// The runtime's error, for instance `CORPROF_E_DATAINCOMPLETE` while the module is still
    /// loading.
    pub fn metadata(&self, info: &ProfilerInfo, module: ModuleId) -> Result<MetadataImport> {
        Ok(self.module(info, module)?.metadata.clone())
    }

    fn module(&self, info: &ProfilerInfo, module: ModuleId) -> Result<Arc<ModuleNames>> {
        let (known, unloads) = {
            let known = self.lock();
            (known.modules.get(&module).cloned(), known.unloads)
        };
        if let Some(names) = known {
            return Ok(names);
        }
        self.keep_module(info, module, info.module_metadata(module)?, unloads)
    }

    /// A module with what was added to it while the program runs.
    fn live_module(&self, info: &ProfilerInfo, module: ModuleId) -> Result<Arc<ModuleNames>> {
        let unloads = self.lock().unloads;
        self.keep_module(info, module, info.live_metadata(module)?, unloads)
    }

    fn keep_module(
        &self,
        info: &ProfilerInfo,
        module: ModuleId,
        metadata: MetadataImport,
        unloads: u64,
    ) -> Result<Arc<ModuleNames>> {
        let assembly = info.assembly_info(info.module_info(module)?.assembly)?.name;
        let names = Arc::new(ModuleNames::new(metadata, assembly.into()));
        self.store(unloads, |known| &mut known.modules, module, &names);
        Ok(names)
    }

    /// Forgets all that a module's unloading makes wrong. Call it in `module_unload_started` or
    /// `module_unload_finished`.
    pub fn module_unloaded(&self, module: ModuleId) {
        let mut known = self.lock();
        known.unloads += 1;
        known.modules.remove(&module);
        // Type arguments from the module may be anywhere: in a `List<Mine>.Add` of another module
        // too.
        known.classes.clear();
        known.functions.retain(|_, name| name.module_id != module && !name.signature.contains('<'));
    }

    /// Forgets a dynamic method that was freed. Call it in `dynamic_method_unloaded`.
    pub fn function_unloaded(&self, function: FunctionId) {
        let mut known = self.lock();
        known.unloads += 1;
        known.functions.remove(&function);
    }

    /// Forgets everything, and closes the metadata of all modules. For a profiler that the runtime
    /// lets go, or that has nothing to do for a while.
    pub fn forget_all(&self) {
        let unloads = self.lock().unloads + 1;
        let gone = std::mem::replace(&mut *self.lock(), CachedNames { unloads, ..CachedNames::default() });
        // Outside of the lock: metadata belongs to the runtime.
        drop(gone);
    }

    fn lock(&self) -> MutexGuard<'_, CachedNames> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn store<K: Eq + Hash, V>(
        &self,
        unloads: u64,
        table: impl FnOnce(&mut CachedNames) -> &mut HashMap<K, Arc<V>>,
        key: K,
        value: &Arc<V>,
    ) where
        V: ?Sized,
    {
        let mut known = self.lock();
        if known.unloads != unloads {
            return;
        }
        let table = table(&mut known);
        if table.len() >= Self::LIMIT {
            table.clear();
        }
        table.insert(key, Arc::clone(value));
    }
}

fn unknown(function: FunctionId) -> FunctionName {
    let name = format!("[unknown]::{:#x}", function.0);
    FunctionName {
        signature: name.clone(),
        raw_name: name.clone(),
        name,
        module: "".into(),
        token: Token(0),
        module_id: ModuleId(0),
        source_kind: SourceKind::default(),
    }
}
