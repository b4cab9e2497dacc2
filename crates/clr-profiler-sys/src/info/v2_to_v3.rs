//! `ICorProfilerInfo2` and `ICorProfilerInfo3`.
#![expect(missing_docs, reason = "the macro puts the documentation of methods on the `_Impl` traits only")]

use core::ffi::c_void;

use windows_core::{HRESULT, interface};

use super::v1::*;
use crate::cor::{mdFieldDef, mdMethodDef, mdToken, mdTypeDef};
use crate::enums::{COR_PRF_RUNTIME_TYPE, COR_PRF_STATIC_TYPE};
use crate::function_pointers::{
    FunctionEnter2, FunctionEnter3, FunctionEnter3WithInfo, FunctionIDMapper2, FunctionLeave2, FunctionLeave3,
    FunctionLeave3WithInfo, FunctionTailcall2, FunctionTailcall3, FunctionTailcall3WithInfo, StackSnapshotCallback,
};
use crate::structs::{
    COR_FIELD_OFFSET, COR_PRF_CODE_INFO, COR_PRF_EX_CLAUSE_INFO, COR_PRF_FUNCTION_ARGUMENT_INFO,
    COR_PRF_FUNCTION_ARGUMENT_RANGE, COR_PRF_GC_GENERATION_RANGE,
};
use crate::types::{
    AppDomainID, AssemblyID, COR_PRF_ELT_INFO, COR_PRF_FRAME_INFO, ClassID, ContextID, FunctionID, ModuleID, ObjectID,
    ThreadID,
};

