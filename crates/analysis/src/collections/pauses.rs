//! Pauses of the program: from the moment when the runtime begins to suspend the threads until they
//! run again.

/// The runtime's numbers of suspension reasons that belong to collections, in callbacks.
const OF_COLLECTIONS: [u64; 2] = [1, 7];

/// A suspension that is under way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Suspension {
    pub(super) start_ns: u64,
    /// Time at which all threads were suspended.
    pub(super) stopped_ns: Option<u64>,
    reason: u64,
    /// The thread that suspends the others: its index in the process.
    pub(super) thread: u32,
    /// Stack of that thread, 0 if unknown.
    pub(super) stack: u32,
    /// The blocking collection that began in the suspension.
    pub(super) blocking: Option<usize>,
    /// The background collection that began in the suspension.
    pub(super) background: Option<usize>,
}

impl Suspension {
    pub(super) fn new(start_ns: u64, reason: u64, thread: u32, stack: u32) -> Self {
        Self { start_ns, stopped_ns: None, reason, thread, stack, blocking: None, background: None }
    }

    /// Whether the runtime suspends the threads for a collection.
    pub(super) fn is_of_collection(&self) -> bool {
        OF_COLLECTIONS.contains(&self.reason) || self.has_collected()
    }

    /// Whether a collection has begun meanwhile.
    pub(super) fn has_collected(&self) -> bool {
        self.blocking.or(self.background).is_some()
    }

    /// Time until all threads were suspended.
    pub(super) fn suspend_ns(&self) -> u64 {
        self.stopped_ns.map_or(0, |stopped| stopped.saturating_sub(self.start_ns))
    }
}
