//! Knowledge that a thread keeps about its own stack from one allocation to the next.

use clr_profiler::internals::FrameChain;
use clrscope_agent_stacks::awaiters::{LastChain, ResumedFrame};

/// A thread's knowledge of its own stack.
#[derive(Default)]
pub(super) struct OwnPaths {
    /// Its frames as they were when it last allocated.
    pub(super) frames: FrameChain<StackPath>,
    /// The awaiters of the method that was resumed on the stack.
    pub(super) awaiters: Option<LastChain>,
}

/// The return addresses of a stack.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct StackPath {
    /// One number for all return addresses.
    pub(super) mixed: u64,
    /// The innermost method on the stack that was resumed.
    pub(super) resumed: ResumedFrame,
}
