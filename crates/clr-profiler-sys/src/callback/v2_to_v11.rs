//! `ICorProfilerCallback2` to `ICorProfilerCallback11`.
#![expect(missing_docs, reason = "the macro puts the documentation of methods on the `_Impl` traits only")]

use core::ffi::c_void;

use windows_core::{BOOL, GUID, HRESULT, interface};

use super::v1::*;
use crate::cor::mdMethodDef;
use crate::enums::{COR_PRF_GC_REASON, COR_PRF_GC_ROOT_FLAGS, COR_PRF_GC_ROOT_KIND};
use crate::types::{EVENTPIPE_PROVIDER, FunctionID, GCHandleID, ModuleID, ObjectID, ReJITID, ThreadID};

/// Thread names, GC start and end, survivors, typed roots and handles. A startup profiler must
/// implement at least this level. Source: corprof.idl.
#[interface("8A8CC829-CCF2-49FE-BBAE-0F022228071A")]
pub unsafe trait ICorProfilerCallback2: ICorProfilerCallback {
    /// A thread was named. The name has `cch_name` UTF-16 units and no terminator.
    pub fn ThreadNameChanged(&self, thread_id: ThreadID, cch_name: u32, name: *const u16) -> HRESULT;
    /// A GC of the marked generations starts; all managed threads are suspended.
    pub fn GarbageCollectionStarted(
        &self,
        c_generations: i32,
        generation_collected: *const BOOL,
        reason: COR_PRF_GC_REASON,
    ) -> HRESULT;
    /// Ranges of objects that survived a non-compacting GC; lengths are truncated to 32 bits. See
    /// `SurvivingReferences2`.
    pub fn SurvivingReferences(
        &self,
        range_count: u32,
        range_starts: *const ObjectID,
        range_lengths: *const u32,
    ) -> HRESULT;
    /// The GC ended; all its notifications have been sent.
    pub fn GarbageCollectionFinished(&self) -> HRESULT;
    /// An object was queued for its finalizer.
    pub fn FinalizeableObjectQueued(&self, finalizer_flags: u32, object_id: ObjectID) -> HRESULT;
    /// Objects kept alive by roots, with kind, flags and id of each root.
    pub fn RootReferences2(
        &self,
        c_root_refs: u32,
        root_ref_ids: *const ObjectID,
        root_kinds: *const COR_PRF_GC_ROOT_KIND,
        root_flags: *const COR_PRF_GC_ROOT_FLAGS,
        root_ids: *const usize,
    ) -> HRESULT;
    /// A GC handle was created.
    pub fn HandleCreated(&self, handle_id: GCHandleID, initial_object_id: ObjectID) -> HRESULT;
    /// A GC handle was destroyed.
    pub fn HandleDestroyed(&self, handle_id: GCHandleID) -> HRESULT;
}

/// Attach and detach. An attaching profiler must implement at least this level. Source:
/// corprof.idl.
#[interface("4FD2ED52-7731-4B8D-9469-03D2CC3086C5")]
pub unsafe trait ICorProfilerCallback3: ICorProfilerCallback2 {
    /// First call after an attach, instead of `Initialize`, with the attacher's client data. Events
    /// may arrive before `ProfilerAttachComplete`.
    pub fn InitializeForAttach(&self, info: *mut c_void, client_data: *mut c_void, cb_client_data: u32) -> HRESULT;
    /// The attach is complete. Enumerate the existing modules, threads and functions here.
    pub fn ProfilerAttachComplete(&self) -> HRESULT;
    /// The detach is complete; the library may be unloaded after this call.
    pub fn ProfilerDetachSucceeded(&self) -> HRESULT;
}

/// Recompilation (ReJIT) and 64-bit object ranges. Source: corprof.idl.
#[interface("7B63B2E3-107D-4D48-B2F6-F61E229470D2")]
pub unsafe trait ICorProfilerCallback4: ICorProfilerCallback3 {
    /// Recompilation of a function starts.
    pub fn ReJITCompilationStarted(
        &self,
        function_id: FunctionID,
        rejit_id: ReJITID,
        is_safe_to_block: BOOL,
    ) -> HRESULT;
    /// The runtime asks for the new IL and code flags of a method that is about to be recompiled.
    /// The control object is valid only during this call.
    pub fn GetReJITParameters(
        &self,
        module_id: ModuleID,
        method_id: mdMethodDef,
        function_control: *mut c_void,
    ) -> HRESULT;
    /// Recompilation of a function ended with `hr_status`.
    pub fn ReJITCompilationFinished(
        &self,
        function_id: FunctionID,
        rejit_id: ReJITID,
        hr_status: HRESULT,
        is_safe_to_block: BOOL,
    ) -> HRESULT;
    /// A requested recompilation can't be done.
    pub fn ReJITError(
        &self,
        module_id: ModuleID,
        method_id: mdMethodDef,
        function_id: FunctionID,
        hr_status: HRESULT,
    ) -> HRESULT;
    /// A compacting GC moved ranges of objects, lengths in bytes.
    pub fn MovedReferences2(
        &self,
        range_count: u32,
        old_range_starts: *const ObjectID,
        new_range_starts: *const ObjectID,
        range_lengths: *const usize,
    ) -> HRESULT;
    /// Ranges of objects that survived a non-compacting GC, lengths in bytes.
    pub fn SurvivingReferences2(
        &self,
        range_count: u32,
        range_starts: *const ObjectID,
        range_lengths: *const usize,
    ) -> HRESULT;
}

