//! Objects that the runtime passes to a profiler while code is replaced.
#![expect(missing_docs, reason = "the macro puts the documentation of methods on the `_Impl` traits only")]

use core::ffi::c_void;

use windows_core::{HRESULT, IUnknown, IUnknown_Vtbl, interface};

use crate::structs::{COR_IL_MAP, COR_PRF_ASSEMBLY_REFERENCE_INFO};

/// Allocates memory for new IL bodies of one module. The memory is never freed. Source:
/// corprof.idl.
#[interface("A0EFB28B-6EE2-4D7B-B983-A75EF7BEEDB8")]
pub unsafe trait IMethodMalloc: IUnknown {
    /// Allocates `cb` bytes. Returns null on failure.
    pub fn Alloc(&self, cb: u32) -> *mut c_void;
}

/// Passed to `GetReJITParameters` to set the IL and the flags of a ReJIT. Source: corprof.idl.
#[interface("F0963021-E1EA-4732-8581-E01B0BD3C0C6")]
pub unsafe trait ICorProfilerFunctionControl: IUnknown {
    /// Sets `COR_PRF_CODEGEN_FLAGS` for the new code.
    pub fn SetCodegenFlags(&self, flags: u32) -> HRESULT;
    /// Sets the new IL. The runtime copies it.
    pub fn SetILFunctionBody(&self, cb_new_il_method_header: u32, new_il_method_header: *const u8) -> HRESULT;
    /// Maps old IL offsets to new ones.
    pub fn SetILInstrumentedCodeMap(&self, c_il_map_entries: u32, il_map_entries: *const COR_IL_MAP) -> HRESULT;
}

/// Passed to `GetAssemblyReferences`; receives the references to add. Source: corprof.idl.
#[interface("66A78C24-2EEF-4F65-B45F-DD1D8038BF3C")]
pub unsafe trait ICorProfilerAssemblyReferenceProvider: IUnknown {
    /// Adds a reference that the changed assembly will need.
    pub fn AddAssemblyReference(&self, assembly_ref_info: *const COR_PRF_ASSEMBLY_REFERENCE_INFO) -> HRESULT;
}
