//! A wait for a lock.

/// The begin of a wait.
#[derive(Debug, Clone, Copy)]
pub(super) struct WaitStart {
    /// Index of the thread in the process.
    pub(super) thread: u32,
    /// Start of the wait, in nanoseconds since the start of the run.
    pub(super) time_ns: u64,
    /// The runtime's number of the lock, which is reused when the lock is gone.
    pub(super) lock: u64,
    /// Operating system id of the thread that holds the lock.
    pub(super) holder: u64,
    /// Number of the object's type; `None` for a `System.Threading.Lock`.
    pub(super) class: Option<u32>,
    /// The thread's stack; `None` if it was not captured.
    pub(super) stack: Option<u32>,
}

/// A completed wait, with the related waits of other threads.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wait {
    pub(super) start: WaitStart,
    /// Number of the lock among all locks that were seen.
    pub(super) lock: u64,
    /// End of the wait, or the end of the recording if the wait was pending then.
    pub(super) end_ns: u64,
    pub(super) is_pending: bool,
    /// Number of threads that waited for the lock when this wait began, including this one.
    pub(super) waiters: u64,
    /// Stack with which the holder had waited for the lock; `None` if it had not waited.
    pub(super) holder_stack: Option<u32>,
}
