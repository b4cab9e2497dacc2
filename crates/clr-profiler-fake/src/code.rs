//! IL of the fake runtime's methods, and the profiler's changes to it: new IL and recompilation
//! (ReJIT).

use std::collections::HashMap;
use std::ffi::c_void;

use clr_profiler::callback_args::CodegenFlags;
use clr_profiler::{HResult, ModuleId, Token};
use clr_profiler_sys::control::{IMethodMalloc, IMethodMalloc_Impl};
use windows_core::{Interface, implement};

use crate::ids;

/// An empty method: a one-byte header, which states a code size of one byte, and `ret`.
const NOTHING: &[u8] = &[1 << 2 | 2, 0x2a];

/// Parameters that the profiler has set for a recompiled method in `get_rejit_parameters`.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct ReJitParameters {
    /// Module of the method.
    pub module: ModuleId,
    /// The method.
    pub method: Token,
    /// Code generation flags, if the profiler has set them.
    pub flags: Option<CodegenFlags>,
    /// IL with its header, if the profiler has set it.
    pub il: Option<Vec<u8>>,
}

/// The profiler's request to recompile methods. The test plays the resulting events.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ReJitRequest {
    /// Recompile these methods.
    Compile(Vec<(ModuleId, Token)>),
    /// Recompile these methods and the callers that inlined them.
    CompileWithInliners(Vec<(ModuleId, Token)>),
    /// Restore the original IL of these methods.
    Revert(Vec<(ModuleId, Token)>),
}

#[derive(Default)]
pub(super) struct Code {
    /// IL by module index and token, for methods whose IL is not [`NOTHING`].
    il: HashMap<(usize, u32), &'static [u8]>,
    pub(super) requests: Vec<ReJitRequest>,
    parameters: Vec<ReJitParameters>,
}

impl Code {
    /// The IL of a method: its original IL, or the IL that the profiler has set since.
    pub(super) fn il(&self, module: usize, method: u32) -> &'static [u8] {
        self.il.get(&(module, method)).copied().unwrap_or(NOTHING)
    }

    pub(super) fn set_il(&mut self, module: usize, method: u32, body: &[u8]) {
        self.il.insert((module, method), Box::leak(body.into()));
    }

    /// Creates the entry for a method whose parameters the profiler is about to set.
    pub(super) fn begin(&mut self, module: ModuleId, method: Token) {
        self.parameters.push(ReJitParameters { module, method, flags: None, il: None });
    }

    /// The most recent parameters of a method.
    pub(super) fn newest(&mut self, module: ModuleId, method: Token) -> Option<&mut ReJitParameters> {
        self.parameters.iter_mut().rev().find(|one| (one.module, one.method) == (module, method))
    }

    pub(super) fn parameters(&self) -> &[ReJitParameters] {
        &self.parameters
    }
}

/// Reads IL with its header. The header states the length.
///
/// # Safety
/// `start` must be null or valid IL that stays.
pub(super) unsafe fn body<'b>(start: *const u8) -> Result<&'b [u8], HResult> {
    if start.is_null() {
        return Err(HResult::INVALID_ARGUMENT);
    }
    // SAFETY: the caller's promise: a header is there, and as many bytes as it says.
    let bytes =
        clr_profiler::il::length_by(|at| Some(unsafe { *start.add(at) })).map_err(|_| HResult::INVALID_ARGUMENT)?;
    // SAFETY: as above.
    Ok(unsafe { std::slice::from_raw_parts(start, bytes) })
}

/// Reads methods from two arrays of `count` elements: the module and the token of each method.
///
/// # Safety
/// The arrays must be null or that long.
pub(super) unsafe fn methods(count: u32, modules: *const usize, tokens: *const u32) -> Vec<(ModuleId, Token)> {
    if modules.is_null() || tokens.is_null() {
        return Vec::new();
    }
    // SAFETY: the caller's promise.
    unsafe { (0..count as usize).map(|n| (ids::module(*modules.add(n)), Token::new(*tokens.add(n)))).collect() }
}

/// Memory for IL, which is never freed.
#[implement(IMethodMalloc)]
struct Memory;

impl IMethodMalloc_Impl for Memory_Impl {
    unsafe fn Alloc(&self, bytes: u32) -> *mut c_void {
        Box::leak(vec![0_u8; bytes as usize].into_boxed_slice()).as_mut_ptr().cast()
    }
}

/// The allocator of IL bodies.
pub(super) fn allocator() -> *mut c_void {
    IMethodMalloc::from(Memory).into_raw()
}
