//! Enumerations through the profiler's callbacks: frames of a stack, references of an object,
//! objects.

use std::ffi::c_void;

use clr_profiler::{Events, HResult};
use clr_profiler_sys::function_pointers::{ObjectCallback, ObjectReferenceCallback, StackSnapshotCallback};
use windows_core::HRESULT;

use super::threads::current;
use super::world::{Shared, World};
use crate::ids;

const STACK_ABORTED: HResult = HResult(0x8013_1361_u32 as i32);
const INVALID: HRESULT = HRESULT(HResult::INVALID_ARGUMENT.0);

impl World {
    /// Function and stack pointer of each call on a thread's stack, innermost first. Thread 0 means
    /// the calling thread.
    fn stack(&self, thread: usize) -> Result<Vec<(usize, usize)>, HResult> {
        if !self.events.contains(Events::ENABLE_STACK_SNAPSHOT) {
            return Err(HResult::INCONSISTENT_WITH_FLAGS);
        }
        let here = current();
        let number = match thread {
            0 => here,
            id => Some(self.thread_of_id(ids::thread(id)).ok_or(HResult::INVALID_ARGUMENT)?.0),
        };
        let known = number.and_then(|number| self.threads.get(&number)).filter(|thread| thread.is_managed);
        let Some(known) = known else { return Ok(Vec::new()) };
        if number != here && !self.suspension.is_suspended {
            return Err(HResult::NOT_IMPLEMENTED);
        }
        if known.stack.is_empty() {
            return Err(HResult::FAIL);
        }
        Ok(known.stack.iter().rev().map(|call| (call.function.as_raw(), call.sp)).collect())
    }
}

/// Visits the frames of a stack. The address of a frame is its call's stack pointer, because there
/// is no compiled code.
pub(super) fn frames(
    world: &Shared,
    thread: usize,
    visit: Option<StackSnapshotCallback>,
    data: *mut c_void,
) -> HRESULT {
    let frames = match world.lock().stack(thread) {
        Ok(frames) => frames,
        Err(error) => return HRESULT(error.0),
    };
    let Some(visit) = visit else { return INVALID };
    for (function, sp) in frames {
        // SAFETY: the profiler's callback with its data; the world is not locked, so it may ask
        // back.
        if unsafe { visit(function, sp, 0, 0, std::ptr::null(), data) } != HRESULT(0) {
            return HRESULT(STACK_ABORTED.0);
        }
    }
    HRESULT(0)
}

/// Visits the places of an object's references.
pub(super) fn references(
    world: &Shared,
    object: usize,
    visit: Option<ObjectReferenceCallback>,
    data: *mut c_void,
) -> HRESULT {
    let offsets = world.lock().heap.get(object).map(|known| known.references.clone());
    let (Ok(offsets), Some(visit)) = (offsets, visit) else { return INVALID };
    for offset in offsets {
        let place = std::ptr::with_exposed_provenance_mut(object + offset);
        // SAFETY: the profiler's callback with its data; the place lies in the object, and the
        // world is not locked.
        if !unsafe { visit(object, place, data) }.as_bool() {
            break;
        }
    }
    HRESULT(0)
}

/// Visits all objects.
pub(super) fn objects(world: &Shared, visit: Option<ObjectCallback>, data: *mut c_void) -> HRESULT {
    let objects = world.lock().heap.addresses();
    let Some(visit) = visit else { return INVALID };
    for object in objects {
        // SAFETY: the profiler's callback with its data; the world is not locked.
        if !unsafe { visit(object, data) }.as_bool() {
            break;
        }
    }
    HRESULT(0)
}
