//! The method table through which the runtime calls the callback object.

use clr_profiler_sys::callback::{ICorProfilerCallback11, ICorProfilerCallback11_Vtbl};

use super::arch;
use super::object::{CallbackObject, METHODS};

static TABLE: ICorProfilerCallback11_Vtbl = with_frames(METHODS);

/// The interface pointer of the object, for the runtime.
pub(super) fn interface_of(object: CallbackObject) -> ICorProfilerCallback11 {
    // SAFETY: the table differs from the object's own table only in entries that take the same
    // arguments and find the object in the same way.
    unsafe { object.into_interface(&TABLE) }
}

/// Replaces entries of the table by entries that also pass on the runtime's frame pointer.
const fn with_frames(mut table: ICorProfilerCallback11_Vtbl) -> ICorProfilerCallback11_Vtbl {
    let level10 = &mut table.base__;
    level10.EventPipeEventDelivered = arch::event_pipe_event_delivered;
    let level1 = &mut level10.base__.base__.base__.base__.base__.base__.base__.base__.base__;
    level1.ObjectAllocated = arch::object_allocated;
    level1.ExceptionThrown = arch::exception_thrown;
    table
}

#[cfg(test)]
mod tests {
    use std::arch::asm;
    use std::cell::Cell;
    use std::sync::atomic::AtomicBool;
    use std::sync::{Arc, Mutex, OnceLock};

    use clr_profiler_sys::callback::ICorProfilerCallback11;
    use windows_core::Interface as _;

    use super::*;
    use crate::callback_args::EventPipeEvent;
    use crate::current_stack::NativeFrame;
    use crate::{Callbacks, ClassId, ObjectId};

    /// A frame pointer with significant bits in both halves.
    const FRAME: usize = 0x7ffd_dead_bee8;

    #[derive(Default)]
    struct RecordedCalls {
        frames: Mutex<Vec<usize>>,
        numbers: Mutex<Vec<(u32, u32, usize)>>,
    }

    impl Callbacks for RecordedCalls {
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

    /// Calls a function of the table with six arguments in registers and seven on the stack while
    /// the frame pointer is [`FRAME`].
    fn call(function: usize, in_registers: [usize; 6], on_stack: [usize; 7]) {
        // SAFETY: the convention of the callee: the stack is aligned at the call, and all registers
        // that the callee may change are declared; the frame pointer and the stack pointer are
        // restored afterwards.
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

    /// Whether the compiler uses the register in a callback depends on the code that it inlines
    /// there. In a release build each object got the address of its class as frame pointer, so all
    /// allocation paths of a type became one.
    #[test]
    fn callbacks_get_the_frame_of_the_runtime_whatever_the_compiler_does_with_registers() {
        let seen: &RecordedCalls = Box::leak(Box::default());
        let object = CallbackObject {
            callbacks: OnceLock::new(),
            free: Cell::new(None),
            is_retired: Arc::default(),
            loader: Cell::new(None),
            is_content_with_notifications: false,
            notification_only: AtomicBool::new(false),
            info: OnceLock::new(),
            stacks: OnceLock::new(),
            mapper: OnceLock::new(),
        };
        assert!(object.callbacks.set(seen).is_ok());
        let interface: ICorProfilerCallback11 = interface_of(object);
        let this = interface.as_raw() as usize;
        let level10 = &interface.vtable().base__;
        let level1 = &level10.base__.base__.base__.base__.base__.base__.base__.base__.base__;
        call(level1.ObjectAllocated as usize, [this, 8, 16, 0, 0, 0], [0; 7]);
        call(level1.ExceptionThrown as usize, [this, 24, 0, 0, 0, 0], [0; 7]);
        let stack = [1_usize, 2, 3];
        // The upper halves of the registers are not part of the 32-bit numbers.
        let (event, version) = (0xABCD_0000_0001_2345, 0xFFFF_FFFF_0000_0007);
        let words = [0, 0, 0, 0, 0, stack.len(), stack.as_ptr() as usize];
        call(level10.EventPipeEventDelivered as usize, [this, 40, event, version, 0, 0], words);
        assert_eq!(*seen.frames.lock().expect("not poisoned"), [FRAME; 3]);
        assert_eq!(*seen.numbers.lock().expect("not poisoned"), [(0x1_2345, 7, 3)]);
    }
}
