//! `IClassFactory`: how the runtime creates a profiler (unknwn.idl).
#![expect(missing_docs, reason = "the macro puts the documentation of methods on the `_Impl` traits only")]

use core::ffi::c_void;

use windows_core::{BOOL, GUID, HRESULT, IUnknown, IUnknown_Vtbl, interface};

/// Class factory that a profiler's `DllGetClassObject` returns. Source: unknwn.idl.
#[interface("00000001-0000-0000-C000-000000000046")]
pub unsafe trait IClassFactory: IUnknown {
    /// Creates an object and returns its interface `riid`. `outer` is null unless the object is
    /// aggregated into another one.
    pub fn CreateInstance(&self, outer: *mut c_void, riid: *const GUID, out: *mut *mut c_void) -> HRESULT;
    /// Keeps the library loaded while the count of locks isn't 0.
    pub fn LockServer(&self, lock: BOOL) -> HRESULT;
}
