//! A frame of a call stack, as it is recorded.

use super::Tier;

/// A frame of a call stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum StackFrame {
    /// A method.
    Method {
        /// Index into [`Process::functions`](super::Process::functions).
        function: u32,
        /// Offset in the function's IL, if the runtime could say.
        il_offset: Option<u32>,
        /// Bytes of IL from the offset on that are in question: 0 where it is exact, otherwise any
        /// statement that begins among so many bytes may be the one;
        /// [`TO_THE_END`](crate::layout::stack::TO_THE_END) for all that are left.
        il_span: u16,
        /// Tier: which of the method's compilations the frame is of.
        tier: Tier,
    },
    /// A place in native code.
    Native {
        /// Index into [`Process::modules`](super::Process::modules): the library.
        module: u32,
        /// Bytes from where the library is loaded.
        offset: u32,
    },
    /// A frame that is lost, or that a later clrscope has recorded.
    Unknown,
}

impl StackFrame {
    /// A method, where it is unknown which of its compilations it is.
    #[must_use]
    pub const fn method(function: u32, il_offset: Option<u32>) -> Self {
        Self::Method { function, il_offset, il_span: 0, tier: Tier::Unknown }
    }
}
