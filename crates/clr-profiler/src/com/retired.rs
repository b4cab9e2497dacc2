//! Callback objects of profilers that were detached, or never taken.
//!
//! The runtime releases its references at `Shutdown` too, when hooks and callbacks still run. So
//! this module keeps one reference to each object, and gives it back when the runtime asks for the
//! next profiler and calls the object no more. A program that is attached to a thousand times would
//! keep a thousand objects otherwise.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use clr_profiler_sys::callback::ICorProfilerCallback11;

/// An object, and whether the runtime calls it no more.
struct CallbackObject {
    _reference: ICorProfilerCallback11,
    is_retired: Arc<AtomicBool>,
}

// SAFETY: the runtime calls and releases the object from any thread, so any thread may drop the
// reference.
unsafe impl Send for CallbackObject {}

static OBJECTS: Mutex<Vec<CallbackObject>> = Mutex::new(Vec::new());

/// Keeps a reference to an object until it is retired and the next one comes.
pub(super) fn keep(reference: ICorProfilerCallback11, is_retired: Arc<AtomicBool>) {
    let mut objects = OBJECTS.lock().unwrap_or_else(PoisonError::into_inner);
    objects.push(CallbackObject { _reference: reference, is_retired });
}

/// Gives back the references to objects that are retired. Their profilers are dropped with the last
/// one.
pub(super) fn release() {
    let is_retired = |kept: &mut CallbackObject| kept.is_retired.load(Ordering::Acquire);
    // Dropped without the lock: a profiler's drop is anybody's code.
    let retired: Vec<CallbackObject> = {
        let mut objects = OBJECTS.lock().unwrap_or_else(PoisonError::into_inner);
        objects.extract_if(.., is_retired).collect()
    };
    drop(retired);
}
