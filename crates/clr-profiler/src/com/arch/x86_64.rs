//! Callbacks that need the runtime's frame pointer, on x86-64 System V. Rust code may overwrite
//! `rbp` from its first instruction on, and does so. These entry points therefore read the register
//! before any Rust code runs, and pass it on as an argument.

use std::arch::naked_asm;
use std::ffi::c_void;

use clr_profiler_sys::types::{ClassID, EVENTPIPE_PROVIDER, ObjectID, ThreadID};
use windows_core::{GUID, HRESULT};

use super::super::framed;

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

/// `EventPipeEventDelivered`: most arguments are on the stack, and there is no room for one more.
/// The number and the version of the event are 32-bit values in 64-bit registers. The upper halves
/// of these registers carry the two halves of the frame pointer, see
/// [`frame_in_upper_halves`](crate::arch::frame_in_upper_halves).
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
        target = sym framed::event_pipe_event_delivered,
    )
}