/// Stack snapshots, generics, layouts, statics and generations. Source: corprof.idl.
#[interface("CC0935CD-A518-487D-B0BB-A93214E65478")]
pub unsafe trait ICorProfilerInfo2: ICorProfilerInfo {
    /// Walks a thread's stack and calls `callback` for its managed frames. Thread 0 means the
    /// calling thread. Another thread must be suspended first.
    pub fn DoStackSnapshot(
        &self,
        thread: ThreadID,
        callback: Option<StackSnapshotCallback>,
        info_flags: u32,
        client_data: *mut c_void,
        context: *const u8,
        context_size: u32,
    ) -> HRESULT;
    /// Sets hooks of the second form, which are always slow. Allowed only in `Initialize`.
    pub fn SetEnterLeaveFunctionHooks2(
        &self,
        func_enter: Option<FunctionEnter2>,
        func_leave: Option<FunctionLeave2>,
        func_tailcall: Option<FunctionTailcall2>,
    ) -> HRESULT;
    /// Class, module, token and type arguments of a function. For shared generic code they are
    /// exact only with a frame.
    pub fn GetFunctionInfo2(
        &self,
        func_id: FunctionID,
        frame_info: COR_PRF_FRAME_INFO,
        class_id: *mut ClassID,
        module_id: *mut ModuleID,
        token: *mut mdToken,
        c_type_args: u32,
        p_c_type_args: *mut u32,
        type_args: *mut ClassID,
    ) -> HRESULT;
    /// Offsets of the fields in a string object, old form. See `GetStringLayout2`.
    pub fn GetStringLayout(
        &self,
        buffer_length_offset: *mut u32,
        string_length_offset: *mut u32,
        buffer_offset: *mut u32,
    ) -> HRESULT;
    /// Size of a class, and offsets of the fields that it declares itself.
    pub fn GetClassLayout(
        &self,
        class_id: ClassID,
        r_field_offset: *mut COR_FIELD_OFFSET,
        c_field_offset: u32,
        p_c_field_offset: *mut u32,
        class_size: *mut u32,
    ) -> HRESULT;
    /// Module, token, parent and type arguments of a class.
    pub fn GetClassIDInfo2(
        &self,
        class_id: ClassID,
        module_id: *mut ModuleID,
        type_def_token: *mut mdTypeDef,
        parent_class_id: *mut ClassID,
        c_num_type_args: u32,
        p_c_num_type_args: *mut u32,
        type_args: *mut ClassID,
    ) -> HRESULT;
    /// Code blocks of a function (hot and cold part).
    pub fn GetCodeInfo2(
        &self,
        function_id: FunctionID,
        c_code_infos: u32,
        p_c_code_infos: *mut u32,
        code_infos: *mut COR_PRF_CODE_INFO,
    ) -> HRESULT;
    /// Class id of a type with type arguments; may load the type.
    pub fn GetClassFromTokenAndTypeArgs(
        &self,
        module_id: ModuleID,
        type_def: mdTypeDef,
        c_type_args: u32,
        type_args: *const ClassID,
        class_id: *mut ClassID,
    ) -> HRESULT;
    /// Function id of a method with type arguments; may load the method.
    pub fn GetFunctionFromTokenAndTypeArgs(
        &self,
        module_id: ModuleID,
        func_def: mdMethodDef,
        class_id: ClassID,
        c_type_args: u32,
        type_args: *const ClassID,
        function_id: *mut FunctionID,
    ) -> HRESULT;
    /// `ICorProfilerObjectEnum` over a module's frozen objects.
    pub fn EnumModuleFrozenObjects(&self, module_id: ModuleID, enumerator: *mut *mut c_void) -> HRESULT;
    /// Dimensions, lower bounds and data address of an array object.
    pub fn GetArrayObjectInfo(
        &self,
        object_id: ObjectID,
        c_dimensions: u32,
        dimension_sizes: *mut u32,
        dimension_lower_bounds: *mut i32,
        data: *mut *mut u8,
    ) -> HRESULT;
    /// Offset of the value in a boxed object.
    pub fn GetBoxClassLayout(&self, class_id: ClassID, buffer_offset: *mut u32) -> HRESULT;
    /// Application domain a thread runs in.
    pub fn GetThreadAppDomain(&self, thread_id: ThreadID, app_domain_id: *mut AppDomainID) -> HRESULT;
    /// Address of a static field whose data is in the image.
    pub fn GetRVAStaticAddress(&self, class_id: ClassID, field_token: mdFieldDef, address: *mut *mut c_void)
    -> HRESULT;
    /// Address of a static field; needs an initialised class.
    pub fn GetAppDomainStaticAddress(
        &self,
        class_id: ClassID,
        field_token: mdFieldDef,
        app_domain_id: AppDomainID,
        address: *mut *mut c_void,
    ) -> HRESULT;
    /// Address of a thread static. See `GetThreadStaticAddress2`.
    pub fn GetThreadStaticAddress(
        &self,
        class_id: ClassID,
        field_token: mdFieldDef,
        thread_id: ThreadID,
        address: *mut *mut c_void,
    ) -> HRESULT;
    /// Not supported by CoreCLR: context statics.
    pub fn GetContextStaticAddress(
        &self,
        class_id: ClassID,
        field_token: mdFieldDef,
        context_id: ContextID,
        address: *mut *mut c_void,
    ) -> HRESULT;
    /// Kinds of static storage of a field.
    pub fn GetStaticFieldInfo(
        &self,
        class_id: ClassID,
        field_token: mdFieldDef,
        field_info: *mut COR_PRF_STATIC_TYPE,
    ) -> HRESULT;
    /// Address ranges of all GC generations. Call it in GC callbacks or with the runtime suspended.
    pub fn GetGenerationBounds(
        &self,
        c_object_ranges: u32,
        p_c_object_ranges: *mut u32,
        ranges: *mut COR_PRF_GC_GENERATION_RANGE,
    ) -> HRESULT;
    /// Address range that contains an object, with its generation.
    pub fn GetObjectGeneration(&self, object_id: ObjectID, range: *mut COR_PRF_GC_GENERATION_RANGE) -> HRESULT;
    /// In exception callbacks: the clause that is about to run.
    pub fn GetNotifiedExceptionClauseInfo(&self, info: *mut COR_PRF_EX_CLAUSE_INFO) -> HRESULT;
}

