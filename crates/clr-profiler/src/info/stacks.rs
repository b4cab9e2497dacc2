//! The managed stack of the calling thread.

use std::ffi::c_void;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use clr_profiler_sys::hresult::S_OK;
use windows_core::HRESULT;

use super::{ProfilerInfo, Suspended};
use crate::error::check;
use crate::place::outside_collections;
use crate::{FunctionId, HResult, Result, ThreadId};

/// One managed frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StackFrame {
    /// The function.
    pub function: FunctionId,
    /// Where it goes on: the return address, or for a fault the instruction itself.
    pub address: usize,
}

/// What the walk's callback needs.
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
    /// What the runtime answers; a walk that `visit` ended is none.
    pub fn stack_here(&self, visit: impl FnMut(StackFrame) -> ControlFlow<()>) -> Result<()> {
        self.walk(ThreadId(0), visit)
    }

    /// Walks a thread; the null identifier stands for the calling one.
    fn walk(&self, thread: ThreadId, mut visit: impl FnMut(StackFrame) -> ControlFlow<()>) -> Result<()> {
        let method = "DoStackSnapshot";
        outside_collections(method)?;
        let mut walk = Walk { visit: &mut visit, stopped: false };
        let data = (&raw mut walk).cast::<c_void>();
        // SAFETY: `data` lives through the call and is what the callback expects.
        let answer = unsafe { self.base().DoStackSnapshot(thread.0, Some(frame), 0, data, std::ptr::null(), 0) };
        if walk.stopped { Ok(()) } else { check(answer, method) }
    }
}

impl Suspended<'_> {
    /// Walks the managed frames of another thread, innermost first, until `visit` breaks. Needs
    /// [`Events::ENABLE_STACK_SNAPSHOT`](crate::Events::ENABLE_STACK_SNAPSHOT).
    ///
    /// # Errors
    /// What the runtime answers; a walk that `visit` ended is none.
    pub fn stack_of(&self, thread: ThreadId, visit: impl FnMut(StackFrame) -> ControlFlow<()>) -> Result<()> {
        self.info.walk(thread, visit)
    }
}

unsafe extern "system" fn frame(
    function: usize,
    address: usize,
    _frame_info: usize,
    _context_size: u32,
    _context: *const u8,
    data: *mut c_void,
) -> HRESULT {
    // SAFETY: `stack_here` passes its own `Walk`, which nobody else uses meanwhile.
    let walk = unsafe { &mut *data.cast::<Walk<'_>>() };
    // A run of native frames has no function.
    let Some(function) = FunctionId(function).non_null() else { return S_OK };
    let visited = catch_unwind(AssertUnwindSafe(|| (walk.visit)(StackFrame { function, address })));
    match visited {
        Ok(ControlFlow::Continue(())) => S_OK,
        _ => {
            walk.stopped = true;
            HRESULT(HResult::FAIL.0)
        }
    }
}
