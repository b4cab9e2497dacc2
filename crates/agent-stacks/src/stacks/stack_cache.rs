//! The recent stacks of each thread: most programs throw and allocate at the same few places.
//!
//! A walk depends only on the words of the stack that it reads. If these words are the same as
//! before, it leads to the same stack, and nothing has to be looked up.

use clr_profiler::internals::{CurrentStack, NativeFrame, StackWords};
use clrscope_agent_base::thread_own::{ThreadOwn, ThreadOwnPool};

use super::unwind_rules::NotedWords;
use crate::awaiters::Resumed;

/// Stacks that are remembered per thread. A power of two.
const STACKS: usize = 8;

/// The last stacks of each thread.
pub(super) struct StackCache(ThreadOwn<[CachedWalk; STACKS]>);

static OWN: ThreadOwnPool<[CachedWalk; STACKS]> = ThreadOwnPool::nothing();

/// Drops the stacks when the recording is over.
pub fn let_go() {
    OWN.give_back_all();
}

/// A stored stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct StoredStack {
    /// Number of the stack, if no method was resumed on it.
    pub(super) number: u32,
    /// The method that was resumed on the stack, with the stack's hash: the method's awaiters may
    /// differ each time.
    pub(super) resumed: Option<(Resumed, u64)>,
}

#[derive(Default)]
struct CachedWalk {
    /// The words that the walk read; empty if it led to no stored stack.
    words: StackWords,
    stack: StoredStack,
    /// Number of unloads before the walk.
    unloads: u64,
}

impl StackCache {
    /// Creates the cache. Entries with other counts of unloads are from an earlier recording and
    /// are ignored.
    ///
    /// # Errors
    /// The process has no thread key left.
    pub(super) fn new() -> std::io::Result<Self> {
        OWN.borrow_values().map(Self)
    }

    /// The calling thread's stack, either remembered or found by `walk`. `walk` must read the stack
    /// only through its argument, and ask the runtime nothing. `unloads` counts the events that
    /// invalidate walks.
    #[inline]
    pub(super) fn stored(
        &self,
        stack: CurrentStack,
        frame: NativeFrame,
        unloads: u64,
        walk: impl FnOnce(NotedWords<'_>) -> Option<StoredStack>,
    ) -> Option<StoredStack> {
        let found = self.0.with(|stacks| {
            let last = &mut stacks[slot_index(frame)];
            if last.unloads == unloads && last.words.are_in(stack) {
                return Some(last.stack);
            }
            last.words.clear();
            let found = walk(NotedWords(stack, &mut last.words));
            match found {
                Some(stack) => (last.stack, last.unloads) = (stack, unloads),
                None => last.words.clear(),
            }
            found
        });
        found.flatten()
    }
}

/// Returns the slot of a frame. Throws at the same place and depth have their frames at the same
/// address.
fn slot_index(frame: NativeFrame) -> usize {
    let mixed = (frame.address() >> 4).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed >> (usize::BITS - STACKS.trailing_zeros())
}

#[cfg(test)]
mod tests {
    use super::super::unwind_rules::Words;
    use super::*;

    #[test]
    fn the_same_words_are_the_same_stack_until_something_is_unloaded() {
        let cache = StackCache::new().expect("a key");
        let mut words = [11_usize, 22];
        let at = std::hint::black_box(&mut words).as_mut_ptr().expose_provenance();
        let ask = |unloads, answer: Option<u32>| {
            let (mut walked, stack) = (false, CurrentStack::here().expect("bounds are known"));
            let found = cache.stored(stack, NativeFrame::new(at), unloads, |mut words| {
                walked = true;
                words.word(at + 8);
                answer.map(|number| StoredStack { number, resumed: None })
            });
            (found.map(|stack| stack.number), walked)
        };
        assert_eq!(ask(0, None), (None, true));
        assert_eq!(ask(0, Some(7)), (Some(7), true), "a walk that led nowhere is not remembered");
        assert_eq!(ask(0, Some(8)), (Some(7), false));
        assert_eq!(ask(1, Some(9)), (Some(9), true), "code is gone");
        std::hint::black_box(&mut words)[1] = 23;
        assert_eq!(ask(1, Some(10)), (Some(10), true), "another caller");
        assert_eq!(ask(1, None), (Some(10), false));
        std::hint::black_box(&words);
    }
}
