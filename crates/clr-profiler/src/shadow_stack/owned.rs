//! The shadow stack in ordinary memory.

use super::{Filters, Frame, Frames, Left};

/// The active calls of one thread. [The module](super) describes the rules, and when to call each
/// method.
///
/// The stack allocates as it grows, up to what the deepest recursion needs (16 bytes per call), and
/// keeps the memory.
#[derive(Clone, Debug, Default)]
pub struct ShadowStack {
    frames: Vec<Frame>,
    filters: Filters,
}

impl Frames for Vec<Frame> {
    #[inline]
    fn frames(&self) -> &[Frame] {
        self
    }

    #[inline]
    fn truncate(&mut self, len: usize) {
        Vec::truncate(self, len);
    }

    #[inline]
    fn push(&mut self, frame: Frame) -> bool {
        Vec::push(self, frame);
        true
    }
}

impl ShadowStack {
    /// An empty stack with room for 256 calls.
    #[must_use]
    pub fn new() -> Self {
        Self { frames: Vec::with_capacity(256), filters: Filters::new() }
    }

    /// A function was entered. Returns the number of dead frames that were dropped.
    #[inline]
    pub fn enter(&mut self, sp: usize, word: usize) -> usize {
        super::enter(&mut self.frames, sp, word)
    }

    /// A function is about to return.
    #[inline]
    pub fn leave(&mut self, sp: usize) -> Left {
        super::leave(&mut self.frames, sp)
    }

    /// A function is about to make a tail call.
    #[inline]
    pub fn tailcall(&mut self, sp: usize) -> Left {
        super::tailcall(&mut self.frames, sp)
    }

    /// A finally or fault block is about to run; call it in `exception_unwind_finally_enter`.
    pub fn finally_enter(&mut self, frame_pointer: usize) -> usize {
        super::block_enter(&mut self.frames, &mut self.filters, frame_pointer)
    }

    /// Call it in `exception_catcher_enter`, before a catch block runs.
    pub fn catcher_enter(&mut self, frame_pointer: usize) -> usize {
        super::block_enter(&mut self.frames, &mut self.filters, frame_pointer)
    }

    /// Call it in `exception_search_filter_enter`, before a filter runs. Returns the frame that was
    /// pushed for its function.
    pub fn filter_enter(&mut self, frame_pointer: usize) -> Option<Frame> {
        super::filter_enter(&mut self.frames, &mut self.filters, frame_pointer)
    }

    /// Call it in `exception_search_filter_leave`, after a filter has ended.
    pub fn filter_leave(&mut self) {
        super::filter_leave(&mut self.frames, &mut self.filters);
    }

    /// Pushes a frame that is not a function.
    pub fn push_pseudo(&mut self, word: usize) -> Frame {
        let sp = self.frames.last().map_or(usize::MAX, |top| top.sp - 1);
        super::push_pseudo(&mut self.frames, word).unwrap_or(Frame { sp, word })
    }

    /// Pops a frame that [`push_pseudo`](Self::push_pseudo) returned, with all frames above it.
    pub fn pop_pseudo(&mut self, pseudo: Frame) -> usize {
        super::pop_pseudo(&mut self.frames, pseudo)
    }

    /// The calls that an enter with this stack pointer, or a block with this frame pointer, would
    /// drop as dead.
    #[inline]
    #[must_use]
    pub fn dead(&self, bound: usize) -> &[Frame] {
        super::dead(&self.frames, bound)
    }

    /// The call that runs now.
    #[inline]
    #[must_use]
    pub fn top(&self) -> Option<Frame> {
        self.frames.last().copied()
    }

    /// Number of active calls of the thread.
    #[inline]
    #[must_use]
    pub fn depth(&self) -> usize {
        self.frames.len()
    }

    /// All calls, outermost first.
    #[inline]
    #[must_use]
    pub fn frames(&self) -> &[Frame] {
        &self.frames
    }

