//! Facts about methods: the calls in their IL, and the names by which they are called.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use clr_profiler::il::{Body, ClauseKind, Flow, Opcode, raw_instructions};
use clr_profiler::metadata::signature::{self, Type};
use clr_profiler::metadata::{MetadataImport, MethodDef};
use clr_profiler::{ClassId, FunctionId, ModuleId, ProfilerInfo, Token};
use clrscope_agent_base::functions::{Functions, is_runtime_helper};

use super::inline_paths::{Callee, IlCall, Jump, MethodName};

/// Most methods that are remembered.
const MOST_METHODS: usize = 1 << 14;
/// Most base types that are visited.
const MOST_BASES: usize = 32;

/// Names of a method.
type Names = Arc<[MethodName]>;

/// Facts that were looked up. `None` for a method whose facts can't be found.
#[derive(Default)]
struct KnownFacts {
    calls: HashMap<FunctionId, Option<Arc<[IlCall]>>>,
    jumps: HashMap<FunctionId, Option<Arc<[Jump]>>>,
    names: HashMap<FunctionId, Option<Names>>,
    by_compilers: HashMap<FunctionId, bool>,
    /// Counts the events after which identifiers may mean other methods. A fact looked up before
    /// such an event is not stored after it.
    unloads: u64,
}

/// A table of facts.
type Table<T> = HashMap<FunctionId, T>;

/// Facts about methods, each looked up once. No lock is held while the runtime is asked.
pub(super) struct MethodFacts {
    info: ProfilerInfo,
    functions: Arc<Functions>,
    known: Mutex<KnownFacts>,
}

impl MethodFacts {
    pub(super) fn new(info: &ProfilerInfo, functions: &Arc<Functions>) -> Self {
        Self { info: info.clone(), functions: Arc::clone(functions), known: Mutex::default() }
    }

    fn known(&self) -> MutexGuard<'_, KnownFacts> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets all facts. From now on identifiers may mean other methods.
    pub(super) fn forget(&self) {
        let mut known = self.known();
        *known = KnownFacts { unloads: known.unloads + 1, ..KnownFacts::default() };
    }

    /// Call it when a dynamic method was freed, as its identifier may be reused.
    pub(super) fn forget_one(&self, method: FunctionId) {
        let mut known = self.known();
        known.calls.remove(&method);
        known.jumps.remove(&method);
        known.names.remove(&method);
        known.by_compilers.remove(&method);
        known.unloads += 1;
    }

    fn remembered<T: Clone>(
        &self,
        table: fn(&mut KnownFacts) -> &mut Table<T>,
        method: FunctionId,
        find: impl FnOnce() -> T,
    ) -> T {
        let (found, unloads) = {
            let mut known = self.known();
            (table(&mut known).get(&method).cloned(), known.unloads)
        };
        found.unwrap_or_else(|| {
            let found = find();
            let mut known = self.known();
            if known.unloads == unloads {
                let table = table(&mut known);
                if table.len() >= MOST_METHODS {
                    table.clear();
                }
                table.insert(method, found.clone());
            }
            found
        })
    }

    /// The calls in a method's IL; `None` if the IL can't be read.
    pub(super) fn calls(&self, method: FunctionId) -> Option<Arc<[IlCall]>> {
        self.remembered(|known| &mut known.calls, method, || self.find_calls(method))
    }

    /// The jumps in a method's IL, including those to its handlers; `None` if the IL can't be read.
    pub(super) fn jumps(&self, method: FunctionId) -> Option<Arc<[Jump]>> {
        self.remembered(|known| &mut known.jumps, method, || self.find_jumps(method))
    }

    /// Simple names by which a call may name a method: its own name, and the names of methods that
    /// it implements or overrides under another name. `None` if they can't be found.
    pub(super) fn names(&self, method: FunctionId) -> Option<Names> {
        self.remembered(|known| &mut known.names, method, || self.find_names(method))
    }

