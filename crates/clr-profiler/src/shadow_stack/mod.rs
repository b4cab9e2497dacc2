//! A stack of the calls a thread is in, kept right by the caller's stack pointer.
//!
//! Enter and leave hooks do not balance: an exception ends calls without a leave, a tail call puts
//! one function in the place of another, a method that was replaced by optimised code while it ran
//! leaves without having entered. But each activation has a caller's stack pointer, [`Frame::sp`],
//! that no other live activation of the thread has, and callers have higher ones than callees. So a
//! frame with a lower one than what is entered or left now is dead, whatever happened to it
//! ([`enter`], [`leave`]).
//!
//! ```
//! use clr_profiler::shadow_stack::ShadowStack;
//!
//! // Stack pointers fall from caller to callee. `1` calls `2`, which calls `3`, which throws; `1` catches and calls `4`.
//! let mut stack = ShadowStack::new();
//! stack.enter(0x900, 1);
//! stack.enter(0x800, 2);
//! stack.enter(0x700, 3);
//! // Nothing reported the end of `2` and `3`, but `4` could not be at `0x800` otherwise.
//! assert_eq!(stack.enter(0x800, 4), 2);
//! assert_eq!(stack.snapshot().iter().map(|frame| frame.word).collect::<Vec<_>>(), [1, 4]);
//! ```
//!
//! [`CallStacks`](crate::CallStacks) is a shadow stack that the framework keeps.
//!
//! # Exceptions
//!
//! The calls keep the *set* of live frames right, not always who called whom. A finally or catch
//! block runs while the frames that the exception has left still lie below on the machine's stack,
//! together with the runtime's own code, so what the block calls enters with a lower stack pointer
//! than the thrower's, and would seem to be called by it. Hence the exception callbacks: the
//! runtime says, on the callbacks for filters, finally and catch blocks, which activation the block
//! belongs to ([`ProfilerInfo::exception_clause`](crate::ProfilerInfo::exception_clause)). Its
//! `frame_pointer` lies below that activation's caller's stack pointer, and at or above those of
//! everything it has called. So:
//!
//! | Callback | Call | What it does |
//! |---|---|---|
//! | `exception_unwind_finally_enter`, `exception_catcher_enter` | [`block_enter`] | everything above the block's owner is dead |
//! | `exception_search_filter_enter` | [`filter_enter`] | first pass, the thrower's frames are alive: pushes a second frame for the owner on top of them |
//! | `exception_search_filter_leave` | [`filter_leave`] | takes it away, with what a filter that threw left behind |
//!
//! The unwind callbacks (`exception_unwind_function_enter`, `..._leave`) are not needed, and can't
//! be trusted: .NET 8, 9 and 10 differ in how often they say them for a method whose block is
//! running, and with recursion the method's name does not tell which activation is meant. What the
//! frames left behind were charged for between throw and the next block, enter or leave is the
//! exception's own cost.
//!
//! On .NET 9 and later the runtime's exception handling is itself managed code that enters and does
//! not leave. It sits on top of the thrower and is swept away with it; a mapper that skips
//! `System.Runtime.EH` and what it calls has a tidier tree.
//!
//! # Frames that are not functions
//!
//! For time that belongs to the runtime (compilation, suspension) or to a filter, [`push_pseudo`]
//! puts a frame on top whose stack pointer is one less than the top's: above that of any later
//! callee, so that callees stand under it, and below the top's, so that it goes when the top goes.
//!
//! # Foreign memory
//!
//! The rules are functions over the trait [`Frames`], so that hooks in assembly can keep frames in
//! memory of their own, and [`ShadowStack`] is the ready-made implementation. They allocate nothing
//! themselves and take time in the number of frames they drop.

mod owned;

pub use owned::ShadowStack;

/// One activation. The layout is part of the contract with hooks in assembly.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
#[expect(clippy::exhaustive_structs, reason = "a layout that assembly may write")]
pub struct Frame {
    /// The caller's stack pointer; for frames that are not functions, one less than that of the
    /// frame below.
    pub sp: usize,
    /// Value of the owner: a client identifier, a tree node.
    pub word: usize,
}

impl Frame {
    /// Whether this is a function's: their stack pointers are multiples of eight, those of
    /// [`push_pseudo`] and [`filter_enter`] stand right below one.
    #[must_use]
    pub const fn is_function(self) -> bool {
        self.sp.is_multiple_of(8)
    }
}

/// A thread's frames, outermost first, wherever they are kept.
pub trait Frames {
    /// All of them.
    fn frames(&self) -> &[Frame];
    /// Keeps the first `len`, which are at most as many as there are.
    fn truncate(&mut self, len: usize);
    /// Adds one on top. `false` where there is no room: the frame is then not on the stack.
    fn push(&mut self, frame: Frame) -> bool;
}

/// Result of a leave or tail call: whether and how its frame was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Left {
    /// The frame that ended, `None` where its enter was never seen.
    pub frame: Option<Frame>,
    /// Number of frames above it that turned out to be dead.
    pub dropped: usize,
}

