//! Timers on the CPU clocks of single threads. Each signals the thread that its clock belongs to.
//!
//! The C library's `timer_create` is not used, because it starts a thread for timers on other
//! threads' clocks.

/// The notification of a timer (the kernel's `sigevent`, sixty-four bytes).
#[repr(C)]
struct Event {
    value: usize,
    signal: i32,
    notify: i32,
    thread: i32,
    _unused: [i32; 11],
}

/// A timer of the kernel. Dropping this value does not delete the timer; its creator must
/// [delete](Self::delete) it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Timer(i32);

impl Timer {
    /// The timer that has this number, which [`number`](Self::number) returned.
    pub(crate) fn with_number(number: i32) -> Self {
        Self(number)
    }

    /// The kernel's number of the timer.
    pub(crate) fn number(self) -> i32 {
        self.0
    }

    /// A timer on the CPU clock of a thread of this process. Its signals are sent to that thread
    /// with `value`.
    ///
    /// # Errors
    /// The system's error: the thread is gone, or the user has as many signals pending as allowed.
    pub(crate) fn of_thread(os_id: u32, signal: i32, value: usize) -> std::io::Result<Self> {
        let clock = (!(os_id as libc::clockid_t) << 3) | 6;
        let event = Event { value, signal, notify: libc::SIGEV_THREAD_ID, thread: os_id as i32, _unused: [0; 11] };
        let mut timer = 0_i32;
        // SAFETY: reads one event of the kernel's layout and writes one number.
        let failed = unsafe { libc::syscall(libc::SYS_timer_create, clock, &raw const event, &raw mut timer) } != 0;
        if failed { Err(std::io::Error::last_os_error()) } else { Ok(Self(timer)) }
    }

    /// Makes the timer expire once, after this much CPU time; 0 stops the timer. Async-signal-safe.
    pub(crate) fn set(self, ns: u64) {
        let zero = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let value = libc::timespec { tv_sec: (ns / 1_000_000_000) as i64, tv_nsec: (ns % 1_000_000_000) as i64 };
        let setting = libc::itimerspec { it_interval: zero, it_value: value };
        // SAFETY: reads one setting. A timer that is gone gives an error, which changes nothing.
        unsafe { libc::syscall(libc::SYS_timer_settime, self.0, 0, &raw const setting, 0_usize) };
    }

    /// Deletes the timer. One of its signals may still be pending.
    pub(crate) fn delete(self) {
        // SAFETY: A number of the kernel. A deleted timer gives an error.
        unsafe { libc::syscall(libc::SYS_timer_delete, self.0) };
    }
}
