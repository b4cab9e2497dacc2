//! Instructions in catch, finally and filter blocks.
//!
//! Each block is a function of its own (a funclet) with its own frame. The runtime's walk of a
//! stack leaves this frame out: it shows the method at the call that has thrown or that entered the
//! block, and its line would be wrong. But the frame is on the stack, further in than the method's
//! frame. A block uses its method's frame pointer and passes it on to everything it calls. So the
//! address right above the innermost copy of the frame pointer is where the block, or the method
//! itself, resumes. If the callee is a compiled method, its prolog gives the exact position of its
//! return address.
//!
//! The stack is read at once, in the callback. The code at the addresses may be looked up later.

use std::ops::RangeInclusive;

use clr_profiler::StackFrame;
use clr_profiler::internals::CurrentStack;
use clrscope_agent_base::code_owner::is_call_before;

use crate::unwind::FrameShape;

/// Bytes from a frame on that are searched for the next frame's pointer: the runtime's own frames
/// for one exception take some 20 KiB.
const REACH: usize = 256 << 10;
/// Most words of a callee's frame that are kept: methods without a frame pointer of their own have
/// small frames.
const WORDS: usize = 64;
/// Most copies of a frame pointer that are kept.
const COPIES: usize = 16;

/// Distance in bytes from a failed instruction's stack pointer down to the copy of the frame
/// pointer that the runtime leaves: below the 128 bytes that code may use under the stack pointer,
/// at a multiple of 16.
const FAILED: RangeInclusive<usize> = 144..=160;

/// A copy of the stack between a method and its last callee.
#[derive(Debug, Default)]
pub struct StackGap {
    /// Word above the callee's frame pointer.
    framed: Option<usize>,
    /// Words from the callee's stack pointer on.
    words: Vec<usize>,
    /// Addresses of words that equal the method's frame pointer, innermost first, each with the
    /// word above it.
    copies: Vec<(usize, usize)>,
    /// The method's stack pointer, and the word below it: the return address of a call from the
    /// method itself.
    called: Option<(usize, usize)>,
}

impl StackGap {
    /// Reads the stack from `start`, or from the callee's frame if the method called one, up to the
    /// frame of `method`.
    pub fn read(stack: CurrentStack, start: usize, callee: Option<StackFrame>, method: StackFrame) -> Self {
        let (Some(frame), Some(sp)) = (method.frame_pointer, method.stack_pointer) else { return Self::default() };
        let callee = callee.and_then(|callee| Some((callee.frame_pointer?, callee.stack_pointer?)));
        let start = callee.map_or(start, |(_, sp)| sp) & !7;
        let places = (start..frame.min(start + REACH)).step_by(8);
        let copy = |at: usize| (stack.word(at)? == frame).then(|| Some((at, stack.word(at + 8)?))).flatten();
        Self {
            framed: callee.and_then(|(frame, _)| stack.word(frame.checked_add(8)?)),
            words: callee.map_or_else(Vec::new, |(_, sp)| {
                (sp..).step_by(8).map_while(|at| stack.word(at)).take(WORDS).collect()
            }),
            copies: places.filter_map(copy).take(COPIES).collect(),
            called: sp.checked_sub(8).and_then(|at| Some((sp, stack.word(at)?))),
        }
    }

    /// Bytes of memory that the copy takes.
    pub fn bytes(&self) -> usize {
        size_of::<Self>()
            + self.words.capacity() * size_of::<usize>()
            + self.copies.capacity() * size_of::<(usize, usize)>()
    }

    /// The address at which the method, or its running block, resumes; `None` if not found.
    /// `callee`: layout of the callee's frame, if the callee is a known method. `holds`: whether a
    /// call in the method's code returns to an address.
    pub fn address(&self, callee: Option<FrameShape>, holds: impl Fn(usize) -> bool) -> Option<usize> {
        let exact = callee.and_then(|shape| match shape.keeps_frame_pointer {
            true => self.framed,
            false => self.words.get((shape.bytes / 8).checked_sub(1)?).copied(),
        });
        exact.filter(|&at| holds(at)).or_else(|| self.copies.iter().map(|(_, at)| *at).find(|&at| holds(at)))
    }

    /// The instruction of the innermost method, if the instruction failed and is not a call.
    /// `address` is where the method resumes according to the runtime's walk. `holds` says whether
    /// an address lies in the method's code.
    ///
    /// For an instruction that failed in the method itself, the runtime leaves the frame pointer
    /// and the address at a fixed place, as a nested call would. In a block the stack pointer is
    /// unknown. There the address must not follow a call, and no address that follows a call may be
    /// found: the runtime's own notes may hold such pairs in addition to that of a call.
    pub fn failed(&self, address: usize, holds: impl Fn(usize) -> bool) -> Option<usize> {
        let (sp, _) = self.called?;
        if self.copies.iter().any(|&(at, found)| found == address && FAILED.contains(&sp.wrapping_sub(at))) {
            return Some(address);
        }
        let mut others = self.copies.iter().map(|(_, found)| *found).filter(|&found| found != address && holds(found));
        let first = others.next().filter(|&found| is_call_before(found) == Some(false))?;
        others.all(|found| is_call_before(found) == Some(false)).then_some(first)
    }
}
