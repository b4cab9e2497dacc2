//! Ids, handles and function pointers (corprof.idl, cor.h).

use core::ffi::c_void;

use windows_core::{BOOL, HRESULT};

use crate::structs::{COR_PRF_FILTER_DATA, COR_PRF_FUNCTION_ARGUMENT_INFO, COR_PRF_FUNCTION_ARGUMENT_RANGE};

/// A process.
pub type ProcessID = usize;
/// A loaded assembly.
pub type AssemblyID = usize;
/// An application domain; CoreCLR has one for users.
pub type AppDomainID = usize;
/// A loaded module; reused after its unload.
pub type ModuleID = usize;
/// A loaded class, instantiated if generic; reused after its module's unload.
pub type ClassID = usize;
/// A managed thread; reused after its end.
pub type ThreadID = usize;
/// A remoting context; dead on CoreCLR.
pub type ContextID = usize;
/// A function, instantiated if generic; reused after its module's unload or its collection.
pub type FunctionID = usize;
/// The address of an object; good until the next GC may run.
pub type ObjectID = usize;
/// A GC handle as callbacks name it.
pub type GCHandleID = usize;
/// Handle of a hook with info to its call, valid only inside the hook.
pub type COR_PRF_ELT_INFO = usize;
/// A stack frame, good only inside the hook or snapshot that gave it; 0 means none.
pub type COR_PRF_FRAME_INFO = usize;
/// A version of a function's IL; 0 is the original.
pub type ReJITID = usize;
/// An EventPipe provider.
pub type EVENTPIPE_PROVIDER = usize;
/// An EventPipe event.
pub type EVENTPIPE_EVENT = usize;
/// An EventPipe session.
pub type EVENTPIPE_SESSION = u64;
/// A GC handle made by `ICorProfilerInfo13::CreateHandle`.
pub type ObjectHandleID = *mut *mut c_void;
/// A metadata enumeration in progress; null starts one, `CloseEnum` ends it.
pub type HCORENUM = *mut c_void;

/// Argument of hooks of the third form: the function's id, or the mapper's answer for it.
#[repr(C)]
#[derive(Clone, Copy)]
pub union FunctionIDOrClientID {
    /// The runtime's id, when no mapper is set.
    pub functionID: FunctionID,
    /// The mapper's answer.
    pub clientID: usize,
}

/// Maps a function id to a client id and says whether to hook the function.
pub type FunctionIDMapper = unsafe extern "system" fn(func_id: FunctionID, hook_function: *mut BOOL) -> usize;
/// Maps a function id to a client id, with the pointer given at registration.
pub type FunctionIDMapper2 =
    unsafe extern "system" fn(func_id: FunctionID, client_data: *mut c_void, hook_function: *mut BOOL) -> usize;

/// Enter hook, first form.
pub type FunctionEnter = unsafe extern "system" fn(func_id: FunctionID);
/// Leave hook, first form.
pub type FunctionLeave = unsafe extern "system" fn(func_id: FunctionID);
/// Tail-call hook, first form.
pub type FunctionTailcall = unsafe extern "system" fn(func_id: FunctionID);

/// Enter hook, second form.
pub type FunctionEnter2 = unsafe extern "system" fn(
    func_id: FunctionID,
    client_data: usize,
    frame: COR_PRF_FRAME_INFO,
    arguments: *mut COR_PRF_FUNCTION_ARGUMENT_INFO,
);
/// Leave hook, second form.
pub type FunctionLeave2 = unsafe extern "system" fn(
    func_id: FunctionID,
    client_data: usize,
    frame: COR_PRF_FRAME_INFO,
    result: *mut COR_PRF_FUNCTION_ARGUMENT_RANGE,
);
/// Tail-call hook, second form.
pub type FunctionTailcall2 =
    unsafe extern "system" fn(func_id: FunctionID, client_data: usize, frame: COR_PRF_FRAME_INFO);

/// Enter hook, third form. Compiled code calls it with a register convention of its own: it must be an assembly stub.
pub type FunctionEnter3 = unsafe extern "system" fn(id: FunctionIDOrClientID);
/// Leave hook, third form. An assembly stub, as for [`FunctionEnter3`].
pub type FunctionLeave3 = unsafe extern "system" fn(id: FunctionIDOrClientID);
/// Tail-call hook, third form. An assembly stub, as for [`FunctionEnter3`].
pub type FunctionTailcall3 = unsafe extern "system" fn(id: FunctionIDOrClientID);

/// Enter hook with info; an ordinary function.
pub type FunctionEnter3WithInfo = unsafe extern "system" fn(id: FunctionIDOrClientID, elt_info: COR_PRF_ELT_INFO);
/// Leave hook with info; an ordinary function.
pub type FunctionLeave3WithInfo = unsafe extern "system" fn(id: FunctionIDOrClientID, elt_info: COR_PRF_ELT_INFO);
/// Tail-call hook with info; an ordinary function.
pub type FunctionTailcall3WithInfo = unsafe extern "system" fn(id: FunctionIDOrClientID, elt_info: COR_PRF_ELT_INFO);

/// Called for each frame of `DoStackSnapshot`; `func_id` 0 stands for a run of native frames. A failure stops the walk.
pub type StackSnapshotCallback = unsafe extern "system" fn(
    func_id: FunctionID,
    ip: usize,
    frame_info: COR_PRF_FRAME_INFO,
    context_size: u32,
    context: *const u8,
    client_data: *mut c_void,
) -> HRESULT;

/// Called for each reference of an object by `EnumerateObjectReferences`; false stops.
pub type ObjectReferenceCallback =
    unsafe extern "system" fn(root: ObjectID, reference: *mut ObjectID, client_data: *mut c_void) -> BOOL;

/// Called for each object by `EnumerateGCHeapObjects`; false stops.
pub type ObjectCallback = unsafe extern "system" fn(object: ObjectID, callback_state: *mut c_void) -> BOOL;

/// Called when a provider of the profiler's own is enabled or disabled. `source_id` points to a GUID's 16 bytes.
pub type EventPipeProviderCallback = unsafe extern "system" fn(
    source_id: *const u8,
    is_enabled: u32,
    level: u8,
    match_any_keywords: u64,
    match_all_keywords: u64,
    filter_data: *mut COR_PRF_FILTER_DATA,
    callback_data: *mut c_void,
);
