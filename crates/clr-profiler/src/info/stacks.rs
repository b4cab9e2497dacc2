//! The managed stack of the calling thread.

use std::ffi::c_void;
use std::fmt;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};

use clr_profiler_sys::hresult::S_OK;
use windows_core::HRESULT;

use super::{ProfilerInfo, Suspended};
use crate::arch::{FRAME_POINTER_IN_CONTEXT, STACK_POINTER_IN_CONTEXT};
use crate::call_context::outside_collections;
use crate::{Error, FunctionId, HResult, ThreadId};

/// One managed frame.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct StackFrame {
    /// The function.
    pub function: FunctionId,
    /// Address at which the frame continues: the return address, or for a hardware fault the
    /// instruction itself.
    pub address: usize,
    /// Frame pointer, only from [`ProfilerInfo::stack_here_with_frame_pointers`].
    pub frame_pointer: Option<usize>,
    /// Stack pointer with which the frame continues; given whenever the frame pointer is.
    pub stack_pointer: Option<usize>,
}

/// Flag with which the runtime passes the registers of each frame.
const REGISTER_CONTEXT: u32 = 1;

/// Data of the walk's callback.
struct Walk<'a> {
    visit: &'a mut dyn FnMut(StackFrame) -> ControlFlow<()>,
    frames: usize,
    stopped: bool,
}

/// End of a walk of a stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum StackWalk {
    /// All managed frames were visited.
    Complete,
    /// The visitor stopped the walk.
    Stopped,
    /// The stack has no managed frame. The thread waits in the runtime for work (finalizer,
    /// compilation), is starting, has ended, or is a native thread. In hooks .NET 10 always returns
    /// this, whatever the stack contains.
    NoManagedFrames,
}

/// Reason why a stack can't be walked.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum NoStack {
    /// The thread's stack can't be walked here (in a stub, or with a lock of the runtime), or the
    /// runtime still starts. A later sample can succeed. `CORPROF_E_STACKSNAPSHOT_UNSAFE`.
    UnsafePlace,
    /// An exception is unwinding the stack, or native code runs where a managed frame was expected.
    /// `CORPROF_E_STACKSNAPSHOT_UNMANAGED_CTX`.
    Unwinding,
    /// The thread runs: another thread's stack is walked only while [`Suspended`] lives.
    /// `E_NOTIMPL`.
    NotSuspended,
    /// [`Events::ENABLE_STACK_SNAPSHOT`](crate::Events::ENABLE_STACK_SNAPSHOT) is not set.
    /// `CORPROF_E_INCONSISTENT_WITH_FLAGS`.
    NotEnabled,
    /// The walk ended early after this many frames, without a reason from the runtime: `E_FAIL`.
    /// The frames are correct.
    CutShort(usize),
    /// Another error of the runtime, or a refusal of the framework.
    Other(Error),
}

impl NoStack {
    fn from_answer(answer: HResult, frames: usize) -> Self {
        match answer {
            HResult::STACK_UNSAFE => Self::UnsafePlace,
            HResult::STACK_UNMANAGED => Self::Unwinding,
            HResult::NOT_IMPLEMENTED => Self::NotSuspended,
            HResult::INCONSISTENT_WITH_FLAGS => Self::NotEnabled,
            HResult::FAIL => Self::CutShort(frames),
            other => Self::Other(Error::new(other, METHOD)),
        }
    }
}

impl From<NoStack> for Error {
    fn from(why: NoStack) -> Self {
        let (hresult, reason) = match why {
            NoStack::UnsafePlace => (HResult::STACK_UNSAFE, "the thread stands where its stack is not in order".into()),
            NoStack::Unwinding => {
                (HResult::STACK_UNMANAGED, "an exception unwinds the stack, or native code runs".into())
            }
            NoStack::NotSuspended => (HResult::NOT_IMPLEMENTED, "the thread runs, and is not suspended".into()),
            NoStack::NotEnabled => {
                (HResult::INCONSISTENT_WITH_FLAGS, "stacks are walked with ENABLE_STACK_SNAPSHOT only".into())
            }
            NoStack::CutShort(frames) => (HResult::FAIL, format!("the walk broke off after {frames} frames")),
            NoStack::Other(error) => return error,
        };
        Self::refused(METHOD, reason).with_hresult(hresult)
    }
}

impl fmt::Display for NoStack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Error::from(self.clone()).fmt(f)
    }
}

impl std::error::Error for NoStack {}

const METHOD: &str = "DoStackSnapshot";

