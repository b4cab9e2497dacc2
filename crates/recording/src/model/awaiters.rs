//! Chains of async methods in which each method awaits the one before; shown with a stack.

/// Reason why a chain of awaiters ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(u32)]
#[non_exhaustive]
pub enum ChainEnd {
    /// The awaiter of the last method could not be determined.
    #[default]
    Unknown = 0,
    /// Nothing awaited the last method at that moment. Its task may be awaited later.
    NotAwaitedYet = 1,
    /// Nothing can await the last method, which is `async void`.
    NotAwaited = 2,
    /// A thread blocks on the task of the last method.
    Thread = 3,
    /// The chain has more links than are followed.
    Longer = 4,
}

impl ChainEnd {
    /// Maximum number of links that are followed.
    pub const MOST_LINKS: usize = 200;

    /// All reasons, in the order of their numbers.
    pub const ALL: [Self; 5] = [Self::Unknown, Self::NotAwaitedYet, Self::NotAwaited, Self::Thread, Self::Longer];

    /// The reason with this number; numbers from later versions of clrscope give `Unknown`.
    #[must_use]
    pub fn from_number(number: u32) -> Self {
        Self::ALL.into_iter().find(|end| *end as u32 == number).unwrap_or_default()
    }
}

/// The awaiters of the innermost method of a stack that was resumed after an `await`: its awaiter,
/// that method's awaiter, and so on.
#[derive(Debug, Clone, Copy)]
pub struct AwaiterChain<'a> {
    /// The async methods of the chain, each awaited by the next. The first one awaits the method on
    /// the stack.
    pub frames: &'a [super::StackFrame],
    /// Reason why the chain ends after the last of these methods.
    pub end: ChainEnd,
}
