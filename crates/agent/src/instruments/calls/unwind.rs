//! Exceptions and the shadow stack.
//!
//! The caller's stack pointer alone keeps counts right, but while a finally, fault, catch or filter
//! block runs, the frames it unwinds still lie on the stack below it. So the exception callbacks say
//! which frames have ended. They name functions, not activations; the topmost activation of that
//! function is the one meant.

use std::sync::atomic::Ordering;

use clrscope_recording::layout::thread;
use clrscope_recording::writer::ThreadRecord;

use super::frames::{Frame, Stack};
use super::shared::Shared;
use super::slow::charge;

/// Unwinds nest when a finally block throws; deeper ones than this are not tracked one by one.
const NESTED: u32 = 16;

/// The unwind reaches a function: remembered, because its end does not say which it was.
pub(super) fn function_enter(_shared: &Shared, record: ThreadRecord, function: Option<u32>) {
    let depth = record.u32(thread::UNWIND_DEPTH).load(Ordering::Relaxed);
    if depth < NESTED {
        record.u32(thread::UNWINDING + depth as usize * 4).store(function.unwrap_or(0), Ordering::Relaxed);
    }
    record.u32(thread::UNWIND_DEPTH).store(depth + 1, Ordering::Relaxed);
}

/// A frame is gone, with everything above it.
pub(super) fn function_leave(shared: &Shared, record: ThreadRecord) {
    let depth = record.u32(thread::UNWIND_DEPTH).load(Ordering::Relaxed);
    let Some(depth) = depth.checked_sub(1) else { return };
    record.u32(thread::UNWIND_DEPTH).store(depth, Ordering::Relaxed);
    if depth < NESTED {
        let function = record.u32(thread::UNWINDING + depth as usize * 4).load(Ordering::Relaxed);
        let mut stack = Stack::of(record);
        charge(shared, record, &stack);
        if let Some(frame) = topmost(shared, &stack, function) {
            stack.end_from(frame);
        }
    }
}

/// A finally or fault block runs: it stands on its own function's frame.
pub(super) fn finally_enter(shared: &Shared, record: ThreadRecord, function: Option<u32>) {
    stand_on(shared, record, function);
}

/// The block has ended.
pub(super) fn finally_leave(_shared: &Shared, _record: ThreadRecord) {}

/// A catch block runs: everything above its function is gone, and the unwind is over.
pub(super) fn catcher_enter(shared: &Shared, record: ThreadRecord, function: Option<u32>) {
    stand_on(shared, record, function);
}

/// The block has ended.
pub(super) fn catcher_leave(_shared: &Shared, _record: ThreadRecord) {}

/// A filter runs while everything above its function is still alive: a second frame on the same
/// edge, just below the frame on top.
pub(super) fn filter_enter(shared: &Shared, record: ThreadRecord, function: Option<u32>) {
    let mut stack = Stack::of(record);
    charge(shared, record, &stack);
    let owner = function.and_then(|function| topmost(shared, &stack, function));
    // SAFETY: `topmost` gives an address within the thread's frames.
    let edge = owner.map_or(stack.top().edge(), |frame| unsafe { frame.read() }.edge());
    if !stack.is_full() {
        stack.push(Frame { sp: stack.top().sp - 1, edge });
    }
}

/// The filter has answered: its frame is the topmost that is not a function's.
pub(super) fn filter_leave(shared: &Shared, record: ThreadRecord) {
    let mut stack = Stack::of(record);
    charge(shared, record, &stack);
    // Frames of functions have aligned stack pointers.
    if let Some(frame) = stack.find(|frame| !frame.sp.is_multiple_of(8)) {
        stack.end_from(frame);
    }
}

fn stand_on(shared: &Shared, record: ThreadRecord, function: Option<u32>) {
    let mut stack = Stack::of(record);
    charge(shared, record, &stack);
    if let Some(frame) = function.and_then(|function| topmost(shared, &stack, function)) {
        stack.end_from(frame.wrapping_add(1));
    }
}

fn topmost(shared: &Shared, stack: &Stack, function: u32) -> Option<*mut Frame> {
    if function == 0 {
        return None;
    }
    stack.find(|frame| shared.key_of(frame.edge) == function)
}
