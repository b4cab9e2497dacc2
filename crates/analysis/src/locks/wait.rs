//! A wait for a lock.

/// The beginning of a wait.
#[derive(Debug, Clone, Copy)]
pub(super) struct WaitStart {
    /// Index of the thread in the process.
    pub(super) thread: u32,
    /// Time since the start of the run.
    pub(super) time_ns: u64,
    /// The runtime's number of the lock, which it uses again when the lock is gone.
    pub(super) lock: u64,
    /// The system's number of the thread that holds it.
    pub(super) holder: u64,
    /// Number of the object's type; `None` for a `System.Threading.Lock`.
    pub(super) class: Option<u32>,
    /// The thread's stack, where it was taken.
    pub(super) stack: Option<u32>,
}

/// A wait that is over, with what others did meanwhile.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wait {
    pub(super) start: WaitStart,
    /// Number of the lock among all that were seen.
    pub(super) lock: u64,
    /// When it ended; the end of the recording where it did not.
    pub(super) end_ns: u64,
    pub(super) is_pending: bool,
    /// Threads that waited for the lock when this wait began, this one among them.
    pub(super) waiters: u64,
    /// Stack with which the holder had asked for the lock, where it had waited itself.
    pub(super) holder_stack: Option<u32>,
}
