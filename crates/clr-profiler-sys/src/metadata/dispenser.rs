//! `IMetaDataDispenser` and `IMetaDataDispenserEx`: opening metadata outside the runtime.
#![expect(missing_docs, reason = "the macro puts the documentation of methods on the `_Impl` traits only")]

use core::ffi::c_void;

use windows_core::{GUID, HRESULT, IUnknown, IUnknown_Vtbl, interface};

/// Opens and creates metadata. The runtime's library exports `MetaDataGetDispenser`, which takes
/// `CLSID_CorMetaDataDispenser`. Source: cor.h.
#[interface("809C652E-7396-11D2-9771-00A0C9B4D50C")]
pub unsafe trait IMetaDataDispenser: IUnknown {
    /// Creates an empty scope and returns its interface `riid`.
    pub fn DefineScope(
        &self,
        clsid: *const GUID,
        create_flags: u32,
        riid: *const GUID,
        out: *mut *mut c_void,
    ) -> HRESULT;
    /// Opens a file and returns the scope's interface `riid`.
    pub fn OpenScope(&self, sz_scope: *const u16, open_flags: u32, riid: *const GUID, out: *mut *mut c_void)
    -> HRESULT;
    /// Opens metadata or an image in memory and returns the scope's interface `riid`.
    pub fn OpenScopeOnMemory(
        &self,
        data: *const c_void,
        cb_data: u32,
        open_flags: u32,
        riid: *const GUID,
        out: *mut *mut c_void,
    ) -> HRESULT;
}

/// Options and searches. Source: cor.h.
#[interface("31BCFCE2-DAFB-11D2-9F81-00C04F79A0A3")]
pub unsafe trait IMetaDataDispenserEx: IMetaDataDispenser {
    /// Sets an option from a `VARIANT`.
    pub fn SetOption(&self, option_id: *const GUID, value: *const c_void) -> HRESULT;
    /// Reads an option into a `VARIANT`.
    pub fn GetOption(&self, option_id: *const GUID, value: *mut c_void) -> HRESULT;
    /// Obsolete: metadata of a COM type library.
    pub fn OpenScopeOnITypeInfo(
        &self,
        type_info: *mut c_void,
        open_flags: u32,
        riid: *const GUID,
        out: *mut *mut c_void,
    ) -> HRESULT;
    /// The runtime's directory.
    pub fn GetCORSystemDirectory(&self, sz_buffer: *mut u16, cch_buffer: u32, p_cch_buffer: *mut u32) -> HRESULT;
    /// Path of an assembly. The method writes to `sz_name` although the header declares it
    /// constant.
    pub fn FindAssembly(
        &self,
        sz_app_base: *const u16,
        sz_private_bin: *const u16,
        sz_global_bin: *const u16,
        sz_assembly_name: *const u16,
        sz_name: *mut u16,
        cch_name: u32,
        p_c_name: *mut u32,
    ) -> HRESULT;
    /// Path of a module.
    pub fn FindAssemblyModule(
        &self,
        sz_app_base: *const u16,
        sz_private_bin: *const u16,
        sz_global_bin: *const u16,
        sz_assembly_name: *const u16,
        sz_module_name: *const u16,
        sz_name: *mut u16,
        cch_name: u32,
        p_c_name: *mut u32,
    ) -> HRESULT;
}
