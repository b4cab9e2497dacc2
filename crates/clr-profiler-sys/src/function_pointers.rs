//! Functions of the profiler that the runtime calls: mappers, hooks and the callbacks of
//! enumerations (corprof.idl).

use core::ffi::c_void;

use windows_core::{BOOL, HRESULT};

use crate::structs::{COR_PRF_FILTER_DATA, COR_PRF_FUNCTION_ARGUMENT_INFO, COR_PRF_FUNCTION_ARGUMENT_RANGE};
use crate::types::{COR_PRF_ELT_INFO, COR_PRF_FRAME_INFO, FunctionID, FunctionIDOrClientID, ObjectID};

/// Maps a function id to a client id and says whether to hook the function.
pub type FunctionIDMapper = unsafe extern "system" fn(func_id: FunctionID, hook_function: *mut BOOL) -> usize;
/// Maps a function id to a client id; also gets the pointer given at registration.
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

/// Enter hook, third form. Compiled code calls it with a special register convention, so it must be
/// an assembly stub.
pub type FunctionEnter3 = unsafe extern "system" fn(id: FunctionIDOrClientID);
/// Leave hook, third form. Must be an assembly stub, like [`FunctionEnter3`].
pub type FunctionLeave3 = unsafe extern "system" fn(id: FunctionIDOrClientID);
/// Tail-call hook, third form. Must be an assembly stub, like [`FunctionEnter3`].
pub type FunctionTailcall3 = unsafe extern "system" fn(id: FunctionIDOrClientID);

/// Enter hook that gets a handle of the call; an ordinary function.
pub type FunctionEnter3WithInfo = unsafe extern "system" fn(id: FunctionIDOrClientID, elt_info: COR_PRF_ELT_INFO);
/// Leave hook that gets a handle of the call; an ordinary function.
pub type FunctionLeave3WithInfo = unsafe extern "system" fn(id: FunctionIDOrClientID, elt_info: COR_PRF_ELT_INFO);
/// Tail-call hook that gets a handle of the call; an ordinary function.
pub type FunctionTailcall3WithInfo = unsafe extern "system" fn(id: FunctionIDOrClientID, elt_info: COR_PRF_ELT_INFO);

/// Called for each frame of `DoStackSnapshot`. `func_id` 0 means a sequence of native frames.
/// Returning a failure stops the walk.
pub type StackSnapshotCallback = unsafe extern "system" fn(
    func_id: FunctionID,
    ip: usize,
    frame_info: COR_PRF_FRAME_INFO,
    context_size: u32,
    context: *const u8,
    client_data: *mut c_void,
) -> HRESULT;

/// Called by `EnumerateObjectReferences` for each reference that an object holds. Returning false
/// stops the enumeration.
pub type ObjectReferenceCallback =
    unsafe extern "system" fn(root: ObjectID, reference: *mut ObjectID, client_data: *mut c_void) -> BOOL;

/// Called by `EnumerateGCHeapObjects` for each object. Returning false stops the enumeration.
pub type ObjectCallback = unsafe extern "system" fn(object: ObjectID, callback_state: *mut c_void) -> BOOL;

/// Called when the profiler's own provider is enabled or disabled. `source_id` points to a GUID's
/// 16 bytes.
pub type EventPipeProviderCallback = unsafe extern "system" fn(
    source_id: *const u8,
    is_enabled: u32,
    level: u8,
    match_any_keywords: u64,
    match_all_keywords: u64,
    filter_data: *mut COR_PRF_FILTER_DATA,
    callback_data: *mut c_void,
);
