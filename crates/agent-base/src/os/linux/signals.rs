//! Signals of the calling thread.

/// A set of blocked signals.
pub struct Mask(libc::sigset_t);

/// Blocks all signals on this thread. Returns the signals that were blocked before.
pub fn block() -> Mask {
    // SAFETY: both sets are initialised by the calls.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        let mut before: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_SETMASK, &all, &mut before);
        Mask(before)
    }
}

/// Restores the mask of blocked signals.
pub fn restore(mask: &Mask) {
    // SAFETY: a mask that `block` filled in.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &mask.0, std::ptr::null_mut()) };
}

/// Runs `body` with all signals blocked on this thread, so that a file size limit causes an error
/// and not a deadly signal.
pub fn with_all_blocked<R>(body: impl FnOnce() -> R) -> R {
    let mask = block();
    let result = body();
    discard_file_size_signal();
    restore(&mask);
    result
}

/// Removes a pending SIGXFSZ that we caused, before signals are let through again.
fn discard_file_size_signal() {
    // SAFETY: a set with one signal and a wait that does not wait.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        libc::sigaddset(&mut set, libc::SIGXFSZ);
        let now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        libc::sigtimedwait(&set, std::ptr::null_mut(), &now);
    }
}
