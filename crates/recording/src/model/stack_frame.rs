//! A frame of a call stack, as recorded.

use super::Tier;

/// A frame of a call stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum StackFrame {
    /// A method.
    Method {
        /// Index into [`Process::functions`](super::Process::functions).
        function: u32,
        /// Offset in the function's IL; `None` if the runtime could not tell.
        il_offset: Option<u32>,
        /// Uncertainty of the offset in bytes of IL: 0 if the offset is exact. Otherwise any
        /// statement that begins within this many bytes from the offset may be the current one;
        /// [`TO_THE_END`](crate::layout::stack::TO_THE_END) means all the rest of the method.
        il_span: u16,
        /// Tier of the compiled code in which the frame runs.
        tier: Tier,
    },
    /// A location in native code.
    Native {
        /// Index into [`Process::modules`](super::Process::modules): the library.
        module: u32,
        /// Byte offset from the library's load address.
        offset: u32,
    },
    /// A frame that is lost, or of a kind from a later version of clrscope.
    Unknown,
}

impl StackFrame {
    /// A method whose tier is unknown.
    #[must_use]
    pub const fn method(function: u32, il_offset: Option<u32>) -> Self {
        Self::Method { function, il_offset, il_span: 0, tier: Tier::Unknown }
    }
}
