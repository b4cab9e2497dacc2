//! The shadow stack of one thread, in the layout that the assembly code uses.

use std::sync::atomic::{AtomicUsize, Ordering};

use clrscope_recording::writer::ThreadRecord;
use clrscope_agent_base::hooks::own;

/// One frame. `sp` is the caller's stack pointer, which identifies the activation (in the lowest
/// frame: the highest possible address); `word` is the address of the edge's child field, its
/// lowest bit set once the frame has ended by a tail call.
pub(crate) use clr_profiler::shadow_stack::Frame;

/// The frame of an edge.
pub(crate) fn frame(sp: usize, edge: *mut u32) -> Frame {
    Frame { sp, word: edge.expose_provenance() }
}

/// The edge of a frame, without the mark for a tail call.
pub(crate) fn edge_of(frame: Frame) -> *mut u32 {
    std::ptr::with_exposed_provenance_mut(frame.word & !3)
}

/// The frame at an address in a thread's record.
pub(super) fn frame_at(address: u64) -> *mut Frame {
    std::ptr::with_exposed_provenance_mut(address as usize)
}

/// The stack pointer and the word of a frame, for access by other threads.
///
/// # Safety
/// The frame must lie in the shadow stack of a thread; shadow stacks are never unmapped.
pub(super) unsafe fn words<'a>(frame: *mut Frame) -> (&'a AtomicUsize, &'a AtomicUsize) {
    // SAFETY: as the caller promises; both fields are aligned words.
    unsafe { (AtomicUsize::from_ptr(&raw mut (*frame).sp), AtomicUsize::from_ptr(&raw mut (*frame).word)) }
}

/// A thread's shadow stack. Only the thread itself changes it.
pub(crate) struct Stack {
    record: ThreadRecord,
}

impl Stack {
    /// Returns the stack of the calling thread.
    ///
    /// # Safety
    /// `record` must be the calling thread's, and no other stack of it may be in use.
    pub(crate) unsafe fn of_thread(record: ThreadRecord) -> Self {
        Self { record }
    }

    fn top_address(&self) -> *mut Frame {
        frame_at(self.record.u64(own::TOP).load(Ordering::Relaxed))
    }

    fn bottom_address(&self) -> *mut Frame {
        frame_at(self.record.u64(own::FRAMES).load(Ordering::Relaxed))
    }

    fn set_top(&mut self, frame: *mut Frame) {
        self.record.u64(own::TOP).store(frame.expose_provenance() as u64, Ordering::Release);
    }

    /// The frame on top. There is always one.
    pub(crate) fn top(&self) -> Frame {
        // SAFETY: the top lies within the thread's frames.
        unsafe { self.top_address().read() }
    }

    /// Whether only the lowest frame is left, which represents the thread itself.
    pub(crate) fn is_at_bottom(&self) -> bool {
        self.top_address() <= self.bottom_address()
    }

    /// Whether there is no room for another frame.
    pub(crate) fn is_full(&self) -> bool {
        self.top_address().addr() as u64 + size_of::<Frame>() as u64
            >= self.record.u64(own::FRAMES_END).load(Ordering::Relaxed)
    }

    /// Ends the frame on top, unless it is the lowest one.
    pub(crate) fn pop(&mut self) {
        if !self.is_at_bottom() {
            self.set_top(self.top_address().wrapping_sub(1));
        }
    }

    /// Ends all frames whose stack pointer is below `sp`: an exception has left these frames.
    pub(crate) fn drop_below(&mut self, sp: usize) {
        while !self.is_at_bottom() && self.top().sp < sp {
            self.pop();
        }
    }

    /// Marks the frame on top: it has ended by a tail call.
    pub(crate) fn mark_top(&mut self) {
        let top = self.top_address();
        // SAFETY: the top lies within the thread's frames.
        let (_, word) = unsafe { words(top) };
        word.store(word.load(Ordering::Relaxed) | 1, Ordering::Relaxed);
    }

    /// Pushes a frame. The caller has checked that there is room, or came from the fast path, where
    /// frames have as much room as the thread's stack.
    pub(crate) fn push(&mut self, frame: Frame) {
        let next = self.top_address().wrapping_add(1);
        // SAFETY: within the thread's frames.
        let (sp, word) = unsafe { words(next) };
        // The frame is whole before the top moves.
        sp.store(frame.sp, Ordering::Relaxed);
        word.store(frame.word, Ordering::Relaxed);
        self.set_top(next);
    }

    /// Whether the last frame that was pushed where the next one goes ended by a tail call.
    pub(crate) fn next_is_after_tail_call(&self) -> bool {
        !self.is_full() && {
            // SAFETY: the slot above the top lies within the thread's frames.
            let above = unsafe { self.top_address().wrapping_add(1).read() };
            above.word & 1 == 1
        }
    }

    /// Notes that a finally or catch block ended the frames at and below `frame_pointer`. Leave
    /// hooks of some of these frames may still run.
    pub(crate) fn note_ended_by_block(&mut self, frame_pointer: usize) {
        let highest = self.record.u64(own::ENDED_BY_BLOCK);
        highest.store(highest.load(Ordering::Relaxed).max(frame_pointer as u64), Ordering::Relaxed);
    }

    /// Forgets the note of [`note_ended_by_block`](Self::note_ended_by_block) once the activation
    /// on top is not below the noted frame pointer. So the blocks of an exception that is thrown
    /// and caught within a block do not change the note of the outer block.
    pub(crate) fn forget_ended_by_block(&mut self) {
        let highest = self.record.u64(own::ENDED_BY_BLOCK);
        if self.top().sp as u64 > highest.load(Ordering::Relaxed) {
            highest.store(0, Ordering::Relaxed);
        }
    }

    /// Whether a block may have ended the activation with this caller's stack pointer. To be asked
    /// about an activation that is not on the shadow stack any more.
    pub(crate) fn was_ended_by_block(&self, sp: usize) -> bool {
        sp as u64 <= self.record.u64(own::ENDED_BY_BLOCK).load(Ordering::Relaxed)
    }

    /// The topmost frame that `wanted` accepts, not counting the lowest frame.
    pub(crate) fn find(&self, wanted: impl Fn(Frame) -> bool) -> Option<*mut Frame> {
        let bottom = self.bottom_address();
        let mut at = self.top_address();
        while at > bottom {
            // SAFETY: between bottom and top.
            if wanted(unsafe { at.read() }) {
                return Some(at);
            }
            at = at.wrapping_sub(1);
        }
        None
    }

    /// All frames but the lowest, outermost first.
    pub(crate) fn above_bottom(&self) -> &[Frame] {
        let first = self.bottom_address().wrapping_add(1);
        let past = self.top_address().wrapping_add(1);
        // SAFETY: the thread's own frames, which nothing changes while `self` is borrowed.
        unsafe { std::slice::from_raw_parts(first, past.offset_from_unsigned(first)) }
    }

    /// Keeps the first `len` frames above the lowest.
    pub(crate) fn keep(&mut self, len: usize) {
        self.set_top(self.bottom_address().wrapping_add(len));
    }

    /// Ends `frame` (from [`find`](Self::find)) and everything above it.
    pub(crate) fn end_from(&mut self, frame: *mut Frame) {
        self.set_top(frame.wrapping_sub(1));
    }
}
