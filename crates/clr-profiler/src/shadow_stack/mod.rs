//! A stack of the active calls of a thread, kept correct with the caller's stack pointer.
//!
//! Enter and leave hooks do not balance: an exception ends calls without a leave, a tail call
//! replaces one function by another, and a method that was replaced by optimised code while it ran
//! leaves without an enter. But each activation has a caller's stack pointer, [`Frame::sp`], that
//! no other live activation of the thread has, and callers have higher values than callees. So at
//! an enter or leave, each frame with a lower caller's stack pointer than the current function is
//! dead ([`enter`], [`leave`]).
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
//! Enter and leave alone keep the *set* of live frames correct, but not always the caller of each
//! frame. While a finally or catch block runs, the frames that the exception has left are still
//! below it on the machine stack, together with code of the runtime. So a function that the block
//! calls has a lower stack pointer than the throwing function, and would seem to be called by it.
//! This is why the exception callbacks are needed. In the callbacks for filters, finally and catch
//! blocks the runtime tells which activation owns the block
//! ([`ProfilerInfo::exception_clause`](crate::ProfilerInfo::exception_clause)). The `frame_pointer`
//! of the clause is below the caller's stack pointer of that activation, and at or above the
//! caller's stack pointers of all its callees. So:
//!
//! | Callback | Call | What it does |
//! |---|---|---|
//! | `exception_unwind_finally_enter`, `exception_catcher_enter` | [`block_enter`] | drops all frames above the block's owner |
//! | `exception_search_filter_enter` | [`filter_enter`] | in the first pass the frames of the throwing function are alive: pushes a second frame for the owner on top of them |
//! | `exception_search_filter_leave` | [`filter_leave`] | pops this frame, with frames that a throwing filter left behind |
//!
//! The unwind callbacks (`exception_unwind_function_enter`, `..._leave`) are not needed and not
//! reliable: .NET 8, 9 and 10 call them a different number of times for a method whose block is
//! running, and in a recursion the function does not identify the activation. The time charged to
//! abandoned frames between the throw and the next block, enter or leave is the cost of the
//! exception itself.
//!
//! On .NET 9 and later the runtime's exception handling is managed code that enters and does not
//! leave. Its frames are on top of the throwing function and are dropped together with it. If a
//! mapper skips `System.Runtime.EH` and its callees, the call tree does not contain these frames.
//!
//! # Frames that are not functions
//!
//! For time that belongs to the runtime (compilation, suspension) or to a filter, [`push_pseudo`]
//! pushes a frame whose stack pointer is one less than that of the top frame. The value is higher
//! than that of any later callee, so callees become children of the new frame. It is lower than
//! that of the top frame, so the new frame is dropped together with the top frame.
//!
//! # Foreign memory
//!
//! The rules are functions over the trait [`Frames`], so that hooks in assembly can keep frames in
//! their own memory. [`ShadowStack`] is the ready-made implementation. The functions allocate
//! nothing themselves, and their time is proportional to the number of frames that they drop.

mod owned;

pub use owned::ShadowStack;

/// One activation. The layout is part of the contract with hooks in assembly.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
#[expect(clippy::exhaustive_structs, reason = "a layout that assembly may write")]
pub struct Frame {
    /// The caller's stack pointer; for frames that are not functions, one less than in the frame
    /// below.
    pub sp: usize,
    /// A value of the owner, such as a client identifier or a tree node.
    pub word: usize,
}

impl Frame {
    /// Whether this is the frame of a function. The stack pointers of functions are multiples of
    /// eight; those of [`push_pseudo`] and [`filter_enter`] are one less than such a multiple.
    #[must_use]
    pub const fn is_function(self) -> bool {
        self.sp.is_multiple_of(8)
    }
}

/// The frames of a thread, outermost first, in any kind of storage.
pub trait Frames {
    /// All frames.
    fn frames(&self) -> &[Frame];
    /// Keeps the first `len` frames; `len` is at most the number of frames.
    fn truncate(&mut self, len: usize);
    /// Pushes a frame on top. `false` if there is no room: then the frame is not on the stack.
    fn push(&mut self, frame: Frame) -> bool;
}

