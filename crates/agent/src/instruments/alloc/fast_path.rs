//! Objects that the runtime allocates without a callback, and how it is made to call back.
//!
//! From .NET 10 on boxes and combined delegates are allocated by managed code
//! (`RuntimeTypeHandle.InternalAllocNoChecks`): first by a quick way, which no profiler is told of,
//! and where there is no room by the usual one. With `alloc:exact` that method takes the usual way
//! at once: of its code one call is exchanged for a null, which is what the quick way answers where
//! there is no room. Methods that the compiler may have inlined it into are recompiled.

use std::sync::OnceLock;

use clr_profiler::metadata::MetadataImport;
use clr_profiler::{FunctionId, ModuleId, ProfilerInfo, Result, Token};
use clrscope_agent_base::functions::Functions;

const CORE: &str = "System.Private.CoreLib";
/// The type of the method, and its names: the quick way, and the method that takes either.
const OWNER: &str = "System.RuntimeTypeHandle";
const FAST: &str = "InternalAllocNoChecks_FastPath";
const EITHER: &str = "InternalAllocNoChecks";
/// The types whose methods call it.
const CALLERS: [&str; 6] = [
    "System.Runtime.CompilerServices.CastHelpers",
    "System.MulticastDelegate",
    "System.Runtime.CompilerServices.RuntimeHelpers",
    "System.RuntimeType",
    "System.Enum",
    OWNER,
];
/// Methods that call a method that calls it, and so on: how often the compiler may have put one
/// into another.
const DEPTH: usize = 3;
/// Instructions of IL: a call, and what takes its place: drop the argument, and push a null.
const CALL: u8 = 0x28;
const NULL_INSTEAD: [u8; 5] = [0x26, 0x14, 0, 0, 0];

/// The change, once the library is loaded.
#[derive(Default)]
pub(super) struct FastPathPatch(OnceLock<PatchedMethods>);

struct PatchedMethods {
    module: ModuleId,
    /// Methods whose precompiled code is not used.
    methods: Vec<Token>,
}

impl FastPathPatch {
    /// A module is there: makes the change where that is the library. An error is the reason why it
    /// could not be made.
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

    /// Whether the precompiled code of a function may be used.
    pub(super) fn allows_precompiled(&self, info: &ProfilerInfo, function: FunctionId) -> bool {
        let Some(changed) = self.0.get().filter(|changed| !changed.methods.is_empty()) else { return true };
        let is_meant = |about: clr_profiler::FunctionInfo| {
            about.module == changed.module && changed.methods.contains(&about.token)
        };
        !info.function_info(function).is_ok_and(is_meant)
    }
}

/// Makes the change; the methods that must not run as they were compiled before, none where there
/// is nothing to change.
fn patch(info: &ProfilerInfo, metadata: &MetadataImport, module: ModuleId) -> Result<Vec<Token>> {
    let Some(owner) = metadata.find_type_def(OWNER, None)? else { return Ok(Vec::new()) };
    let Some(&quick) = metadata.methods_named(owner, FAST)?.first() else { return Ok(Vec::new()) };
    let mut changed = Vec::new();
    for method in metadata.methods_named(owner, EITHER)? {
        let Ok(mut body) = info.il_function_body(module, method) else { continue };
        let Some(at) = call_of(&body, quick) else { continue };
        body[at..at + NULL_INSTEAD.len()].copy_from_slice(&NULL_INSTEAD);
        // SAFETY: the method's own body, in which a call with one argument that returns a reference
        // has become instructions that take one argument off and leave a null reference: the same
        // stack, and an answer that the method is made for.
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

/// Place of the call of a method in a body.
fn call_of(body: &[u8], callee: Token) -> Option<usize> {
    let mut call = [CALL, 0, 0, 0, 0];
    call[1..].copy_from_slice(&callee.as_raw().to_le_bytes());
    body.windows(call.len()).position(|bytes| bytes == call)
}