impl ProfilerInfo {
    /// Walks the managed frames of the calling thread, innermost first, until `visit` breaks.
    /// Callable in callbacks on managed threads, for instance about exceptions. Not in hooks (.NET
    /// 10 refuses) or during a collection. Needs
    /// [`Events::ENABLE_STACK_SNAPSHOT`](crate::Events::ENABLE_STACK_SNAPSHOT).
    ///
    /// # Errors
    /// The reason why the stack can't be walked. A walk that `visit` ended is not an error.
    pub fn stack_here(
        &self,
        visit: impl FnMut(StackFrame) -> ControlFlow<()>,
    ) -> std::result::Result<StackWalk, NoStack> {
        self.walk(ThreadId(0), 0, visit)
    }

    /// [`stack_here`](Self::stack_here) with the frame pointer of each frame (x64 only), which
    /// takes longer. In a method with enter and leave hooks, the word at the frame pointer is the
    /// caller's frame pointer, the next word is the return address, and
    /// [`CallerSp`](crate::CallerSp) is 16 bytes above the frame pointer. This does not hold for a
    /// method body that took over a running frame (OSR).
    ///
    /// # Errors
    /// As [`stack_here`](Self::stack_here).
    pub fn stack_here_with_frame_pointers(
        &self,
        visit: impl FnMut(StackFrame) -> ControlFlow<()>,
    ) -> std::result::Result<StackWalk, NoStack> {
        self.walk(ThreadId(0), REGISTER_CONTEXT, visit)
    }

    /// Whether the runtime has started, so that modules are loaded and threads can be suspended.
    /// Only on native threads.
    pub(crate) fn is_runtime_up(&self) -> bool {
        // A native thread has no managed frames; the runtime reports this only once it has started.
        self.stack_here(|_| ControlFlow::Break(())) != Err(NoStack::UnsafePlace)
    }

    /// Walks the stack of a thread; the null identifier means the calling thread.
    fn walk(
        &self,
        thread: ThreadId,
        flags: u32,
        mut visit: impl FnMut(StackFrame) -> ControlFlow<()>,
    ) -> std::result::Result<StackWalk, NoStack> {
        outside_collections(METHOD).map_err(NoStack::Other)?;
        let runtime = self.base(METHOD).map_err(NoStack::Other)?;
        let mut walk = Walk { visit: &mut visit, frames: 0, stopped: false };
        let data = (&raw mut walk).cast::<c_void>();
        // SAFETY: `data` lives through the call and is what the callback expects.
        let answer = unsafe { runtime.DoStackSnapshot(thread.0, Some(frame), flags, data, std::ptr::null(), 0) };
        let (answer, Walk { frames, stopped, .. }) = (HResult(answer.0), walk);
        match frames {
            _ if stopped => Ok(StackWalk::Stopped),
            0 if answer.is_ok() => Ok(StackWalk::NoManagedFrames),
            // The walk fails if there is no managed frame to start from.
            0 if answer == HResult::FAIL => Ok(StackWalk::NoManagedFrames),
            _ if answer.is_ok() => Ok(StackWalk::Complete),
            _ => Err(NoStack::from_answer(answer, frames)),
        }
    }
}

impl Suspended<'_> {
    /// Walks the managed frames of another thread, innermost first, until `visit` breaks. Needs
    /// [`Events::ENABLE_STACK_SNAPSHOT`](crate::Events::ENABLE_STACK_SNAPSHOT). Every program has
    /// threads that run no managed code, such as the finalizer's: [`StackWalk::NoManagedFrames`].
    ///
    /// # Errors
    /// The reason why the stack can't be walked. A walk that `visit` ended is not an error.
    pub fn stack_of(
        &self,
        thread: ThreadId,
        visit: impl FnMut(StackFrame) -> ControlFlow<()>,
    ) -> std::result::Result<StackWalk, NoStack> {
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
    // SAFETY: `stack_here` passes its own `Walk`, which no other code uses during the walk.
    let walk = unsafe { &mut *data.cast::<Walk<'_>>() };
    // A run of native frames has no function.
    let Some(function) = FunctionId::received(function).non_null() else { return S_OK };
    walk.frames += 1;
    let has_registers = !context.is_null() && context_size as usize >= FRAME_POINTER_IN_CONTEXT + 8;
    // SAFETY: the runtime says that so many bytes are there.
    let register = |at: usize| has_registers.then(|| unsafe { context.add(at).cast::<usize>().read_unaligned() });
    let [frame_pointer, stack_pointer] = [FRAME_POINTER_IN_CONTEXT, STACK_POINTER_IN_CONTEXT].map(register);
    let frame = StackFrame { function, address, frame_pointer, stack_pointer };
    let visited = catch_unwind(AssertUnwindSafe(|| (walk.visit)(frame)));
    match visited {
        Ok(ControlFlow::Continue(())) => S_OK,
        _ => {
            walk.stopped = true;
            HRESULT(HResult::FAIL.0)
        }
    }
}
