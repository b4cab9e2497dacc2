//! Makes the runtime call back for objects that it would allocate without a callback.
//!
//! From .NET 10 on managed code (`RuntimeTypeHandle.InternalAllocNoChecks`) allocates boxes and
//! combined delegates. This method first tries a fast path, which tells no profiler, and takes the
//! usual path where the fast path has no room. With `alloc:exact` the method takes the usual path
//! at once: the call of the fast path in its code is replaced by a null, which is what the fast
//! path returns where it has no room. Methods that the compiler may have inlined this method into
//! are recompiled.

use std::sync::OnceLock;

use clr_profiler::metadata::MetadataImport;
use clr_profiler::{FunctionId, ModuleId, ProfilerInfo, Result, Token};
use clrscope_agent_base::functions::Functions;

const CORE: &str = "System.Private.CoreLib";
/// The type of the method, and the names of the fast path and of the method that takes either path.
const OWNER: &str = "System.RuntimeTypeHandle";
const FAST: &str = "InternalAllocNoChecks_FastPath";
const EITHER: &str = "InternalAllocNoChecks";
/// The types whose methods call that method.
const CALLERS: [&str; 6] = [
    "System.Runtime.CompilerServices.CastHelpers",
    "System.MulticastDelegate",
    "System.Runtime.CompilerServices.RuntimeHelpers",
    "System.RuntimeType",
    "System.Enum",
    OWNER,
];
/// Levels of indirect callers that are looked for: how deep the compiler may have inlined these
/// methods into one another.
const DEPTH: usize = 3;
/// IL instructions: a call, and its replacement, which pops the argument and pushes a null.
const CALL: u8 = 0x28;
const NULL_INSTEAD: [u8; 5] = [0x26, 0x14, 0, 0, 0];

/// The patched methods, once the core library is loaded.
#[derive(Default)]
pub(super) struct FastPathPatch(OnceLock<PatchedMethods>);

struct PatchedMethods {
    module: ModuleId,
    /// Methods whose precompiled code is not used.
    methods: Vec<Token>,
}

impl FastPathPatch {
    /// Call it when a module has been loaded. If it is the core library, patches the methods. The
    /// error is the reason why they could not be patched.
    pub(super) fn module_loaded(&self, info: &ProfilerInfo, functions: &Functions, module: ModuleId) -> Result<()> {
        let names = functions.names();
        if self.0.get().is_some() || !names.assembly(info, module).is_ok_and(|name| &*name == CORE) {
            return Ok(());
        }
        let metadata = names.metadata(info, module)?;
        let methods = patch(info, &metadata, module)?;
        let _ = self.0.set(PatchedMethods { module, methods });
        Ok(())
    }

    /// Whether the runtime may use the precompiled code of a function.
    pub(super) fn allows_precompiled(&self, info: &ProfilerInfo, function: FunctionId) -> bool {
        let Some(changed) = self.0.get().filter(|changed| !changed.methods.is_empty()) else { return true };
        let is_meant = |about: clr_profiler::FunctionInfo| {
            about.module == changed.module && changed.methods.contains(&about.token)
        };
        !info.function_info(function).is_ok_and(is_meant)
    }
}

/// Patches the method. Returns the methods whose precompiled code must not run; none where there is
/// nothing to change.
fn patch(info: &ProfilerInfo, metadata: &MetadataImport, module: ModuleId) -> Result<Vec<Token>> {
    let Some(owner) = metadata.find_type_def(OWNER, None)? else { return Ok(Vec::new()) };
    let Some(&quick) = metadata.methods_named(owner, FAST)?.first() else { return Ok(Vec::new()) };
    let mut changed = Vec::new();
    for method in metadata.methods_named(owner, EITHER)? {
        let Ok(mut body) = info.il_function_body(module, method) else { continue };
        let Some(at) = call_of(&body, quick) else { continue };
        body[at..at + NULL_INSTEAD.len()].copy_from_slice(&NULL_INSTEAD);
        // SAFETY: the method's own body, in which a call with one argument that returns a reference
        // is replaced by instructions that pop one argument and push a null reference: the stack is
        // the same, and the method handles this result.
        unsafe { info.set_il_function_body(module, method, &body)? };
        changed.push(method);
    }
    let of_callers = CALLERS.iter().filter_map(|name| metadata.find_type_def(name, None).ok()?);
    let methods = of_callers.filter_map(|owner| metadata.methods(owner).ok()).flatten();
    let bodies: Vec<(Token, Vec<u8>)> =
        methods.filter_map(|method| Some((method, info.il_function_body(module, method).ok()?))).collect();
    for _ in 0..DEPTH {
        let known = changed.clone();
        let calls = |body: &[u8]| known.iter().any(|callee| call_of(body, *callee).is_some());
        let callers = bodies.iter().filter(|(method, body)| !known.contains(method) && calls(body));
        changed.extend(callers.map(|(method, _)| *method));
    }
    Ok(changed)
}

/// Offset of the call of a method in a body.
fn call_of(body: &[u8], callee: Token) -> Option<usize> {
    let mut call = [CALL, 0, 0, 0, 0];
    call[1..].copy_from_slice(&callee.as_raw().to_le_bytes());
    body.windows(call.len()).position(|bytes| bytes == call)
}