/// Dependent handles. Source: corprof.idl.
#[interface("8DFBA405-8C9F-45F8-BFFA-83B14CEF78B5")]
pub unsafe trait ICorProfilerCallback5: ICorProfilerCallback4 {
    /// Pairs of dependent handles: each key keeps its value alive.
    pub fn ConditionalWeakTableElementReferences(
        &self,
        c_root_refs: u32,
        key_ref_ids: *const ObjectID,
        value_ref_ids: *const ObjectID,
        root_ids: *const GCHandleID,
    ) -> HRESULT;
}

/// Extra assembly references. Source: corprof.idl.
#[interface("FC13DF4B-4448-4F4F-950C-BA8D19D00C36")]
pub unsafe trait ICorProfilerCallback6: ICorProfilerCallback5 {
    /// Asks for the references that an assembly will need after the profiler's changes.
    pub fn GetAssemblyReferences(&self, wsz_assembly_path: *const u16, asm_ref_provider: *mut c_void) -> HRESULT;
}

/// In-memory symbols. Source: corprof.idl.
#[interface("F76A2DBA-1D52-4539-866C-2AA518F9EFC3")]
pub unsafe trait ICorProfilerCallback7: ICorProfilerCallback6 {
    /// The symbol stream of an in-memory module changed.
    pub fn ModuleInMemorySymbolsUpdated(&self, module_id: ModuleID) -> HRESULT;
}

/// Dynamic methods. Source: corprof.idl.
#[interface("5BED9B15-C079-4D47-BFE2-215A140C07E0")]
pub unsafe trait ICorProfilerCallback8: ICorProfilerCallback7 {
    /// Compilation of a method without metadata starts; its IL can be read, not changed.
    pub fn DynamicMethodJITCompilationStarted(
        &self,
        function_id: FunctionID,
        is_safe_to_block: BOOL,
        il_header: *const u8,
        cb_il_header: u32,
    ) -> HRESULT;
    /// Compilation of a method without metadata ended with `hr_status`.
    pub fn DynamicMethodJITCompilationFinished(
        &self,
        function_id: FunctionID,
        hr_status: HRESULT,
        is_safe_to_block: BOOL,
    ) -> HRESULT;
}

/// End of dynamic methods. Source: corprof.idl.
#[interface("27583EC3-C8F5-482F-8052-194B8CE4705A")]
pub unsafe trait ICorProfilerCallback9: ICorProfilerCallback8 {
    /// A method without metadata was collected; its id may be reused.
    pub fn DynamicMethodUnloaded(&self, function_id: FunctionID) -> HRESULT;
}

/// EventPipe events in process, since .NET 5. Source: corprof.idl.
#[interface("CEC5B60E-C69C-495F-87F6-84D28EE16FFB")]
pub unsafe trait ICorProfilerCallback10: ICorProfilerCallback9 {
    /// An event of a session started by this profiler. The pointers are valid only during the call.
    pub fn EventPipeEventDelivered(
        &self,
        provider: EVENTPIPE_PROVIDER,
        event_id: u32,
        event_version: u32,
        cb_metadata_blob: u32,
        metadata_blob: *const u8,
        cb_event_data: u32,
        event_data: *const u8,
        activity_id: *const GUID,
        related_activity_id: *const GUID,
        event_thread: ThreadID,
        num_stack_frames: u32,
        stack_frames: *const usize,
    ) -> HRESULT;
    /// An EventPipe provider was registered.
    pub fn EventPipeProviderCreated(&self, provider: EVENTPIPE_PROVIDER) -> HRESULT;
}

/// Notification-only profilers, since .NET 6. Source: corprof.idl.
#[interface("42350846-AAED-47F7-B128-FD0C98881CDE")]
pub unsafe trait ICorProfilerCallback11: ICorProfilerCallback10 {
    /// Called before `Initialize`. Write true to run alongside a main profiler, with fewer rights.
    pub fn LoadAsNotificationOnly(&self, notification_only: *mut BOOL) -> HRESULT;
}
