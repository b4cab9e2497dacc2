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
    /// by `+`; state machines, lambdas and local functions have the name of their source method.
    pub name: String,
    /// Signature in C# notation, with type arguments and parameter types:
    /// `Shop.Checkout.Pay(Shop.Order) (async)`. A constructor has the name of its type, an accessor
    /// is written like `Total.get`. The kind of code is at the end, if the code is not the method
    /// itself. The parameters are `(...)` if the source method is one of several overloads. If the
    /// code of a class is shared over reference types, the signature has the names of its type
    /// parameters; .NET 8 and 9 do not return the type arguments of such a class, .NET 10 does, but
    /// the signature is the same on all versions. Among the type arguments of a method, `__Canon`
    /// means any reference type.
    pub signature: String,
    /// Name in the metadata: ``Shop.Checkout+<Pay>d__5`1::MoveNext``.
    pub raw_name: String,
    /// The simple name of the assembly that declares the function; empty if there is none.
    pub module: Arc<str>,
    /// Token of the method; nil for functions without metadata.
    pub token: Token,
    /// Module of the function.
    pub module_id: ModuleId,
    /// The part of the source method that this code was compiled from.
    pub source_kind: SourceKind,
}

impl FunctionName {
    /// Whether the function belongs to the runtime's own exception handling, which is managed code
    /// from .NET 9 on. Such functions enter between throw and unwinding and never leave. If a
    /// mapper skips them, the shadow stack has only calls of the program.
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

/// Cache of names of functions and types, as a C# programmer would write them.
///
/// Code that the compiler generated from a part of a method has the name of that method:
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
/// when it is full, it is cleared. Notify the cache of unloads
/// ([`module_unloaded`](Self::module_unloaded), [`function_unloaded`](Self::function_unloaded)):
/// the runtime reuses identifiers, and the metadata of an unloaded module must not be read.
///
/// The first look-up of a name takes 7 µs on average (24,000 functions of the C# compiler) and up
/// to 6 KiB of stack, including the runtime's part.
///
/// The cache may be used in callbacks about functions, classes, modules and exceptions, in
/// [`object_allocated`](crate::Callbacks::object_allocated), in the mapper, and on the profiler's
/// own threads. It may not be used in hooks or while a collection runs
/// ([`for_each_callback!`](crate::for_each_callback) lists this for each callback). A look-up loads
/// no type, but may allow a collection to run: query the size of an object before the name of its
/// class.
#[derive(Default)]
pub struct NameCache {
    known: Mutex<CachedNames>,
}

#[derive(Default)]
struct CachedNames {
    functions: HashMap<FunctionId, Arc<FunctionName>>,
    classes: HashMap<ClassId, Arc<str>>,
    modules: HashMap<ModuleId, Arc<ModuleNames>>,
    /// Number of unloads. A look-up that began before an unload is not stored after it.
    unloads: u64,
}

/// Maximum nesting depth of type arguments.
const DEPTH: u32 = 16;

impl NameCache {
    /// Maximum number of functions, and of types.
    pub const LIMIT: usize = 1 << 16;

    /// An empty cache.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The names of a function. If the runtime returns an error, the name is `[unknown]::0x1234`.
    #[must_use]
    pub fn function(&self, info: &ProfilerInfo, function: FunctionId) -> Arc<FunctionName> {
        let (known, unloads) = {
            let known = self.lock();
            (known.functions.get(&function).cloned(), known.unloads)
        };
        if let Some(name) = known {
            return name;
        }
        // No lock is held during a query: the runtime takes its own locks and may be slow.
        match self.resolve(info, function) {
            Ok(name) => {
                let name = Arc::new(name);
                self.store(unloads, |known| &mut known.functions, function, &name);
                name
            }
            Err(_) => Arc::new(unknown(function)),
        }
    }

    /// The names of a function, directly from the runtime.
    ///
    /// # Errors
    /// The runtime's error, for instance `CORPROF_E_DATAINCOMPLETE` while the module is still
    /// loading.
    pub fn resolve(&self, info: &ProfilerInfo, function: FunctionId) -> Result<FunctionName> {
        function::resolve(self, info, function)
    }

    /// The names of a method of a module, compiled or not. Type parameters keep their own names.
    /// The cache does not store the result.
    ///
    /// # Errors
    /// The runtime's error, also for a token that is not the token of a method.
    pub fn method(&self, info: &ProfilerInfo, module: ModuleId, method: Token) -> Result<FunctionName> {
        function::resolve_method(self, info, module, method)
    }

    /// The name of a class in C# notation: `System.Collections.Generic.Dictionary<string,
    /// int>.Enumerator`, `int[,]`. If the runtime returns an error, the name is `?`.
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

    /// The name of a type in a signature of this module, in C# notation. Uses only metadata, so the
    /// type need not be loaded. `type_arguments` replace the generic parameters of the type,
    /// `method_arguments` those of the method; parameters without an argument are `T0` and `M0`.
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

    /// The names of a function if they have been looked up before. Makes no query to the runtime,
    /// so it is safe while a collection runs, too.
    #[must_use]
    pub fn known_function(&self, function: FunctionId) -> Option<Arc<FunctionName>> {
        self.lock().functions.get(&function).cloned()
    }

    /// The name of a class if it has been looked up before. Makes no query to the runtime, so it is
    /// also safe during a collection.
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

    /// A module with the metadata that was added to it while the program runs.
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

    /// Forgets all names that the unload of a module makes invalid. Call it in
    /// `module_unload_started` or `module_unload_finished`.
    pub fn module_unloaded(&self, module: ModuleId) {
        let mut known = self.lock();
        known.unloads += 1;
        known.modules.remove(&module);
        // Type arguments from the module may occur in any name: in a `List<Mine>.Add` of another
        // module too.
        known.classes.clear();
        known.functions.retain(|_, name| name.module_id != module && !name.signature.contains('<'));
    }

    /// Forgets a dynamic method that was freed. Call it in `dynamic_method_unloaded`.
    pub fn function_unloaded(&self, function: FunctionId) {
        let mut known = self.lock();
        known.unloads += 1;
        known.functions.remove(&function);
    }

    /// Forgets everything, and closes the metadata of all modules. For a profiler that is detached
    /// or becomes idle.
    pub fn forget_all(&self) {
        let unloads = self.lock().unloads + 1;
        let gone = std::mem::replace(&mut *self.lock(), CachedNames { unloads, ..CachedNames::default() });
        // Dropped outside of the lock, because this releases metadata of the runtime.
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
