//! `ICorProfilerInfo`: the runtime's queries, first level.
#![expect(missing_docs, reason = "the macro puts the documentation of methods on the `_Impl` traits only")]

use core::ffi::c_void;

use windows_core::{BOOL, GUID, HRESULT, IUnknown, IUnknown_Vtbl, interface};

use crate::cor::{CorElementType, mdMethodDef, mdToken, mdTypeDef};
use crate::function_pointers::{FunctionEnter, FunctionIDMapper, FunctionLeave, FunctionTailcall};
use crate::structs::{COR_DEBUG_IL_TO_NATIVE_MAP, COR_IL_MAP};
use crate::types::{AppDomainID, AssemblyID, ClassID, ContextID, FunctionID, ModuleID, ObjectID, ProcessID, ThreadID};

/// The runtime's services, first level. Every later level inherits them. Source: corprof.idl.
#[interface("28B5557D-3F3F-48B4-90B2-5F9EEA2F6C48")]
pub unsafe trait ICorProfilerInfo: IUnknown {
    /// Class of an object.
    pub fn GetClassFromObject(&self, object_id: ObjectID, class_id: *mut ClassID) -> HRESULT;
    /// Class id of a non-generic type that is loaded.
    pub fn GetClassFromToken(&self, module_id: ModuleID, type_def: mdTypeDef, class_id: *mut ClassID) -> HRESULT;
    /// Start and size of a function's first code block. See `GetCodeInfo4` for all.
    pub fn GetCodeInfo(&self, function_id: FunctionID, start: *mut *const u8, size: *mut u32) -> HRESULT;
    /// Current event mask, low word.
    pub fn GetEventMask(&self, events: *mut u32) -> HRESULT;
    /// Function that contains a code address. See `GetFunctionFromIP3`.
    pub fn GetFunctionFromIP(&self, ip: *const u8, function_id: *mut FunctionID) -> HRESULT;
    /// Function id of a non-generic method.
    pub fn GetFunctionFromToken(&self, module_id: ModuleID, token: mdToken, function_id: *mut FunctionID) -> HRESULT;
    /// Operating-system handle of a thread (Windows).
    pub fn GetHandleFromThread(&self, thread_id: ThreadID, thread_handle: *mut *mut c_void) -> HRESULT;
    /// Size of an object in bytes, truncated to 32 bits. See `GetObjectSize2`.
    pub fn GetObjectSize(&self, object_id: ObjectID, size: *mut u32) -> HRESULT;
    /// `S_OK` with element type, element class and rank when the class is an array, else `S_FALSE`.
    pub fn IsArrayClass(
        &self,
        class_id: ClassID,
        base_elem_type: *mut CorElementType,
        base_class_id: *mut ClassID,
        rank: *mut u32,
    ) -> HRESULT;
    /// Operating-system id of a managed thread.
    pub fn GetThreadInfo(&self, thread_id: ThreadID, os_thread_id: *mut u32) -> HRESULT;
    /// Managed thread of the caller; `CORPROF_E_NOT_MANAGED_THREAD` when there is none.
    pub fn GetCurrentThreadID(&self, thread_id: *mut ThreadID) -> HRESULT;
    /// Module and token of a class; zeros for arrays and other composites.
    pub fn GetClassIDInfo(
        &self,
        class_id: ClassID,
        module_id: *mut ModuleID,
        type_def_token: *mut mdTypeDef,
    ) -> HRESULT;
    /// Class, module and token of a function. The class may be 0 for shared generic code.
    pub fn GetFunctionInfo(
        &self,
        function_id: FunctionID,
        class_id: *mut ClassID,
        module_id: *mut ModuleID,
        token: *mut mdToken,
    ) -> HRESULT;
    /// Sets the low word of the event mask. See `SetEventMask2`.
    pub fn SetEventMask(&self, events: u32) -> HRESULT;
    /// Sets hooks of the oldest form. Allowed only in `Initialize`.
    pub fn SetEnterLeaveFunctionHooks(
        &self,
        func_enter: Option<FunctionEnter>,
        func_leave: Option<FunctionLeave>,
        func_tailcall: Option<FunctionTailcall>,
    ) -> HRESULT;
    /// Sets the callback that maps function ids to client ids.
    pub fn SetFunctionIDMapper(&self, func: Option<FunctionIDMapper>) -> HRESULT;
    /// Method token and metadata interface of a function; fails for dynamic methods.
    pub fn GetTokenAndMetaDataFromFunction(
        &self,
        function_id: FunctionID,
        riid: *const GUID,
        out: *mut *mut c_void,
        token: *mut mdToken,
    ) -> HRESULT;
    /// Base address, file name and assembly of a module. Name lengths count the terminator.
    pub fn GetModuleInfo(
        &self,
        module_id: ModuleID,
        base_load_address: *mut *const u8,
        cch_name: u32,
        p_cch_name: *mut u32,
        sz_name: *mut u16,
        assembly_id: *mut AssemblyID,
    ) -> HRESULT;
    /// Metadata interface `riid` of a module; `open_flags` from `CorOpenFlags`. May succeed with a
    /// null pointer (resource modules).
    pub fn GetModuleMetaData(
        &self,
        module_id: ModuleID,
        open_flags: u32,
        riid: *const GUID,
        out: *mut *mut c_void,
    ) -> HRESULT;
    /// IL method header and body size of a method, as in the image.
    pub fn GetILFunctionBody(
        &self,
        module_id: ModuleID,
        method_id: mdMethodDef,
        method_header: *mut *const u8,
        p_cb_method_size: *mut u32,
    ) -> HRESULT;
    /// `IMethodMalloc` for new IL bodies of a module.
    pub fn GetILFunctionBodyAllocator(&self, module_id: ModuleID, malloc: *mut *mut c_void) -> HRESULT;
    /// Replaces a method's IL before its first compilation.
    pub fn SetILFunctionBody(
        &self,
        module_id: ModuleID,
        method_id: mdMethodDef,
        new_il_method_header: *const u8,
    ) -> HRESULT;
    /// Name and process of an application domain.
    pub fn GetAppDomainInfo(
        &self,
        app_domain_id: AppDomainID,
        cch_name: u32,
        p_cch_name: *mut u32,
        sz_name: *mut u16,
        process_id: *mut ProcessID,
    ) -> HRESULT;
    /// Name, application domain and manifest module of an assembly.
    pub fn GetAssemblyInfo(
        &self,
        assembly_id: AssemblyID,
        cch_name: u32,
        p_cch_name: *mut u32,
        sz_name: *mut u16,
        app_domain_id: *mut AppDomainID,
        module_id: *mut ModuleID,
    ) -> HRESULT;
    /// Obsolete: see `RequestReJIT`.
    pub fn SetFunctionReJIT(&self, function_id: FunctionID) -> HRESULT;
    /// Runs a full blocking GC. Must not be called in a callback, only on the profiler's own
    /// unmanaged thread.
    pub fn ForceGC(&self) -> HRESULT;
    /// Maps old IL offsets to new ones for a changed body. The map must be allocated with
    /// `CoTaskMemAlloc`; the runtime takes ownership.
    pub fn SetILInstrumentedCodeMap(
        &self,
        function_id: FunctionID,
        start_jit: BOOL,
        c_il_map_entries: u32,
        il_map_entries: *const COR_IL_MAP,
    ) -> HRESULT;
    /// Obsolete: in-process debugging.
    pub fn GetInprocInspectionInterface(&self, out: *mut *mut c_void) -> HRESULT;
    /// Obsolete: in-process debugging.
    pub fn GetInprocInspectionIThisThread(&self, out: *mut *mut c_void) -> HRESULT;
    /// Not supported by CoreCLR: remoting context of a thread.
    pub fn GetThreadContext(&self, thread_id: ThreadID, context_id: *mut ContextID) -> HRESULT;
    /// Obsolete: in-process debugging.
    pub fn BeginInprocDebugging(&self, this_thread_only: BOOL, profiler_context: *mut u32) -> HRESULT;
    /// Obsolete: in-process debugging.
    pub fn EndInprocDebugging(&self, profiler_context: u32) -> HRESULT;
    /// IL to native map of a function's first compilation.
    pub fn GetILToNativeMapping(
        &self,
        function_id: FunctionID,
        c_map: u32,
        p_c_map: *mut u32,
        map: *mut COR_DEBUG_IL_TO_NATIVE_MAP,
    ) -> HRESULT;
}