/// Result of a leave or tail call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Left {
    /// The frame that ended; `None` if its enter was never seen.
    pub frame: Option<Frame>,
    /// Number of dead frames above it that were dropped.
    pub dropped: usize,
}

/// A function was entered: drops dead frames and pushes the function. Returns the number of dropped
/// frames.
///
/// A frame with the same stack pointer is dead too: a tail call has replaced it.
#[inline]
pub fn enter(stack: &mut impl Frames, sp: usize, word: usize) -> usize {
    let dropped = drop_at_or_below(stack, sp);
    stack.push(Frame { sp, word });
    dropped
}

/// A function is about to return: drops dead frames and pops the function.
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

/// A function is about to make a tail call: the function ends here, and its caller becomes the
/// caller of the called function.
#[inline]
pub fn tailcall(stack: &mut impl Frames, sp: usize) -> Left {
    leave(stack, sp)
}

/// Maximum nesting depth of filters (a filter calls a function that throws and has a filter, and so
/// on).
const FILTERS: usize = 16;

/// The running filters of a thread: state in addition to its frames.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Filters {
    running: usize,
    /// Number of frames on the stack when each filter began.
    below: [u32; FILTERS],
}

impl Filters {
    /// No filter is running.
    #[must_use]
    pub const fn new() -> Self {
        Self { running: 0, below: [0; FILTERS] }
    }

    /// Forgets filters whose frame was dropped: they have ended, even if no callback reported it.
    fn forget_above(&mut self, len: usize) {
        while let Some(below) = self.running.checked_sub(1).and_then(|last| self.below.get(last)) {
            if len > *below as usize {
                break;
            }
            self.running -= 1;
        }
    }
}

/// A finally, fault or catch block is about to run: drops all frames above the activation that owns
/// the block, and returns their number. The owner is then on top.
pub fn block_enter(stack: &mut impl Frames, filters: &mut Filters, frame_pointer: usize) -> usize {
    let dropped = drop_at_or_below(stack, frame_pointer);
    filters.forget_above(stack.frames().len());
    dropped
}

/// Call it before a filter runs. The frames of the throwing function are still alive, so this
/// pushes a second frame for the filter's function on top of them, with that function's word, and
/// returns the frame. `None` if the function is not on the stack (neither it nor its callers have
/// hooks).
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

/// Call it after a filter has returned or thrown. Pops its frame and all frames above it.
pub fn filter_leave(stack: &mut impl Frames, filters: &mut Filters) {
    let Some(running) = filters.running.checked_sub(1) else { return };
    filters.running = running;
    if let Some(below) = filters.below.get(running) {
        let len = stack.frames().len();
        stack.truncate(len.min(*below as usize));
    }
}

/// Pushes a frame that is not a function, and returns it. Functions called from now on become
/// children of this frame. The frame ends by [`pop_pseudo`], or when the frame below it ends.
/// `None` if there is no room.
pub fn push_pseudo(stack: &mut impl Frames, word: usize) -> Option<Frame> {
    let sp = stack.frames().last().map_or(usize::MAX, |top| top.sp - 1);
    let frame = Frame { sp, word };
    stack.push(frame).then_some(frame)
}

/// Pops a frame that [`push_pseudo`] returned, with all frames above it, and returns their number;
/// 0 if the frame was dropped before.
pub fn pop_pseudo(stack: &mut impl Frames, pseudo: Frame) -> usize {
    let is_there = stack.frames().iter().rev().take_while(|frame| frame.sp <= pseudo.sp).any(|frame| *frame == pseudo);
    if is_there { drop_at_or_below(stack, pseudo.sp) } else { 0 }
}

/// The topmost frames with a stack pointer of at most `bound`: those that [`enter`] with this stack
/// pointer, or [`block_enter`] with this frame pointer, will drop. For callers that need to know
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
