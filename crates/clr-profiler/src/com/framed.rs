//! Callbacks that are told where the runtime's frames begin. The interface has no argument for it: the table that the runtime calls by
//! has entries for these that take the frame pointer along (`arch`).

use std::ffi::c_void;

use clr_profiler_sys::callback::{ICorProfilerCallback11, ICorProfilerCallback11_Vtbl};
use clr_profiler_sys::types::{ClassID, EVENTPIPE_PROVIDER, ObjectID, ThreadID};
use windows_core::{AsImpl, GUID, HRESULT, Interface};

use super::arch;
use super::object::CallbackObject;
use super::slices::slice;
use crate::callback_args::EventPipeEvent;
use crate::current_stack::NativeFrame;
use crate::{ClassId, EventPipeProviderId, Guid, ObjectId, ThreadId};

/// The table with entries that take the frame pointer along.
pub(super) const fn with_frames(mut table: ICorProfilerCallback11_Vtbl) -> ICorProfilerCallback11_Vtbl {
    let level10 = &mut table.base__;
    level10.EventPipeEventDelivered = arch::event_pipe_event_delivered;
    let level1 = &mut level10.base__.base__.base__.base__.base__.base__.base__.base__.base__;
    level1.ObjectAllocated = arch::object_allocated;
    level1.ExceptionThrown = arch::exception_thrown;
    table
}

/// Calls `notify` with the object that the runtime calls.
///
/// # Safety
/// `this` must be what the runtime calls the callback object by.
#[inline]
unsafe fn with_object(this: *mut c_void, notify: impl FnOnce(&CallbackObject) -> HRESULT) -> HRESULT {
    // SAFETY: as the caller promises; the object is never freed.
    let interface = unsafe { ICorProfilerCallback11::from_raw_borrowed(&this) };
    // SAFETY: the runtime has this interface from our own factory.
    interface.map_or(HRESULT(0), |interface| notify(unsafe { interface.as_impl() }))
}

/// # Safety
/// For [`arch::object_allocated`] alone: the runtime's arguments.
pub(super) unsafe extern "system" fn object_allocated(
    this: *mut c_void,
    object_id: ObjectID,
    class_id: ClassID,
    frame: usize,
) -> HRESULT {
    let frame = NativeFrame::new(frame);
    let notify = |object: &CallbackObject| {
        object.notify_with_objects(|p| {
            p.object_allocated_in(ObjectId::new(object_id), ClassId::received(class_id), frame);
        })
    };
    // SAFETY: as the caller promises.
    unsafe { with_object(this, notify) }
}

/// # Safety
/// For [`arch::exception_thrown`] alone: the runtime's arguments.
pub(super) unsafe extern "system" fn exception_thrown(
    this: *mut c_void,
    thrown_object_id: ObjectID,
    frame: usize,
) -> HRESULT {
    let frame = NativeFrame::new(frame);
    let notify = |object: &CallbackObject| {
        object.notify_with_objects(|p| p.exception_thrown_in(ObjectId::new(thrown_object_id), frame))
    };
    // SAFETY: as the caller promises.
    unsafe { with_object(this, notify) }
}

/// # Safety
/// For [`arch::event_pipe_event_delivered`] alone: the runtime's arguments, the frame pointer in the upper halves of two.
pub(super) unsafe extern "system" fn event_pipe_event_delivered(
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
    // SAFETY: the runtime passes arrays of these lengths and, for the activities, null or a GUID.
    let event = unsafe {
        EventPipeEvent {
            provider: EventPipeProviderId(provider),
            event_id: event_id as u32,
            event_version: event_version as u32,
            metadata: slice(metadata_blob, cb_metadata_blob),
            data: slice(event_data, cb_event_data),
            activity: Guid::from_ptr(activity_id),
            related_activity: Guid::from_ptr(related_activity_id),
            thread: ThreadId(event_thread).non_null(),
            stack: slice(stack_frames, num_stack_frames),
            frame: NativeFrame::new(arch::frame_of(event_id, event_version)),
        }
    };
    // SAFETY: as the caller promises.
    unsafe { with_object(this, |object| object.notify(|p| p.event_pipe_event_delivered(&event))) }
}

