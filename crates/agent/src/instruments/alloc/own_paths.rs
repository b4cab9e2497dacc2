//! What a thread remembers about its own stack from one allocation to the next.

use clr_profiler::internals::FrameChain;
use clrscope_agent_stacks::awaiters::{LastChain, ResumedFrame};

/// What a thread remembers about its own stack.
#[derive(Default)]
pub(super) struct OwnPaths {
    /// The frames of the stack at the thread's last allocation.
    pub(super) frames: FrameChain<StackPath>,
    /// The awaiters of the method that was resumed on the stack.
    pub(super) awaiters: Option<LastChain>,
}

/// The return addresses of a stack, in short form.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct StackPath {
    /// A hash of all return addresses.
    pub(super) mixed: u64,
    /// The innermost resumed method on the stack.
    pub(super) resumed: ResumedFrame,
}
