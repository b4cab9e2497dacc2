//! Callback objects of profilers that were detached, or that the runtime never accepted.
//!
//! The runtime releases its references at `Shutdown` too, while hooks and callbacks still run. So
//! this module keeps one reference to each object. It releases this reference when the runtime asks
//! for the next profiler and no longer calls the object. Otherwise a thousand attaches to a program
//! would leave a thousand objects.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use clr_profiler_sys::callback::ICorProfilerCallback11;

/// An object, and whether the runtime has made its last call to the object.
struct CallbackObject {
    _reference: ICorProfilerCallback11,
    is_retired: Arc<AtomicBool>,
}

// SAFETY: the runtime calls and releases the object from any thread, so any thread may drop the
// reference.
unsafe impl Send for CallbackObject {}

static OBJECTS: Mutex<Vec<CallbackObject>> = Mutex::new(Vec::new());

/// Keeps a reference to an object until the object is retired and the runtime asks for the next
/// one.
pub(super) fn keep(reference: ICorProfilerCallback11, is_retired: Arc<AtomicBool>) {
    let mut objects = OBJECTS.lock().unwrap_or_else(PoisonError::into_inner);
    objects.push(CallbackObject { _reference: reference, is_retired });
}

/// Releases the references to retired objects. The last reference to an object also drops its
/// profiler.
pub(super) fn release() {
    let is_retired = |kept: &mut CallbackObject| kept.is_retired.load(Ordering::Acquire);
    // Dropped without the lock, because a profiler's `Drop` may run any code.
    let retired: Vec<CallbackObject> = {
        let mut objects = OBJECTS.lock().unwrap_or_else(PoisonError::into_inner);
        objects.extract_if(.., is_retired).collect()
    };
    drop(retired);
}
