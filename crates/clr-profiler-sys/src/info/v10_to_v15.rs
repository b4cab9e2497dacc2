//! `ICorProfilerInfo10` to `ICorProfilerInfo15`.
#![expect(missing_docs, reason = "the macro puts the documentation of methods on the `_Impl` traits only")]

use core::ffi::c_void;

use windows_core::{BOOL, GUID, HRESULT, interface};

use super::v4_to_v9::*;
use crate::cor::mdMethodDef;
use crate::enums::COR_PRF_HANDLE_TYPE;
use crate::function_pointers::{EventPipeProviderCallback, ObjectCallback, ObjectReferenceCallback};
use crate::structs::{
    COR_PRF_EVENT_DATA, COR_PRF_EVENTPIPE_PARAM_DESC, COR_PRF_EVENTPIPE_PROVIDER_CONFIG, COR_PRF_NONGC_HEAP_RANGE,
};
use crate::types::{EVENTPIPE_EVENT, EVENTPIPE_PROVIDER, EVENTPIPE_SESSION, ModuleID, ObjectHandleID, ObjectID};

/// Object references, inlining-aware ReJIT, suspension. Source: corprof.idl.
#[interface("2F1B5152-C869-40C9-AA5F-3ABE026BD720")]
pub unsafe trait ICorProfilerInfo10: ICorProfilerInfo9 {
    /// Calls `callback` for each reference that an object holds. Call it only while the GC can't
    /// run.
    pub fn EnumerateObjectReferences(
        &self,
        object_id: ObjectID,
        callback: Option<ObjectReferenceCallback>,
        client_data: *mut c_void,
    ) -> HRESULT;
    /// Whether an object is in a frozen segment.
    pub fn IsFrozenObject(&self, object_id: ObjectID, is_frozen: *mut BOOL) -> HRESULT;
    /// Minimum size in bytes of objects on the large object heap.
    pub fn GetLOHObjectSizeThreshold(&self, threshold: *mut u32) -> HRESULT;
    /// Recompiles methods and the methods that inlined them. `rejit_flags`: `COR_PRF_REJIT_FLAGS`.
    pub fn RequestReJITWithInliners(
        &self,
        rejit_flags: u32,
        c_functions: u32,
        module_ids: *const ModuleID,
        method_ids: *const mdMethodDef,
    ) -> HRESULT;
    /// Suspends all managed threads; `CORPROF_E_SUSPENSION_IN_PROGRESS` when another suspension is
    /// in progress.
    pub fn SuspendRuntime(&self) -> HRESULT;
    /// Resumes the managed threads after `SuspendRuntime`.
    pub fn ResumeRuntime(&self) -> HRESULT;
}

/// The runtime's environment variables. Source: corprof.idl.
#[interface("06398876-8987-4154-B621-40A00D6E4D04")]
pub unsafe trait ICorProfilerInfo11: ICorProfilerInfo10 {
    /// Reads a variable as the runtime sees it. The returned length does not include the terminator
    /// (observed on .NET 8, 9 and 10).
    pub fn GetEnvironmentVariable(
        &self,
        sz_name: *const u16,
        cch_value: u32,
        p_cch_value: *mut u32,
        sz_value: *mut u16,
    ) -> HRESULT;
    /// Sets an environment variable for the runtime; null removes it.
    pub fn SetEnvironmentVariable(&self, sz_name: *const u16, sz_value: *const u16) -> HRESULT;
}

