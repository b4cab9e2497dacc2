//! The managed stack of the calling thread.

use std::ffi::c_void;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use clr_profiler_sys::hresult::S_OK;
use windows_core::HRESULT;

use super::{ProfilerInfo, Suspended};
use crate::arch::FRAME_POINTER_IN_CONTEXT;
use crate::call_context::outside_collections;
use crate::error::check;
use crate::{FunctionId, HResult, Result, ThreadId};

/// One managed frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct StackFrame {
    /// The function.
    pub function: FunctionId,
    /// Where it goes on: the return address, or for a fault the instruction itself.
    pub address: usize,
    /// Frame pointer, where that was asked for: see [`ProfilerInfo::stack_here_with_frame_pointers`].
    pub frame_pointer: Option<usize>,
}

/// The runtime hands out the registers of each frame.
const REGISTER_CONTEXT: u32 = 1;

/// Data of the walk's callback.
struct Walk<'a> {
    visit: &'a mut dyn FnMut(StackFrame) -> ControlFlow<()>,
    stopped: bool,
}

impl ProfilerInfo {
    /// Walks the managed frames of the calling thread, innermost first, until `visit` breaks. In callbacks on managed
    /// threads, exceptions for instance; not in hooks (.NET 10 refuses), nor during a collection. Needs
    /// [`Events::ENABLE_STACK_SNAPSHOT`](crate::Events::ENABLE_STACK_SNAPSHOT).
    ///
    /// # Errors
    /// The runtime's error; a walk that `visit` ended is none.
    pub fn stack_here(&self, visit: impl FnMut(StackFrame) -> ControlFlow<()>) -> Result<()> {
        self.walk(ThreadId(0), 0, visit)
    }

    /// [`stack_here`](Self::stack_here) with the frame pointer of each frame (x64 only), which takes longer. A method with enter and leave hooks has its
    /// caller's frame pointer there, its return address above, and [`CallerSp`](crate::CallerSp) is 16 bytes above; not so one that took
    /// over a running frame (OSR).
    ///
    /// # Errors
    /// As [`stack_here`](Self::stack_here).
    pub fn stack_here_with_frame_pointers(&self, visit: impl FnMut(StackFrame) -> ControlFlow<()>) -> Result<()> {
        self.walk(ThreadId(0), REGISTER_CONTEXT, visit)
    }

    /// Walks a thread; the null identifier stands for the calling one.
    fn walk(&self, thread: ThreadId, flags: u32, mut visit: impl FnMut(StackFrame) -> ControlFlow<()>) -> Result<()> {
        let method = "DoStackSnapshot";
        outside_collections(method)?;
        let runtime = self.base(method)?;
        let mut walk = Walk { visit: &mut visit, stopped: false };
        let data = (&raw mut walk).cast::<c_void>();
        // SAFETY: `data` lives through the call and is what the callback expects.
        let answer = unsafe { runtime.DoStackSnapshot(thread.0, Some(frame), flags, data, std::ptr::null(), 0) };
        if walk.stopped { Ok(()) } else { check(answer, method) }
    }
}

impl Suspended<'_> {
    /// Walks the managed frames of another thread, innermost first, until `visit` breaks. Needs
    /// [`Events::ENABLE_STACK_SNAPSHOT`](crate::Events::ENABLE_STACK_SNAPSHOT).
    ///
    /// # Errors
    /// The runtime's error; a walk that `visit` ended is none.
    pub fn stack_of(&self, thread: ThreadId, visit: impl FnMut(StackFrame) -> ControlFlow<()>) -> Result<()> {
        self.info.walk(thread, 0, visit)
    }
}

unsafe extern "system" fn frame(
    function: usize,
    address: usize,
    _frame_info: usize,
    context_size: u32,
    context: *const u8,
    data: *mut c_void,
) -> HRESULT {
    // SAFETY: `stack_here` passes its own `Walk`, which nobody else uses meanwhile.
    let walk = unsafe { &mut *data.cast::<Walk<'_>>() };
    // A run of native frames has no function.
    let Some(function) = FunctionId(function).non_null() else { return S_OK };
    let has_registers = !context.is_null() && context_size as usize >= FRAME_POINTER_IN_CONTEXT + 8;
    // SAFETY: the runtime says that so many bytes are there.
    let frame_pointer =
        has_registers.then(|| unsafe { context.add(FRAME_POINTER_IN_CONTEXT).cast::<usize>().read_unaligned() });
    let visited = catch_unwind(AssertUnwindSafe(|| (walk.visit)(StackFrame { function, address, frame_pointer })));
    match visited {
        Ok(ControlFlow::Continue(())) => S_OK,
        _ => {
            walk.stopped = true;
            HRESULT(HResult::FAIL.0)
        }
    }
}
