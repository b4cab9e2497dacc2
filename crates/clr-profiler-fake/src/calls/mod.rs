//! Calling hooks as compiled code does, and checking that they keep the registers they must.

mod arch;

pub(super) use arch::call;

/// Hook, by its kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Hook {
    Enter,
    Leave,
    Tailcall,
}

/// Calls a hook with information; the handle of the call is none that the fake has answers for.
pub(super) fn call_with_info(entry: usize, id: usize) {
    let entry = std::ptr::with_exposed_provenance::<()>(entry);
    // SAFETY: a hook with information that the profiler registered, which has this signature.
    unsafe { std::mem::transmute::<*const (), unsafe extern "system" fn(usize, usize)>(entry)(id, 0) }
}