/// A function was entered: drops what is dead and pushes it. Gives the number of frames dropped.
///
/// A frame with the same stack pointer is dead too: a tail call has replaced it.
#[inline]
pub fn enter(stack: &mut impl Frames, sp: usize, word: usize) -> usize {
    let dropped = drop_at_or_below(stack, sp);
    stack.push(Frame { sp, word });
    dropped
}

/// A function is about to return: drops what is dead and takes it off.
#[inline]
pub fn leave(stack: &mut impl Frames, sp: usize) -> Left {
    let dropped = drop_at_or_below(stack, sp.saturating_sub(1));
    let top = stack.frames().last().copied();
    let frame = top.filter(|frame| frame.sp == sp);
    if frame.is_some() {
        stack.truncate(stack.frames().len() - 1);
    }
    Left { frame, dropped }
}

/// A function is about to be replaced by the one it calls last: it ends here, and that one will be
/// called by its caller.
#[inline]
pub fn tailcall(stack: &mut impl Frames, sp: usize) -> Left {
    leave(stack, sp)
}

/// Depth to which filters may be nested in each other (a filter calls something that throws and has
/// a filter, ...).
const FILTERS: usize = 16;

/// Beginnings of the filters that are running: a thread's state in addition to its frames.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Filters {
    running: usize,
    /// Numbers of frames when each began.
    below: [u32; FILTERS],
}

impl Filters {
    /// None is running.
    #[must_use]
    pub const fn new() -> Self {
        Self { running: 0, below: [0; FILTERS] }
    }

    /// A filter whose frame is gone is over, even if no callback reported its end.
    fn forget_above(&mut self, len: usize) {
        while let Some(below) = self.running.checked_sub(1).and_then(|last| self.below.get(last)) {
            if len > *below as usize {
                break;
            }
            self.running -= 1;
        }
    }
}

/// A finally, fault or catch block is about to run: drops all frames above the activation it
/// belongs to, which is then on top, and gives their number.
pub fn block_enter(stack: &mut impl Frames, filters: &mut Filters, frame_pointer: usize) -> usize {
    let dropped = drop_at_or_below(stack, frame_pointer);
    filters.forget_above(stack.frames().len());
    dropped
}

/// A filter is about to run. The frames of the thrower are alive, so a second frame of the filter's
/// owner, with the owner's word, is pushed on top of them, and returned. `None` where the owner is
/// not on the stack (a function without hooks and without callers that have them).
pub fn filter_enter(stack: &mut impl Frames, filters: &mut Filters, frame_pointer: usize) -> Option<Frame> {
    let frames = stack.frames();
    let len = frames.len() as u32;
    let owner = frames.iter().rev().find(|frame| frame.sp > frame_pointer).copied();
    if let Some(slot) = filters.below.get_mut(filters.running) {
        *slot = len;
    }
    filters.running += 1;
    push_pseudo(stack, owner?.word)
}

/// A filter has answered, or threw: takes off its frame and whatever is above.
pub fn filter_leave(stack: &mut impl Frames, filters: &mut Filters) {
    let Some(running) = filters.running.checked_sub(1) else { return };
    filters.running = running;
    if let Some(below) = filters.below.get(running) {
        let len = stack.frames().len();
        stack.truncate(len.min(*below as usize));
    }
}

/// Puts a frame on top that is not a function and gives it. What is called meanwhile stands under
/// it. It ends by [`pop_pseudo`], or with the frame below it. `None` where there is no room.
pub fn push_pseudo(stack: &mut impl Frames, word: usize) -> Option<Frame> {
    let sp = stack.frames().last().map_or(usize::MAX, |top| top.sp - 1);
    let frame = Frame { sp, word };
    stack.push(frame).then_some(frame)
}

/// Takes off a frame that [`push_pseudo`] gave, with everything above, and gives their number; 0
/// where it has gone already.
pub fn pop_pseudo(stack: &mut impl Frames, pseudo: Frame) -> usize {
    let is_there = stack.frames().iter().rev().take_while(|frame| frame.sp <= pseudo.sp).any(|frame| *frame == pseudo);
    if is_there { drop_at_or_below(stack, pseudo.sp) } else { 0 }
}

/// The topmost frames whose stack pointer is at most `bound`: those that [`enter`] with this stack
/// pointer, or [`block_enter`] with this frame pointer, will drop. For owners who want to know
/// which calls end.
#[inline]
pub fn dead(stack: &impl Frames, bound: usize) -> &[Frame] {
    let frames = stack.frames();
    let live = frames.iter().rposition(|frame| frame.sp > bound).map_or(0, |top| top + 1);
    &frames[live..]
}

/// Drops the topmost frames whose stack pointer is at most `bound`.
#[inline]
fn drop_at_or_below(stack: &mut impl Frames, bound: usize) -> usize {
    let dropped = dead(stack, bound).len();
    if dropped > 0 {
        stack.truncate(stack.frames().len() - dropped);
    }
    dropped
}
