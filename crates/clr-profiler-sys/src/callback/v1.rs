//! `ICorProfilerCallback`: the callbacks that a profiler implements, first level.
#![expect(missing_docs, reason = "the macro puts the documentation of methods on the `_Impl` traits only")]

use core::ffi::c_void;

use windows_core::{BOOL, GUID, HRESULT, IUnknown, IUnknown_Vtbl, interface};

use crate::enums::{COR_PRF_JIT_CACHE, COR_PRF_SUSPEND_REASON, COR_PRF_TRANSITION_REASON};
use crate::types::{AppDomainID, AssemblyID, ClassID, FunctionID, ModuleID, ObjectID, ThreadID};

/// The first 69 notifications. Every later level inherits them. Source: corprof.idl.
#[interface("176FBED1-A55C-4796-98CA-A9DA0EF883E7")]
pub unsafe trait ICorProfilerCallback: IUnknown {
    /// First call after creation: query the newest `ICorProfilerInfo` level from the given
    /// `IUnknown` and choose events. A failure unloads the profiler.
    pub fn Initialize(&self, info: *mut c_void) -> HRESULT;
    /// The runtime is about to end. Hooks and callbacks on other threads may still follow, and
    /// abrupt ends skip this call.
    pub fn Shutdown(&self) -> HRESULT;
    /// An application domain is being created; its name is not known yet.
    pub fn AppDomainCreationStarted(&self, app_domain_id: AppDomainID) -> HRESULT;
    /// An application domain was created, or its creation failed with `hr_status`.
    pub fn AppDomainCreationFinished(&self, app_domain_id: AppDomainID, hr_status: HRESULT) -> HRESULT;
    /// An application domain is being unloaded.
    pub fn AppDomainShutdownStarted(&self, app_domain_id: AppDomainID) -> HRESULT;
    /// An application domain was unloaded; its id is no longer valid.
    pub fn AppDomainShutdownFinished(&self, app_domain_id: AppDomainID, hr_status: HRESULT) -> HRESULT;
    /// An assembly is being loaded; its name is not known yet.
    pub fn AssemblyLoadStarted(&self, assembly_id: AssemblyID) -> HRESULT;
    /// An assembly was loaded, or its load failed with `hr_status`.
    pub fn AssemblyLoadFinished(&self, assembly_id: AssemblyID, hr_status: HRESULT) -> HRESULT;
    /// An assembly is about to be unloaded. This is the last moment to query it.
    pub fn AssemblyUnloadStarted(&self, assembly_id: AssemblyID) -> HRESULT;
    /// An assembly was unloaded; its id may be given to another one.
    pub fn AssemblyUnloadFinished(&self, assembly_id: AssemblyID, hr_status: HRESULT) -> HRESULT;
    /// A module is being loaded; it can't be queried yet.
    pub fn ModuleLoadStarted(&self, module_id: ModuleID) -> HRESULT;
    /// A module was loaded, or its load failed with `hr_status`. Its assembly may not be known yet.
    pub fn ModuleLoadFinished(&self, module_id: ModuleID, hr_status: HRESULT) -> HRESULT;
    /// A module is about to be unloaded. Queries about the module here have crashed runtimes: clean
    /// up from the profiler's own tables.
    pub fn ModuleUnloadStarted(&self, module_id: ModuleID) -> HRESULT;
    /// A module was unloaded; its id and the ids of its classes and functions may be reused.
    pub fn ModuleUnloadFinished(&self, module_id: ModuleID, hr_status: HRESULT) -> HRESULT;
    /// A module now belongs to an assembly.
    pub fn ModuleAttachedToAssembly(&self, module_id: ModuleID, assembly_id: AssemblyID) -> HRESULT;
    /// A class is being loaded.
    pub fn ClassLoadStarted(&self, class_id: ClassID) -> HRESULT;
    /// A class was loaded, or its load failed with `hr_status`.
    pub fn ClassLoadFinished(&self, class_id: ClassID, hr_status: HRESULT) -> HRESULT;
    /// A class is about to be unloaded.
    pub fn ClassUnloadStarted(&self, class_id: ClassID) -> HRESULT;
    /// A class was unloaded; its id may be reused.
    pub fn ClassUnloadFinished(&self, class_id: ClassID, hr_status: HRESULT) -> HRESULT;
    /// Declared, but not raised by CoreCLR.
    pub fn FunctionUnloadStarted(&self, function_id: FunctionID) -> HRESULT;
    /// Compilation of a function starts on this thread. Its IL may still be replaced here. Don't
    /// block when `is_safe_to_block` is false.
    pub fn JITCompilationStarted(&self, function_id: FunctionID, is_safe_to_block: BOOL) -> HRESULT;
    /// Compilation of a function ended with `hr_status`. Other threads may already run the code.
    pub fn JITCompilationFinished(
        &self,
        function_id: FunctionID,
        hr_status: HRESULT,
        is_safe_to_block: BOOL,
    ) -> HRESULT;
    /// Precompiled code for a function was found: write false to have it compiled instead.
    pub fn JITCachedFunctionSearchStarted(&self, function_id: FunctionID, use_cached_function: *mut BOOL) -> HRESULT;
    /// The search for precompiled code ended with `result`.
    pub fn JITCachedFunctionSearchFinished(&self, function_id: FunctionID, result: COR_PRF_JIT_CACHE) -> HRESULT;
    /// Declared, but not raised by CoreCLR.
    pub fn JITFunctionPitched(&self, function_id: FunctionID) -> HRESULT;
    /// The compiler wants to inline `callee_id` into `caller_id`: write false to forbid it.
    pub fn JITInlining(&self, caller_id: FunctionID, callee_id: FunctionID, should_inline: *mut BOOL) -> HRESULT;
    /// A managed thread was created. May arrive after the first hook on that thread.
    pub fn ThreadCreated(&self, thread_id: ThreadID) -> HRESULT;
    /// A managed thread ended. May be missing at shutdown. The thread id may be reused.
    pub fn ThreadDestroyed(&self, thread_id: ThreadID) -> HRESULT;
    /// A managed thread runs on the given operating-system thread; may arrive more than once.
    pub fn ThreadAssignedToOSThread(&self, managed_thread_id: ThreadID, os_thread_id: u32) -> HRESULT;
    /// Remoting, not raised by CoreCLR: a client call starts.
    pub fn RemotingClientInvocationStarted(&self) -> HRESULT;
    /// Remoting, not raised by CoreCLR: the client sends a message.
    pub fn RemotingClientSendingMessage(&self, cookie: *const GUID, is_async: BOOL) -> HRESULT;
    /// Remoting, not raised by CoreCLR: the client receives the reply.
    pub fn RemotingClientReceivingReply(&self, cookie: *const GUID, is_async: BOOL) -> HRESULT;
    /// Remoting, not raised by CoreCLR: a client call ended.
    pub fn RemotingClientInvocationFinished(&self) -> HRESULT;
    /// Remoting, not raised by CoreCLR: the server receives a message.
    pub fn RemotingServerReceivingMessage(&self, cookie: *const GUID, is_async: BOOL) -> HRESULT;
    /// Remoting, not raised by CoreCLR: the server starts the call.
    pub fn RemotingServerInvocationStarted(&self) -> HRESULT;
    /// Remoting, not raised by CoreCLR: the server finished the call.
    pub fn RemotingServerInvocationReturned(&self) -> HRESULT;
    /// Remoting, not raised by CoreCLR: the server sends its reply.
    pub fn RemotingServerSendingReply(&self, cookie: *const GUID, is_async: BOOL) -> HRESULT;
    /// Native code calls managed code, or managed code returns to native code; `reason` tells
    /// which. `function_id` may be 0.
    pub fn UnmanagedToManagedTransition(&self, function_id: FunctionID, reason: COR_PRF_TRANSITION_REASON) -> HRESULT;
    /// Managed code calls native code, or native code returns to managed code; `reason` tells
    /// which. `function_id` may be 0.
    pub fn ManagedToUnmanagedTransition(&self, function_id: FunctionID, reason: COR_PRF_TRANSITION_REASON) -> HRESULT;
    /// The runtime starts to suspend all managed threads.
    pub fn RuntimeSuspendStarted(&self, suspend_reason: COR_PRF_SUSPEND_REASON) -> HRESULT;
    /// All managed threads are suspended.
    pub fn RuntimeSuspendFinished(&self) -> HRESULT;
    /// A suspension was aborted.
    pub fn RuntimeSuspendAborted(&self) -> HRESULT;
    /// The runtime starts to resume all managed threads.
    pub fn RuntimeResumeStarted(&self) -> HRESULT;
    /// All managed threads run again.
    pub fn RuntimeResumeFinished(&self) -> HRESULT;
    /// A thread was suspended or is about to be suspended; arrives on that thread.
    pub fn RuntimeThreadSuspended(&self, thread_id: ThreadID) -> HRESULT;
    /// One thread runs again; arrives on that thread.
    pub fn RuntimeThreadResumed(&self, thread_id: ThreadID) -> HRESULT;
    /// A compacting GC moved ranges of objects; lengths are truncated to 32 bits. See
    /// `MovedReferences2`.
    pub fn MovedReferences(
        &self,
        range_count: u32,
        old_range_starts: *const ObjectID,
        new_range_starts: *const ObjectID,
        range_lengths: *const u32,
    ) -> HRESULT;
    /// An object was allocated. Its fields are not set yet.
    pub fn ObjectAllocated(&self, object_id: ObjectID, class_id: ClassID) -> HRESULT;
    /// Number of objects of each class that were allocated since the last GC.
    pub fn ObjectsAllocatedByClass(
        &self,
        c_class_count: u32,
        class_ids: *const ClassID,
        c_objects: *const u32,
    ) -> HRESULT;
    /// The objects that a live object refers to, in a full heap walk after a GC. Returning a
    /// failure stops the walk.
    pub fn ObjectReferences(
        &self,
        object_id: ObjectID,
        class_id: ClassID,
        c_object_refs: u32,
        object_ref_ids: *const ObjectID,
    ) -> HRESULT;
    /// Objects kept alive by roots, without the roots. See `RootReferences2`.
    pub fn RootReferences(&self, c_root_refs: u32, root_ref_ids: *const ObjectID) -> HRESULT;
    /// An exception was thrown on this thread (first chance).
    pub fn ExceptionThrown(&self, thrown_object_id: ObjectID) -> HRESULT;
    /// First pass: the search for a handler enters a function.
    pub fn ExceptionSearchFunctionEnter(&self, function_id: FunctionID) -> HRESULT;
    /// First pass: the search leaves that function.
    pub fn ExceptionSearchFunctionLeave(&self) -> HRESULT;
    /// First pass: a user filter starts to run.
    pub fn ExceptionSearchFilterEnter(&self, function_id: FunctionID) -> HRESULT;
    /// First pass: the filter ended.
    pub fn ExceptionSearchFilterLeave(&self) -> HRESULT;
    /// First pass: the function with the handler was found.
    pub fn ExceptionSearchCatcherFound(&self, function_id: FunctionID) -> HRESULT;
    /// Declared, but not raised by CoreCLR.
    pub fn ExceptionOSHandlerEnter(&self, unused: usize) -> HRESULT;
    /// Declared, but not raised by CoreCLR.
    pub fn ExceptionOSHandlerLeave(&self, unused: usize) -> HRESULT;
    /// Second pass: unwinding of a function's frame starts.
    pub fn ExceptionUnwindFunctionEnter(&self, function_id: FunctionID) -> HRESULT;
    /// Second pass: that frame was unwound.
    pub fn ExceptionUnwindFunctionLeave(&self) -> HRESULT;
    /// Second pass: a finally or fault block starts to run.
    pub fn ExceptionUnwindFinallyEnter(&self, function_id: FunctionID) -> HRESULT;
    /// Second pass: that block ended.
    pub fn ExceptionUnwindFinallyLeave(&self) -> HRESULT;
    /// Control enters the catch block; the frames above it are gone.
    pub fn ExceptionCatcherEnter(&self, function_id: FunctionID, object_id: ObjectID) -> HRESULT;
    /// Control leaves the catch block.
    pub fn ExceptionCatcherLeave(&self) -> HRESULT;
    /// A COM-callable wrapper's table was created (Windows only).
    pub fn COMClassicVTableCreated(
        &self,
        wrapped_class_id: ClassID,
        implemented_iid: *const GUID,
        vtable: *mut c_void,
        c_slots: u32,
    ) -> HRESULT;
    /// A COM-callable wrapper's table was destroyed (Windows only).
    pub fn COMClassicVTableDestroyed(
        &self,
        wrapped_class_id: ClassID,
        implemented_iid: *const GUID,
        vtable: *mut c_void,
    ) -> HRESULT;
    /// The runtime itself will catch the exception.
    pub fn ExceptionCLRCatcherFound(&self) -> HRESULT;
    /// The runtime's own catcher runs.
    pub fn ExceptionCLRCatcherExecute(&self) -> HRESULT;
}