    /// Whether the core library declares the method.
    pub(super) fn is_of_core(&self, method: FunctionId) -> bool {
        &*self.functions.names().function(&self.info, method).module == CORE
    }

    /// Whether compiled code calls the method even where no IL does.
    pub(super) fn is_called_by_compilers(&self, method: FunctionId) -> bool {
        self.remembered(
            |known| &mut known.by_compilers,
            method,
            || {
                let name = self.functions.names().function(&self.info, method);
                is_runtime_helper(&name) || (&*name.module == CORE && is_of_compilers(&name.name))
            },
        )
    }

    /// Module and IL of a method.
    fn il(&self, method: FunctionId) -> Option<(ModuleId, Vec<u8>)> {
        let name = self.functions.names().function(&self.info, method);
        if &*name.module == CORE && name.name.starts_with(MADE_BY_RUNTIME) {
            return None;
        }
        let about = self.info.function_info(method).ok()?;
        Some((about.module, self.info.il_function_body(about.module, about.token).ok()?))
    }

    fn find_jumps(&self, method: FunctionId) -> Option<Arc<[Jump]>> {
        let body = Body::read(&self.il(method)?.1).ok()?;
        let mut jumps = Vec::new();
        for instruction in body.instructions() {
            for target in instruction.operand().targets() {
                jumps.push(Jump { from: instruction.label().offset(), to: target.offset()? });
            }
        }
        for clause in body.clauses() {
            let filter = match clause.kind() {
                ClauseKind::Filter(start) => Some(start),
                _ => None,
            };
            for start in [clause.handler().0].into_iter().chain(filter) {
                jumps.push(Jump { from: None, to: start.offset()? });
            }
        }
        Some(jumps.into())
    }

    fn find_calls(&self, method: FunctionId) -> Option<Arc<[IlCall]>> {
        let (module, body) = self.il(method)?;
        let metadata = self.functions.names().metadata(&self.info, module).ok()?;
        let mut calls = Vec::new();
        for instruction in raw_instructions(&body).ok()? {
            let instruction = instruction.ok()?;
            let is_call = instruction.opcode.flow() == Flow::Call || instruction.opcode == Opcode::Jmp;
            if !is_call {
                continue;
            }
            let callee = match instruction.opcode {
                Opcode::Calli => Callee::Any,
                _ => {
                    let token = Token::new(u32::from_le_bytes(instruction.operand.try_into().ok()?));
                    match named(&metadata, token)? {
                        MethodName { name, parameters, .. } if &*name == "Invoke" => Callee::Delegate(parameters),
                        named => Callee::Named(named),
                    }
                }
            };
            calls.push(IlCall { offset: Some(instruction.offset), callee });
        }
        Some(calls.into())
    }

    fn find_names(&self, method: FunctionId) -> Option<Names> {
        let about = self.info.function_info(method).ok()?;
        let metadata = self.functions.names().metadata(&self.info, about.module).ok()?;
        let declared = metadata.method(about.token).ok()?;
        let mut names = vec![named(&metadata, about.token)?];
        let mut next = Some(DeclaredType { module: about.module, token: declared.class, class: about.class });
        let mut left = MOST_BASES;
        while let Some(at) = next.take().filter(|at| at.token.as_raw() & 0x00FF_FFFF != 0) {
            let metadata = self.functions.names().metadata(&self.info, at.module).ok()?;
            for (body, declaration) in metadata.method_impls(at.token).ok()? {
                let (body, declaration) = (named(&metadata, body)?, named(&metadata, declaration)?);
                if names.contains(&body) && !names.contains(&declaration) {
                    names.push(declaration);
                }
            }
            if may_override(&declared) {
                left = left.checked_sub(1)?;
                next = self.base(&at, &metadata)?;
            }
        }
        Some(names.into())
    }