/// Detach, third form of the hooks, module enumeration, runtime version. Source: corprof.idl.
#[interface("B555ED4F-452A-4E54-8B39-B5360BAD32A0")]
pub unsafe trait ICorProfilerInfo3: ICorProfilerInfo2 {
    /// `ICorProfilerFunctionEnum` over compiled functions. See `EnumJITedFunctions2`.
    pub fn EnumJITedFunctions(&self, enumerator: *mut *mut c_void) -> HRESULT;
    /// Requests the profiler's unload. `expected_completion_milliseconds` 0 means the runtime's
    /// default of 5 s.
    pub fn RequestProfilerDetach(&self, expected_completion_milliseconds: u32) -> HRESULT;
    /// Sets the callback that maps function ids to client ids. The callback also gets
    /// `client_data`.
    pub fn SetFunctionIDMapper2(&self, func: Option<FunctionIDMapper2>, client_data: *mut c_void) -> HRESULT;
    /// Offsets of length and characters in a string object.
    pub fn GetStringLayout2(&self, string_length_offset: *mut u32, buffer_offset: *mut u32) -> HRESULT;
    /// Sets fast hooks, which get only an id. Allowed only in `Initialize`, without the flags for
    /// arguments, results and frames.
    pub fn SetEnterLeaveFunctionHooks3(
        &self,
        func_enter3: Option<FunctionEnter3>,
        func_leave3: Option<FunctionLeave3>,
        func_tailcall3: Option<FunctionTailcall3>,
    ) -> HRESULT;
    /// Sets slow hooks, which can get arguments, result and frame. At least one of these three
    /// flags must be set.
    pub fn SetEnterLeaveFunctionHooks3WithInfo(
        &self,
        func_enter3_with_info: Option<FunctionEnter3WithInfo>,
        func_leave3_with_info: Option<FunctionLeave3WithInfo>,
        func_tailcall3_with_info: Option<FunctionTailcall3WithInfo>,
    ) -> HRESULT;
    /// Frame and arguments of a call, for an enter hook with info. A first call gets the size.
    pub fn GetFunctionEnter3Info(
        &self,
        function_id: FunctionID,
        elt_info: COR_PRF_ELT_INFO,
        frame_info: *mut COR_PRF_FRAME_INFO,
        p_cb_argument_info: *mut u32,
        argument_info: *mut COR_PRF_FUNCTION_ARGUMENT_INFO,
    ) -> HRESULT;
    /// Frame and result of a call, for a leave hook with info.
    pub fn GetFunctionLeave3Info(
        &self,
        function_id: FunctionID,
        elt_info: COR_PRF_ELT_INFO,
        frame_info: *mut COR_PRF_FRAME_INFO,
        retval_range: *mut COR_PRF_FUNCTION_ARGUMENT_RANGE,
    ) -> HRESULT;
    /// Frame of a call, for a tail-call hook with info.
    pub fn GetFunctionTailcall3Info(
        &self,
        function_id: FunctionID,
        elt_info: COR_PRF_ELT_INFO,
        frame_info: *mut COR_PRF_FRAME_INFO,
    ) -> HRESULT;
    /// `ICorProfilerModuleEnum` over loaded modules.
    pub fn EnumModules(&self, enumerator: *mut *mut c_void) -> HRESULT;
    /// Kind and version of the runtime.
    pub fn GetRuntimeInformation(
        &self,
        clr_instance_id: *mut u16,
        runtime_type: *mut COR_PRF_RUNTIME_TYPE,
        major_version: *mut u16,
        minor_version: *mut u16,
        build_number: *mut u16,
        qfe_version: *mut u16,
        cch_version_string: u32,
        p_cch_version_string: *mut u32,
        sz_version_string: *mut u16,
    ) -> HRESULT;
    /// Address of a thread static in one application domain.
    pub fn GetThreadStaticAddress2(
        &self,
        class_id: ClassID,
        field_token: mdFieldDef,
        app_domain_id: AppDomainID,
        thread_id: ThreadID,
        address: *mut *mut c_void,
    ) -> HRESULT;
    /// Application domains that a module is loaded in.
    pub fn GetAppDomainsContainingModule(
        &self,
        module_id: ModuleID,
        c_app_domain_ids: u32,
        p_c_app_domain_ids: *mut u32,
        app_domain_ids: *mut AppDomainID,
    ) -> HRESULT;
    /// As `GetModuleInfo`, with `COR_PRF_MODULE_FLAGS`.
    pub fn GetModuleInfo2(
        &self,
        module_id: ModuleID,
        base_load_address: *mut *const u8,
        cch_name: u32,
        p_cch_name: *mut u32,
        sz_name: *mut u16,
        assembly_id: *mut AssemblyID,
        module_flags: *mut u32,
    ) -> HRESULT;
}
