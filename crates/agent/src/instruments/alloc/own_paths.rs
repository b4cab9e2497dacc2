//! What a thread knows of its own stack from one allocation to the next.

use clr_profiler::internals::FrameChain;
use clrscope_agent_stacks::awaiters::{LastChain, ResumedFrame};

/// A thread's knowledge of its own stack.
#[derive(Default)]
pub(super) struct OwnPaths {
    /// Its frames as they were when it last allocated.
    pub(super) frames: FrameChain<StackPath>,
    /// Who awaits the method that was resumed there.
    pub(super) awaiters: Option<LastChain>,
}

/// The return addresses of a stack.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct StackPath {
    /// One number for all of them.
    pub(super) mixed: u64,
    /// The innermost method there that was resumed.
    pub(super) resumed: ResumedFrame,
}