    /// The base type. `Some(None)` where there is none, `None` if it can't be found.
    fn base(&self, of: &DeclaredType, metadata: &MetadataImport) -> Option<Option<DeclaredType>> {
        if let Some(class) = of.class {
            let Some(class) = self.info.class_info(class).ok()?.parent else { return Some(None) };
            let about = self.info.class_info(class).ok()?;
            return Some(Some(DeclaredType { module: about.module, token: about.token, class: Some(class) }));
        }
        // The runtime does not give the class of code that instantiations share.
        let mut extends = metadata.type_def(of.token).ok()?.extends;
        if extends.as_raw() >> 24 == TYPE_SPEC {
            let (Type::Generic { token, .. } | Type::Named { token, .. }) =
                signature::type_spec(&metadata.type_spec(extends).ok()?).ok()?
            else {
                return None;
            };
            extends = token;
        }
        match extends.as_raw() >> 24 {
            _ if extends.as_raw() & 0x00FF_FFFF == 0 => Some(None),
            TYPE_DEF => Some(Some(DeclaredType { token: extends, ..*of })),
            // These override nothing under another name.
            TYPE_REF => {
                let name = metadata.type_ref(extends).ok()?.name;
                matches!(name.as_str(), "System.Object" | "System.ValueType" | "System.Enum").then_some(None)
            }
            _ => None,
        }
    }
}

/// The core library.
const CORE: &str = "System.Private.CoreLib";
/// Kinds of tokens.
const TYPE_REF: u32 = 0x01;
const TYPE_DEF: u32 = 0x02;
const TYPE_SPEC: u32 = 0x1B;

/// Methods that call others, and whose IL the runtime generates in place of that in the metadata.
const MADE_BY_RUNTIME: &str = "System.Activator::CreateInstance";

/// A type at its declaration.
#[derive(Clone, Copy)]
struct DeclaredType {
    module: ModuleId,
    token: Token,
    /// The runtime's identifier, where that is known.
    class: Option<ClassId>,
}

/// Whether a method may override a method of a base type.
fn may_override(method: &MethodDef) -> bool {
    method.attributes.is_virtual() && !method.attributes.is_new_slot()
}

/// Whether compilers call a method of the core library for IL without such a call, in addition to
/// the runtime's own helpers: copies and fills of memory, checked conversions, throws, constructors
/// of strings and delegates.
fn is_of_compilers(name: &str) -> bool {
    const TYPES: [&str; 10] = [
        "System.SpanHelpers",
        "System.Buffer",
        "System.Math",
        "System.String",
        "System.Delegate",
        "System.MulticastDelegate",
        "System.TypedReference",
        "System.RuntimeTypeHandle",
        "System.Runtime.CompilerServices.AsyncHelpers",
        "Internal.Runtime.CompilerHelpers.ThrowHelpers",
    ];
    name.split_once("::").is_some_and(|(of, method)| {
        TYPES.contains(&of) && (of != "System.String" || matches!(method, "Ctor" | ".ctor"))
    })
}

/// A method by its token.
fn named(metadata: &MetadataImport, token: Token) -> Option<MethodName> {
    const METHOD: u32 = 0x06;
    const MEMBER: u32 = 0x0A;
    const GENERIC: u32 = 0x2B;
    match token.as_raw() >> 24 {
        METHOD => {
            let method = metadata.method(token).ok()?;
            with_signature(&method.name, &method.signature)
        }
        MEMBER => {
            let member = metadata.member_ref(token).ok()?;
            with_signature(&member.name, &member.signature)
        }
        GENERIC => named(metadata, metadata.method_spec(token).ok()?.method),
        _ => None,
    }
}

/// A method by its name and signature; `None` if the number of parameters varies between calls.
fn with_signature(name: &str, blob: &[u8]) -> Option<MethodName> {
    /// Calling convention of methods with a variable number of arguments (ECMA-335, II.23.2.2).
    const ANY_NUMBER: u8 = 5;
    let signature = signature::method(blob).ok()?;
    let parameters = signature.parameters.len() as u32;
    (signature.convention != ANY_NUMBER).then(|| MethodName {
        name: name.into(),
        parameters,
        has_this: signature.has_this,
    })
}
