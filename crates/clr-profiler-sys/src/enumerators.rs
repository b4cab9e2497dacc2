//! The five enumerators the runtime hands out.
#![expect(missing_docs, reason = "the macro puts the documentation of methods on the `_Impl` traits only")]

use core::ffi::c_void;

use windows_core::{HRESULT, IUnknown, IUnknown_Vtbl, interface};

use crate::structs::{COR_PRF_FUNCTION, COR_PRF_METHOD};
use crate::types::{ModuleID, ObjectID, ThreadID};

/// Enumerates object ids. Source: corprof.idl.
#[interface("2C6269BD-2D13-4321-AE12-6686365FD6AF")]
pub unsafe trait ICorProfilerObjectEnum: IUnknown {
    /// Skips `celt` elements.
    pub fn Skip(&self, celt: u32) -> HRESULT;
    /// Goes back to the first element.
    pub fn Reset(&self) -> HRESULT;
    /// Copies the enumerator with its position. The copy has the same interface.
    pub fn Clone(&self, enumerator: *mut *mut c_void) -> HRESULT;
    /// Total number of elements.
    pub fn GetCount(&self, p_count: *mut u32) -> HRESULT;
    /// Fetches up to `celt` elements; returns `S_FALSE` when fewer were left.
    pub fn Next(&self, celt: u32, objects: *mut ObjectID, p_fetched: *mut u32) -> HRESULT;
}

/// Enumerates functions with their ReJIT ids. Source: corprof.idl.
#[interface("FF71301A-B994-429D-A10B-B345A65280EF")]
pub unsafe trait ICorProfilerFunctionEnum: IUnknown {
    /// Skips `celt` elements.
    pub fn Skip(&self, celt: u32) -> HRESULT;
    /// Goes back to the first element.
    pub fn Reset(&self) -> HRESULT;
    /// Copies the enumerator with its position. The copy has the same interface.
    pub fn Clone(&self, enumerator: *mut *mut c_void) -> HRESULT;
    /// Total number of elements.
    pub fn GetCount(&self, p_count: *mut u32) -> HRESULT;
    /// Fetches up to `celt` elements; returns `S_FALSE` when fewer were left.
    pub fn Next(&self, celt: u32, ids: *mut COR_PRF_FUNCTION, p_fetched: *mut u32) -> HRESULT;
}

/// Enumerates module ids. Source: corprof.idl.
#[interface("B0266D75-2081-4493-AF7F-028BA34DB891")]
pub unsafe trait ICorProfilerModuleEnum: IUnknown {
    /// Skips `celt` elements.
    pub fn Skip(&self, celt: u32) -> HRESULT;
    /// Goes back to the first element.
    pub fn Reset(&self) -> HRESULT;
    /// Copies the enumerator with its position. The copy has the same interface.
    pub fn Clone(&self, enumerator: *mut *mut c_void) -> HRESULT;
    /// Total number of elements.
    pub fn GetCount(&self, p_count: *mut u32) -> HRESULT;
    /// Fetches up to `celt` elements; returns `S_FALSE` when fewer were left.
    pub fn Next(&self, celt: u32, ids: *mut ModuleID, p_fetched: *mut u32) -> HRESULT;
}

/// Enumerates managed thread ids. Source: corprof.idl.
#[interface("571194F7-25ED-419F-AA8B-7016B3159701")]
pub unsafe trait ICorProfilerThreadEnum: IUnknown {
    /// Skips `celt` elements.
    pub fn Skip(&self, celt: u32) -> HRESULT;
    /// Goes back to the first element.
    pub fn Reset(&self) -> HRESULT;
    /// Copies the enumerator with its position. The copy has the same interface.
    pub fn Clone(&self, enumerator: *mut *mut c_void) -> HRESULT;
    /// Total number of elements.
    pub fn GetCount(&self, p_count: *mut u32) -> HRESULT;
    /// Fetches up to `celt` elements; returns `S_FALSE` when fewer were left.
    pub fn Next(&self, celt: u32, ids: *mut ThreadID, p_fetched: *mut u32) -> HRESULT;
}

/// Enumerates methods as module and token. Source: corprof.idl.
#[interface("FCCEE788-0088-454B-A811-C99F298D1942")]
pub unsafe trait ICorProfilerMethodEnum: IUnknown {
    /// Skips `celt` elements.
    pub fn Skip(&self, celt: u32) -> HRESULT;
    /// Goes back to the first element.
    pub fn Reset(&self) -> HRESULT;
    /// Copies the enumerator with its position. The copy has the same interface.
    pub fn Clone(&self, enumerator: *mut *mut c_void) -> HRESULT;
    /// Total number of elements.
    pub fn GetCount(&self, p_count: *mut u32) -> HRESULT;
    /// Fetches up to `celt` elements; returns `S_FALSE` when fewer were left.
    pub fn Next(&self, celt: u32, elements: *mut COR_PRF_METHOD, p_fetched: *mut u32) -> HRESULT;
}
