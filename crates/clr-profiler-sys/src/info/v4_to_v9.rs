//! `ICorProfilerInfo4` to `ICorProfilerInfo9`.
#![expect(missing_docs, reason = "the macro puts the documentation of methods on the `_Impl` traits only")]

use core::ffi::c_void;

use windows_core::{BOOL, HRESULT, interface};

use super::v2_to_v3::*;
use crate::cor::mdMethodDef;
use crate::structs::{COR_DEBUG_IL_TO_NATIVE_MAP, COR_PRF_CODE_INFO};
use crate::types::{FunctionID, ModuleID, ObjectID, ReJITID};

/// Recompilation, thread enumeration, code versions. Source: corprof.idl.
#[interface("0D8FDCAA-6257-47BF-B1BF-94DAC88466EE")]
pub unsafe trait ICorProfilerInfo4: ICorProfilerInfo3 {
    /// `ICorProfilerThreadEnum` over managed threads.
    pub fn EnumThreads(&self, enumerator: *mut *mut c_void) -> HRESULT;
    /// Prepares the calling native thread for calls that need thread state.
    pub fn InitializeCurrentThread(&self) -> HRESULT;
    /// Requests recompilation of methods; `GetReJITParameters` follows.
    pub fn RequestReJIT(
        &self,
        c_functions: u32,
        module_ids: *const ModuleID,
        method_ids: *const mdMethodDef,
    ) -> HRESULT;
    /// Restores the original code of methods. `status` gets one result per method.
    pub fn RequestRevert(
        &self,
        c_functions: u32,
        module_ids: *const ModuleID,
        method_ids: *const mdMethodDef,
        status: *mut HRESULT,
    ) -> HRESULT;
    /// Code blocks of one version of a function.
    pub fn GetCodeInfo3(
        &self,
        function_id: FunctionID,
        rejit_id: ReJITID,
        c_code_infos: u32,
        p_c_code_infos: *mut u32,
        code_infos: *mut COR_PRF_CODE_INFO,
    ) -> HRESULT;
    /// Function and ReJIT id of the code at an address.
    pub fn GetFunctionFromIP2(&self, ip: *const u8, function_id: *mut FunctionID, rejit_id: *mut ReJITID) -> HRESULT;
    /// ReJIT ids of a function's live versions.
    pub fn GetReJITIDs(
        &self,
        function_id: FunctionID,
        c_rejit_ids: u32,
        p_c_rejit_ids: *mut u32,
        rejit_ids: *mut ReJITID,
    ) -> HRESULT;
    /// IL to native map of one version of a function.
    pub fn GetILToNativeMapping2(
        &self,
        function_id: FunctionID,
        rejit_id: ReJITID,
        c_map: u32,
        p_c_map: *mut u32,
        map: *mut COR_DEBUG_IL_TO_NATIVE_MAP,
    ) -> HRESULT;
    /// `ICorProfilerFunctionEnum` over compiled functions with their ReJIT ids.
    pub fn EnumJITedFunctions2(&self, enumerator: *mut *mut c_void) -> HRESULT;
    /// Size of an object in bytes.
    pub fn GetObjectSize2(&self, object_id: ObjectID, size: *mut usize) -> HRESULT;
}

/// The second word of the event mask. Source: corprof.idl.
#[interface("07602928-CE38-4B83-81E7-74ADAF781214")]
pub unsafe trait ICorProfilerInfo5: ICorProfilerInfo4 {
    /// Current event mask, both words.
    pub fn GetEventMask2(&self, events_low: *mut u32, events_high: *mut u32) -> HRESULT;
    /// Sets both words of the event mask.
    pub fn SetEventMask2(&self, events_low: u32, events_high: u32) -> HRESULT;
}

/// Inlining recorded in precompiled images. Source: corprof.idl.
#[interface("F30A070D-BFFB-46A7-B1D8-8781EF7B698A")]
pub unsafe trait ICorProfilerInfo6: ICorProfilerInfo5 {
    /// `ICorProfilerMethodEnum` over precompiled methods of a module that inlined a method.
    pub fn EnumNgenModuleMethodsInliningThisMethod(
        &self,
        inliners_module_id: ModuleID,
        inlinee_module_id: ModuleID,
        inlinee_method_id: mdMethodDef,
        incomplete_data: *mut BOOL,
        enumerator: *mut *mut c_void,
    ) -> HRESULT;
}

/// Metadata changes and in-memory symbols. Source: corprof.idl.
#[interface("9AEECC0D-63E0-4187-8C00-E312F503F663")]
pub unsafe trait ICorProfilerInfo7: ICorProfilerInfo6 {
    /// Tells the runtime about metadata that was added to a loaded module.
    pub fn ApplyMetaData(&self, module_id: ModuleID) -> HRESULT;
    /// Length of a module's in-memory symbol stream in bytes.
    pub fn GetInMemorySymbolsLength(&self, module_id: ModuleID, count_symbol_bytes: *mut u32) -> HRESULT;
    /// Reads a part of a module's in-memory symbol stream.
    pub fn ReadInMemorySymbols(
        &self,
        module_id: ModuleID,
        symbols_read_offset: u32,
        symbol_bytes: *mut u8,
        count_symbol_bytes: u32,
        count_symbol_bytes_read: *mut u32,
    ) -> HRESULT;
}

/// Dynamic methods. Source: corprof.idl.
#[interface("C5AC80A6-782E-4716-8044-39598C60CFBF")]
pub unsafe trait ICorProfilerInfo8: ICorProfilerInfo7 {
    /// Whether a function has no metadata.
    pub fn IsFunctionDynamic(&self, function_id: FunctionID, is_dynamic: *mut BOOL) -> HRESULT;
    /// Function and ReJIT id of the code at an address, also for dynamic methods.
    pub fn GetFunctionFromIP3(&self, ip: *const u8, function_id: *mut FunctionID, rejit_id: *mut ReJITID) -> HRESULT;
    /// Module, signature and name of a dynamic method.
    pub fn GetDynamicFunctionInfo(
        &self,
        function_id: FunctionID,
        module_id: *mut ModuleID,
        sig: *mut *const u8,
        p_cb_sig: *mut u32,
        cch_name: u32,
        p_cch_name: *mut u32,
        wsz_name: *mut u16,
    ) -> HRESULT;
}

/// All native versions of a function (tiers). Source: corprof.idl.
#[interface("008170DB-F8CC-4796-9A51-DC8AA0B47012")]
pub unsafe trait ICorProfilerInfo9: ICorProfilerInfo8 {
    /// Start addresses of all native versions of a function.
    pub fn GetNativeCodeStartAddresses(
        &self,
        function_id: FunctionID,
        rejit_id: ReJITID,
        c_code_start_addresses: u32,
        p_c_code_start_addresses: *mut u32,
        code_start_addresses: *mut usize,
    ) -> HRESULT;
    /// IL to native map of one native version.
    pub fn GetILToNativeMapping3(
        &self,
        native_code_start_address: usize,
        c_map: u32,
        p_c_map: *mut u32,
        map: *mut COR_DEBUG_IL_TO_NATIVE_MAP,
    ) -> HRESULT;
    /// Code blocks of one native version.
    pub fn GetCodeInfo4(
        &self,
        native_code_start_address: usize,
        c_code_infos: u32,
        p_c_code_infos: *mut u32,
        code_infos: *mut COR_PRF_CODE_INFO,
    ) -> HRESULT;
}
