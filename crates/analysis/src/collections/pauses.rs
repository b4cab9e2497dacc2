//! Pauses of the program: from the moment when the runtime begins to stop the threads until they
//! run again.

/// The runtime's numbers of reasons to stop the threads that have to do with collections, in
/// callbacks.
const OF_COLLECTIONS: [u64; 2] = [1, 7];

/// A suspension that is under way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Suspension {
    pub(super) start_ns: u64,
    /// Time at which all threads stood still.
    pub(super) stopped_ns: Option<u64>,
    reason: u64,
    /// The thread that stops the others: its index in the process.
    pub(super) thread: u32,
    /// Stack of that thread, 0 where it is not known.
    pub(super) stack: u32,
    /// The blocking collection that began in it.
    pub(super) blocking: Option<usize>,
    /// The one in the background that did.
    pub(super) background: Option<usize>,
}

impl Suspension {
    pub(super) fn new(start_ns: u64, reason: u64, thread: u32, stack: u32) -> Self {
        Self { start_ns, stopped_ns: None, reason, thread, stack, blocking: None, background: None }
    }

    /// Whether the runtime stops the threads for a collection.
    pub(super) fn is_of_collection(&self) -> bool {
        OF_COLLECTIONS.contains(&self.reason) || self.blocking.or(self.background).is_some()
    }

    /// Time until all threads stood still.
    pub(super) fn suspend_ns(&self) -> u64 {
        self.stopped_ns.map_or(0, |stopped| stopped.saturating_sub(self.start_ns))
    }
}
