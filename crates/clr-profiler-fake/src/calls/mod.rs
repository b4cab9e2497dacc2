//! Calls hooks as compiled code does, and checks that they preserve the required registers.

mod arch;

pub(super) use arch::call;

/// Kind of a hook.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Hook {
    Enter,
    Leave,
    Tailcall,
}

/// Calls a hook with information. The fake runtime answers no questions about the handle that it
/// passes.
pub(super) fn call_with_info(entry: usize, id: usize) {
    let entry = std::ptr::with_exposed_provenance::<()>(entry);
    // SAFETY: a hook with information that the profiler registered, which has this signature.
    unsafe { std::mem::transmute::<*const (), unsafe extern "system" fn(usize, usize)>(entry)(id, 0) }
}