/// EventPipe sessions and providers, since .NET 5. Source: corprof.idl.
#[interface("27B24CCD-1CB1-47C5-96EE-98190DC30959")]
pub unsafe trait ICorProfilerInfo12: ICorProfilerInfo11 {
    /// Starts a session. `EventPipeEventDelivered` receives its events.
    pub fn EventPipeStartSession(
        &self,
        c_provider_configs: u32,
        provider_configs: *const COR_PRF_EVENTPIPE_PROVIDER_CONFIG,
        request_rundown: BOOL,
        session: *mut EVENTPIPE_SESSION,
    ) -> HRESULT;
    /// Adds a provider to a running session.
    pub fn EventPipeAddProviderToSession(
        &self,
        session: EVENTPIPE_SESSION,
        provider_config: COR_PRF_EVENTPIPE_PROVIDER_CONFIG,
    ) -> HRESULT;
    /// Stops a session. Must be called before a detach.
    pub fn EventPipeStopSession(&self, session: EVENTPIPE_SESSION) -> HRESULT;
    /// Creates a provider for the profiler's own events.
    pub fn EventPipeCreateProvider(&self, provider_name: *const u16, provider: *mut EVENTPIPE_PROVIDER) -> HRESULT;
    /// Name of a provider.
    pub fn EventPipeGetProviderInfo(
        &self,
        provider: EVENTPIPE_PROVIDER,
        cch_name: u32,
        p_cch_name: *mut u32,
        provider_name: *mut u16,
    ) -> HRESULT;
    /// Defines an event of the profiler's own provider.
    pub fn EventPipeDefineEvent(
        &self,
        provider: EVENTPIPE_PROVIDER,
        event_name: *const u16,
        event_id: u32,
        keywords: u64,
        event_version: u32,
        level: u32,
        opcode: u8,
        need_stack: BOOL,
        c_param_descs: u32,
        param_descs: *const COR_PRF_EVENTPIPE_PARAM_DESC,
        event: *mut EVENTPIPE_EVENT,
    ) -> HRESULT;
    /// Writes one event.
    pub fn EventPipeWriteEvent(
        &self,
        event: EVENTPIPE_EVENT,
        c_data: u32,
        data: *const COR_PRF_EVENT_DATA,
        activity_id: *const GUID,
        related_activity_id: *const GUID,
    ) -> HRESULT;
}

/// Object handles, since .NET 7. Source: corprof.idl.
#[interface("6E6C7EE2-0701-4EC2-9D29-2E8733B66934")]
pub unsafe trait ICorProfilerInfo13: ICorProfilerInfo12 {
    /// Creates a GC handle to an object.
    pub fn CreateHandle(
        &self,
        object: ObjectID,
        handle_type: COR_PRF_HANDLE_TYPE,
        handle: *mut ObjectHandleID,
    ) -> HRESULT;
    /// Destroys a handle made by `CreateHandle`.
    pub fn DestroyHandle(&self, handle: ObjectHandleID) -> HRESULT;
    /// Current object of a handle; 0 if the object of a weak handle was collected.
    pub fn GetObjectIDFromHandle(&self, handle: ObjectHandleID, object: *mut ObjectID) -> HRESULT;
}

/// Objects outside the GC heap, since .NET 8. Source: corprof.idl.
#[interface("F460E352-D76D-4FE9-835F-F6AF9D6E862D")]
pub unsafe trait ICorProfilerInfo14: ICorProfilerInfo13 {
    /// `ICorProfilerObjectEnum` over objects outside the GC heap.
    pub fn EnumerateNonGCObjects(&self, enumerator: *mut *mut c_void) -> HRESULT;
    /// Address ranges of the heap that is not garbage-collected.
    pub fn GetNonGCHeapBounds(
        &self,
        c_object_ranges: u32,
        p_c_object_ranges: *mut u32,
        ranges: *mut COR_PRF_NONGC_HEAP_RANGE,
    ) -> HRESULT;
    /// Creates a provider with a callback that runs when the provider is enabled or disabled.
    pub fn EventPipeCreateProvider2(
        &self,
        provider_name: *const u16,
        callback: Option<EventPipeProviderCallback>,
        provider: *mut EVENTPIPE_PROVIDER,
    ) -> HRESULT;
}

/// Heap enumeration, since .NET 9 (9.0.22 supports it, 8.0.33 doesn't). Source: corprof.idl.
#[interface("B446462D-BD22-41DD-872D-DC714C49EB56")]
pub unsafe trait ICorProfilerInfo15: ICorProfilerInfo14 {
    /// Suspends the runtime and calls `callback` for each object of the heap.
    pub fn EnumerateGCHeapObjects(&self, callback: Option<ObjectCallback>, callback_state: *mut c_void) -> HRESULT;
}
