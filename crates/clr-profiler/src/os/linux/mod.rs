//! Linux, with the GNU C library or musl.

#[cfg(target_env = "gnu")]
mod gnu;
#[cfg(target_env = "musl")]
mod musl;

use std::ffi::c_void;
use std::ops::Range;

#[cfg(target_env = "gnu")]
use gnu::with_growth;
#[cfg(target_env = "musl")]
use musl::with_growth;

/// The address range of the calling thread's stack. For the first thread of the program this
/// includes the range for the stack's growth. `None` if the C library does not know the range. The
/// C library may allocate.
pub(crate) fn stack_bounds() -> Option<Range<usize>> {
    // SAFETY: an attribute object that is initialised by the call that succeeds and destroyed after
    // use.
    let (start, bytes) = unsafe {
        let mut attributes: libc::pthread_attr_t = std::mem::zeroed();
        if libc::pthread_getattr_np(libc::pthread_self(), &mut attributes) != 0 {
            return None;
        }
        let (mut start, mut bytes) = (std::ptr::null_mut::<c_void>(), 0);
        let known = libc::pthread_attr_getstack(&attributes, &mut start, &mut bytes) == 0;
        libc::pthread_attr_destroy(&mut attributes);
        (known && bytes > 0).then_some((start.addr(), bytes))?
    };
    Some(with_growth(start..start + bytes))
}

/// Whether the four bytes at `address` are mapped.
pub(crate) fn is_mapped(address: usize) -> bool {
    const PAGE: usize = 4096;
    let mut resident = [0; 2];
    let page = address & !(PAGE - 1);
    let length = address % PAGE + 4;
    // SAFETY: queries at most two pages, which need not be mapped: the call then returns an error.
    unsafe { libc::mincore(std::ptr::without_provenance_mut(page), length, resident.as_mut_ptr()) == 0 }
}

/// Runs `body` with all signals blocked on this thread. Threads that `body` starts keep all signals
/// blocked.
pub(crate) fn without_signals<R>(body: impl FnOnce() -> R) -> R {
    // SAFETY: both sets are initialised by the calls.
    let before = unsafe {
        let (mut all, mut before): (libc::sigset_t, libc::sigset_t) = (std::mem::zeroed(), std::mem::zeroed());
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        before
    };
    let result = body();
    // SAFETY: the previous signal mask.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut()) };
    result
}