    /// A copy of all calls, outermost first.
    #[must_use]
    pub fn snapshot(&self) -> Vec<Frame> {
        self.frames.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(stack: &ShadowStack) -> Vec<usize> {
        stack.frames().iter().map(|frame| frame.word).collect()
    }

    fn stack(frames: &[(usize, usize)]) -> ShadowStack {
        let mut stack = ShadowStack::new();
        for (sp, word) in frames {
            stack.enter(*sp, *word);
        }
        stack
    }

    #[test]
    fn calls_and_returns_balance() {
        let mut stack = stack(&[(900, 1), (800, 2)]);
        assert_eq!(stack.leave(800), Left { frame: Some(Frame { sp: 800, word: 2 }), dropped: 0 });
        assert_eq!(stack.enter(800, 3), 0);
        assert_eq!(words(&stack), [1, 3]);
        assert_eq!(stack.top(), Some(Frame { sp: 800, word: 3 }));
    }

    #[test]
    fn frames_left_by_an_exception_are_found_at_the_next_enter_or_leave() {
        let mut stack = stack(&[(900, 1), (800, 2), (700, 3), (600, 4)]);
        assert_eq!(stack.dead(800).iter().map(|frame| frame.word).collect::<Vec<_>>(), [2, 3, 4]);
        assert_eq!(stack.enter(800, 5), 3);
        assert_eq!(words(&stack), [1, 5]);
        stack.enter(700, 6);
        stack.enter(600, 7);
        assert_eq!(stack.leave(900), Left { frame: Some(Frame { sp: 900, word: 1 }), dropped: 3 });
        assert_eq!(stack.depth(), 0);
    }

    #[test]
    fn a_leave_without_an_enter_ends_nothing() {
        let mut stack = stack(&[(900, 1)]);
        assert_eq!(stack.leave(800), Left { frame: None, dropped: 0 });
        assert_eq!(words(&stack), [1]);
    }

    #[test]
    fn a_tail_call_hands_its_place_to_the_callee_even_unannounced() {
        let mut stack = stack(&[(900, 1), (800, 2)]);
        stack.tailcall(800);
        stack.enter(800, 3);
        assert_eq!(words(&stack), [1, 3]);
        assert_eq!(stack.enter(800, 4), 1);
        assert_eq!(words(&stack), [1, 4]);
    }

    /// Values from a real run: the catcher's frame pointer equals the caller's stack pointer of its
    /// callee, and a function that the block calls enters below the dead frames.
    #[test]
    fn what_a_block_calls_stands_under_its_owner() {
        let mut stack = stack(&[(900, 1), (800, 2), (700, 3)]);
        assert_eq!(stack.finally_enter(700), 1);
        stack.enter(300, 4);
        assert_eq!(words(&stack), [1, 2, 4]);
        stack.leave(300);
        assert_eq!(stack.catcher_enter(800), 1);
        stack.enter(350, 5);
        assert_eq!(words(&stack), [1, 5]);
        stack.leave(350);
        stack.enter(800, 6);
        assert_eq!(words(&stack), [1, 6]);
    }

    #[test]
    fn what_a_filter_calls_stands_under_its_owner_while_the_thrower_lives() {
        let mut stack = stack(&[(900, 1), (800, 2), (700, 3)]);
        assert_eq!(stack.filter_enter(800), Some(Frame { sp: 699, word: 1 }));
        stack.enter(300, 4);
        assert_eq!(words(&stack), [1, 2, 3, 1, 4]);
        stack.leave(300);
        stack.filter_leave();
        assert_eq!(words(&stack), [1, 2, 3]);
    }

    #[test]
    fn a_filter_that_throws_leaves_nothing_behind() {
        let mut stack = stack(&[(900, 1), (800, 2)]);
        stack.filter_enter(800);
        stack.enter(300, 4);
        stack.enter(200, 5);
        // A callee of the filter has a filter too, which runs and refuses.
        stack.filter_enter(250);
        stack.enter(100, 6);
        stack.filter_leave();
        assert_eq!(words(&stack), [1, 2, 1, 4, 5]);
        stack.filter_leave();
        assert_eq!(words(&stack), [1, 2]);
    }

    #[test]
    fn a_filter_of_a_function_without_hooks_belongs_to_the_nearest_caller_that_has_them() {
        let mut stack = stack(&[(900, 1), (700, 2)]);
        assert_eq!(stack.filter_enter(780).map(|frame| frame.word), Some(1));
        let mut empty = ShadowStack::new();
        assert_eq!(empty.filter_enter(780), None);
        empty.enter(300, 1);
        empty.filter_leave();
        assert_eq!(empty.depth(), 0);
    }

    #[test]
    fn a_block_above_a_filter_ends_the_filter_even_if_nobody_said_so() {
        let mut stack = stack(&[(900, 1), (800, 2)]);
        stack.filter_enter(800);
        stack.catcher_enter(800);
        stack.enter(700, 3);
        stack.filter_leave();
        assert_eq!(words(&stack), [1, 3]);
    }

    #[test]
    fn filters_nested_deeper_than_can_be_remembered_lose_no_function() {
        let mut stack = stack(&[(100_000, 1)]);
        for n in 0..40 {
            stack.filter_enter(99_000 - n * 100);
            stack.enter(98_950 - n * 100, 2);
        }
        for _ in 0..40 {
            stack.filter_leave();
        }
        assert_eq!(words(&stack), [1]);
    }

    #[test]
    fn frames_that_are_not_functions_carry_what_is_called_meanwhile() {
        let mut stack = stack(&[(896, 1)]);
        let jit = stack.push_pseudo(7);
        assert_eq!((jit.sp, jit.is_function()), (895, false));
        assert!(stack.frames()[0].is_function());
        stack.enter(800, 2);
        let inner = stack.push_pseudo(8);
        assert_eq!(words(&stack), [1, 7, 2, 8]);
        assert_eq!(stack.pop_pseudo(inner), 1);
        assert_eq!(stack.pop_pseudo(jit), 2);
        assert_eq!(words(&stack), [1]);
        assert_eq!(stack.pop_pseudo(jit), 0);
        // A pseudo frame that was dropped with the frame below it drops nothing when it is popped
        // later.
        stack.push_pseudo(7);
        stack.enter(896, 3);
        stack.enter(800, 4);
        assert_eq!(stack.pop_pseudo(jit), 0);
        assert_eq!(words(&stack), [3, 4]);
    }
}