#[cfg(test)]
mod tests {
    use std::arch::asm;
    use std::cell::Cell;
    use std::sync::atomic::AtomicBool;
    use std::sync::{Mutex, OnceLock};

    use super::*;
    use crate::Callbacks;

    /// What a frame pointer may be: both halves count.
    const FRAME: usize = 0x7ffd_dead_bee8;

    #[derive(Default)]
    struct Seen {
        frames: Mutex<Vec<usize>>,
        numbers: Mutex<Vec<(u32, u32, usize)>>,
    }

    impl Callbacks for Seen {
        fn object_allocated_in(&self, object: ObjectId<'_>, class: ClassId, frame: NativeFrame) {
            assert_eq!((object.address(), class.as_raw()), (8, 16));
            self.frames.lock().expect("not poisoned").push(frame.address());
        }

        fn exception_thrown_in(&self, exception: ObjectId<'_>, frame: NativeFrame) {
            assert_eq!(exception.address(), 24);
            self.frames.lock().expect("not poisoned").push(frame.address());
        }

        fn event_pipe_event_delivered(&self, event: &EventPipeEvent<'_>) {
            self.frames.lock().expect("not poisoned").push(event.frame.address());
            self.numbers.lock().expect("not poisoned").push((event.event_id, event.event_version, event.stack.len()));
        }
    }

    /// Calls a function of the table with six arguments in registers and seven on the stack while the frame pointer is [`FRAME`].
    fn call(function: usize, in_registers: [usize; 6], on_stack: [usize; 7]) {
        // SAFETY: the convention of the callee: the stack is aligned at the call, and what it may change is said; the
        // frame pointer and the stack pointer are what they were afterwards.
        unsafe {
            asm!(
                "push rbp",
                "mov r12, rsp",
                "and rsp, -16",
                "sub rsp, 8",
                "mov rcx, 7",
                "2:",
                "push qword ptr [r13 + rcx * 8 - 8]",
                "dec rcx",
                "jnz 2b",
                "mov rcx, [r14 + 24]",
                "mov rbp, r15",
                "call rax",
                "mov rsp, r12",
                "pop rbp",
                inout("rax") function => _,
                inout("rdi") in_registers[0] => _,
                inout("rsi") in_registers[1] => _,
                inout("rdx") in_registers[2] => _,
                in("r8") in_registers[4],
                in("r9") in_registers[5],
                in("r13") on_stack.as_ptr(),
                in("r14") in_registers.as_ptr(),
                in("r15") FRAME,
                out("r12") _,
                clobber_abi("sysv64"),
            );
        }
    }

    /// Whether the compiler uses the register in a callback depends on what it puts into one function: a release build gave
    /// each object the class's address for a frame, and all paths of a type became one.
    #[test]
    fn callbacks_get_the_frame_of_the_runtime_whatever_the_compiler_does_with_registers() {
        let seen: &Seen = Box::leak(Box::default());
        let object = CallbackObject {
            callbacks: OnceLock::new(),
            loader: Cell::new(None),
            is_content_with_notifications: false,
            notification_only: AtomicBool::new(false),
            info: OnceLock::new(),
            stacks: OnceLock::new(),
            mapper: OnceLock::new(),
        };
        assert!(object.callbacks.set(seen).is_ok());
        let interface = object.into_interface();
        let this = interface.as_raw() as usize;
        let level10 = &interface.vtable().base__;
        let level1 = &level10.base__.base__.base__.base__.base__.base__.base__.base__.base__;
        call(level1.ObjectAllocated as usize, [this, 8, 16, 0, 0, 0], [0; 7]);
        call(level1.ExceptionThrown as usize, [this, 24, 0, 0, 0, 0], [0; 7]);
        let stack = [1_usize, 2, 3];
        // What stands above numbers of 32 bits in a register is no part of them.
        let (event, version) = (0xABCD_0000_0001_2345, 0xFFFF_FFFF_0000_0007);
        let words = [0, 0, 0, 0, 0, stack.len(), stack.as_ptr() as usize];
        call(level10.EventPipeEventDelivered as usize, [this, 40, event, version, 0, 0], words);
        assert_eq!(*seen.frames.lock().expect("not poisoned"), [FRAME; 3]);
        assert_eq!(*seen.numbers.lock().expect("not poisoned"), [(0x1_2345, 7, 3)]);
    }
}
