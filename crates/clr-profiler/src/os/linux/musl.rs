//! What only musl does.

use std::ops::Range;

/// The range of a stack, with the part into which the stack may still grow. For a program's first
/// thread musl reports only the pages that the stack has so far
/// (`src/thread/pthread_getattr_np.c`).
pub(super) fn with_growth(stack: Range<usize>) -> Range<usize> {
    // SAFETY: gettid(2) and getpid(2) take nothing and can't fail; getrlimit(2) writes the
    // structure.
    let limit = unsafe {
        if libc::syscall(libc::SYS_gettid) != libc::c_long::from(libc::getpid()) {
            return stack;
        }
        let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        if libc::getrlimit(libc::RLIMIT_STACK, &mut limit) != 0 || limit.rlim_cur == libc::RLIM_INFINITY {
            return stack;
        }
        limit.rlim_cur as usize
    };
    stack.start.min(stack.end.saturating_sub(limit))..stack.end
}
