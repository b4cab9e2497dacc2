//! Detects that a thread has used up its stack. Hooks take stack too, and recompiled code has
//! larger frames. So the report of a program that ended by stack overflow should also name a cure.

use std::sync::atomic::Ordering;

use clr_profiler::internals::CurrentStack;
use clrscope_recording::layout::thread;
use clrscope_recording::writer::ThreadRecord;
use clrscope_agent_base::hooks::own;

use super::frames::{Frame, words};

/// With fewer bytes of stack than this the runtime's own code may overflow it. Careful programs
/// stop at twice as much (`RuntimeHelpers.EnsureSufficientExecutionStack`).
const LITTLE: usize = 64 << 10;
/// For a small stack: the part (one in so many) that counts as little.
const PART: usize = 8;

/// Notes where the calling thread's stack ends. Threads whose stack can't be measured are ignored.
pub(super) fn begin(record: ThreadRecord) {
    let bounds = CurrentStack::bounds().unwrap_or(0..0);
    let enough = bounds.start + LITTLE.min(bounds.len() / PART);
    record.u64(own::LITTLE_STACK).store(enough as u64, Ordering::Relaxed);
}

/// Notes in the thread's record the depth of its calls, if a call with this stack pointer has
/// hardly any stack left. `top` is the frame of the call.
#[inline]
pub(super) fn note(record: ThreadRecord, sp: usize, top: u64) {
    if (sp as u64) < record.u64(own::LITTLE_STACK).load(Ordering::Relaxed) {
        let calls = top.saturating_sub(record.u64(own::FRAMES).load(Ordering::Relaxed)) / size_of::<Frame>() as u64;
        record.u32(thread::OUT_OF_STACK).store(u32::try_from(calls).unwrap_or(u32::MAX), Ordering::Relaxed);
    }
}

/// Like [`note`], for a thread that may be running. `top` is the frame on top.
pub(super) fn look_at(record: ThreadRecord, top: *mut Frame) {
    // SAFETY: a frame of a thread's shadow stack.
    let (sp, _) = unsafe { words(top) };
    note(record, sp.load(Ordering::Relaxed), top.addr() as u64);
}
