//! Callbacks that need the runtime's frame pointer, on x86-64 System V. Rust code may use `rbp` for anything from its first instruction on,
//! and does; so the register is taken before any of it runs, and handed on beside the arguments.

use std::arch::naked_asm;
use std::ffi::c_void;

use clr_profiler_sys::types::{ClassID, EVENTPIPE_PROVIDER, ObjectID, ThreadID};
use windows_core::{GUID, HRESULT};

use super::super::framed;
use crate::current_stack::NativeFrame;

/// `ObjectAllocated`: the frame pointer is a fourth argument.
#[unsafe(naked)]
pub(in crate::com) unsafe extern "system" fn object_allocated(
    this: *mut c_void,
    object_id: ObjectID,
    class_id: ClassID,
) -> HRESULT {
    naked_asm!("mov rcx, rbp", "jmp {target}", target = sym framed::object_allocated)
}

/// `ExceptionThrown`: the frame pointer is a third argument.
#[unsafe(naked)]
pub(in crate::com) unsafe extern "system" fn exception_thrown(
    this: *mut c_void,
    thrown_object_id: ObjectID,
) -> HRESULT {
    naked_asm!("mov rdx, rbp", "jmp {target}", target = sym framed::exception_thrown)
}

/// `EventPipeEventDelivered`: most of its arguments lie on the stack, where there is no room for one more. The number and the version of
/// the event have 32 bits each in registers of 64: the other halves take the halves of the frame pointer.
#[unsafe(naked)]
pub(in crate::com) unsafe extern "system" fn event_pipe_event_delivered(
    this: *mut c_void,
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
) -> HRESULT {
    naked_asm!(
        "mov edx, edx", // Clears the upper half.
        "mov ecx, ecx",
        "mov eax, ebp",
        "shl rax, 32",
        "or rdx, rax",
        "mov rax, rbp",
        "shr rax, 32",
        "shl rax, 32",
        "or rcx, rax",
        "jmp {target}",
        target = sym unpacked,
    )
}

/// Takes the frame pointer out of the halves again.
unsafe extern "system" fn unpacked(
    this: *mut c_void,
    provider: EVENTPIPE_PROVIDER,
    event_id: u64,
    event_version: u64,
    cb_metadata_blob: u32,
    metadata_blob: *const u8,
    cb_event_data: u32,
    event_data: *const u8,
    activity_id: *const GUID,
    related_activity_id: *const GUID,
    event_thread: ThreadID,
    num_stack_frames: u32,
    stack_frames: *const usize,
) -> HRESULT {
    let frame = NativeFrame::new((event_id >> 32 | event_version >> 32 << 32) as usize);
    // SAFETY: the runtime's own arguments.
    unsafe {
        framed::event_pipe_event_delivered(
            this,
            provider,
            event_id as u32,
            event_version as u32,
            cb_metadata_blob,
            metadata_blob,
            cb_event_data,
            event_data,
            activity_id,
            related_activity_id,
            event_thread,
            num_stack_frames,
            stack_frames,
            frame,
        )
    }
}
