//! Chains of async methods that await each other, alongside a stack.

/// Reason for which a chain of awaiters goes no further.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(u32)]
#[non_exhaustive]
pub enum ChainEnd {
    /// Who awaits the last method could not be found out.
    #[default]
    Unknown = 0,
    /// Nothing awaited the last method at that moment. Its task may be awaited later.
    NotAwaitedYet = 1,
    /// Nothing can await the last method, which is `async void`.
    NotAwaited = 2,
    /// A thread blocks on the task of the last method.
    Thread = 3,
    /// There are more links than are followed.
    Longer = 4,
}

impl ChainEnd {
    /// Links of a chain that are followed.
    pub const MOST_LINKS: usize = 200;

    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 5] = [Self::Unknown, Self::NotAwaitedYet, Self::NotAwaited, Self::Thread, Self::Longer];

    /// The end with this number; one that a later clrscope has recorded is unknown.
    #[must_use]
    pub fn from_number(number: u32) -> Self {
        Self::ALL.into_iter().find(|end| *end as u32 == number).unwrap_or_default()
    }
}

/// The chain of awaiters of the innermost method on a stack that was resumed after an `await`.
#[derive(Debug, Clone, Copy)]
pub struct AwaiterChain<'a> {
    /// The async methods, each awaited by the one behind it: who awaits the method on the stack
    /// comes first.
    pub frames: &'a [super::StackFrame],
    /// What the last of them leads to.
    pub end: ChainEnd,
}
