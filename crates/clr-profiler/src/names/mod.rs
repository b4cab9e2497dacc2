//! Names of functions and types, as a C# programmer would write them.

mod source;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::{FunctionId, ModuleId, ProfilerInfo, Result, Token};

pub use source::{Closure, SourceKind, StateMachine};

/// A function's names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FunctionName {
    /// `Namespace.Type::Method` without type arguments, arity and parameters, nested types joined by `+`; state machines,
    /// lambdas and local functions as the method they were written in.
    pub name: String,
    /// As C# would write it, with type arguments and parameter types, and at the end what kind of code it is where it is
    /// not the method itself: `Shop.Checkout.Pay(Shop.Order) (async)`.
    pub signature: String,
    /// As the metadata has it: ``Shop.Checkout+<Pay>d__5`1::MoveNext``.
    pub raw_name: String,
    /// The simple name of the assembly it is declared in; empty where there is none.
    pub module: String,
    /// Its token; nil for functions without metadata.
    pub token: Token,
    /// Its module.
    pub module_id: ModuleId,
    /// Which code of the source method it is.
    pub source_kind: SourceKind,
}

/// Names of functions and types, looked up once.
pub struct NameCache {
    functions: Mutex<HashMap<FunctionId, Arc<FunctionName>>>,
}

impl NameCache {
    /// An empty cache.
    pub fn new() -> Self {
        Self { functions: Mutex::default() }
    }

    /// The names of a function.
    pub fn function(&self, info: &ProfilerInfo, function: FunctionId) -> Arc<FunctionName> {
        if let Some(name) = self.functions.lock().unwrap_or_else(PoisonError::into_inner).get(&function) {
            return Arc::clone(name);
        }
        let name = Arc::new(resolve(info, function).unwrap_or_else(|_| unknown(function)));
        self.functions.lock().unwrap_or_else(PoisonError::into_inner).insert(function, Arc::clone(&name));
        name
    }

    /// Forgets what belongs to a module that is unloading.
    pub fn module_unloaded(&self, module: ModuleId) {
        self.functions.lock().unwrap_or_else(PoisonError::into_inner).retain(|_, name| name.module_id != module);
    }

    /// Forgets a dynamic method that was freed.
    pub fn function_unloaded(&self, function: FunctionId) {
        self.functions.lock().unwrap_or_else(PoisonError::into_inner).remove(&function);
    }
}

impl Default for NameCache {
    fn default() -> Self {
        Self::new()
    }
}

fn unknown(function: FunctionId) -> FunctionName {
    let name = format!("[unknown]::{:#x}", function.0);
    FunctionName {
        signature: name.clone(),
        raw_name: name.clone(),
        name,
        module: String::new(),
        token: Token(0),
        module_id: ModuleId(0),
        source_kind: SourceKind::default(),
    }
}

fn resolve(info: &ProfilerInfo, function: FunctionId) -> Result<FunctionName> {
    let place = info.function_info(function)?;
    let metadata = info.module_metadata(place.module)?;
    let assembly = info.assembly_info(info.module_info(place.module)?.assembly)?;
    let method = metadata.method(place.token)?;
    let class = metadata.type_def(method.class)?;
    let name = format!("{}::{}", class.name, method.name);
    Ok(FunctionName {
        signature: name.clone(),
        raw_name: name.clone(),
        name,
        module: assembly.name,
        token: place.token,
        module_id: place.module,
        source_kind: SourceKind::default(),
    })
}
