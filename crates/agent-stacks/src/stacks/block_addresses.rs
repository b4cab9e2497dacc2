//! Instructions in catch, finally and filter blocks.
//!
//! Each block is a function of its own (a funclet) with a frame of its own, which the runtime's
//! walk of a stack leaves out: it shows the method where it called what has thrown, or called the
//! block, and its line would be wrong. The frame is on the stack all the same, further in than the
//! method's. A block works with its method's frame pointer and so hands that on to whatever it
//! calls: the address right above the innermost copy of it is where the block, or the method
//! itself, goes on. Where a compiled method was called its prolog says exactly where its return
//! address is.
//!
//! The stack is read at once, in the callback; what code lies at the addresses may be looked up
//! later.

use std::ops::RangeInclusive;

use clr_profiler::StackFrame;
use clr_profiler::internals::CurrentStack;
use clrscope_agent_base::code_owner::is_call_before;

use crate::unwind::FrameShape;

/// Bytes from a frame on in which the next one's frame pointer is looked for: the runtime's own
/// frames for one exception take some 20 KiB.
const REACH: usize = 256 << 10;
/// Words of a callee's frame that are kept: methods without a frame pointer of their own have small
/// frames.
const WORDS: usize = 64;
/// Copies of a frame pointer that are kept.
const COPIES: usize = 16;

/// Bytes from an instruction's stack pointer down to where the runtime leaves the frame pointer
/// when the instruction has failed: behind the 128 bytes that code may use below it, at a multiple
/// of 16.
const FAILED: RangeInclusive<usize> = 144..=160;

/// Part of the stack between a method and the one that it called last.
#[derive(Debug, Default)]
pub struct StackGap {
    /// Word above the callee's frame pointer.
    framed: Option<usize>,
    /// Words from the callee's stack pointer on.
    words: Vec<usize>,
    /// Addresses with words that equal the method's frame pointer, the innermost first, and the
    /// words above these.
    copies: Vec<(usize, usize)>,
    /// The method's stack pointer, and the word below: where a call from the method itself left its
    /// return address.
    called: Option<(usize, usize)>,
}

impl StackGap {
    /// Reads the stack from `start` or, where a method called the next one, from that one's frame
    /// on, up to the frame of `method`.
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

    /// Bytes of memory.
    pub fn bytes(&self) -> usize {
        size_of::<Self>()
            + self.words.capacity() * size_of::<usize>()
            + self.copies.capacity() * size_of::<(usize, usize)>()
    }

    /// Address at which the method goes on, or the block of it that is under way. `callee` is the
    /// shape of the callee's frame, where a method's is known; `holds` says whether a call in the
    /// method's code returns to an address. `None` where it can't be found.
    pub fn address(&self, callee: Option<FrameShape>, holds: impl Fn(usize) -> bool) -> Option<usize> {
        let exact = callee.and_then(|shape| match shape.keeps_frame_pointer {
            true => self.framed,
            false => self.words.get((shape.bytes / 8).checked_sub(1)?).copied(),
        });
        exact.filter(|&at| holds(at)).or_else(|| self.copies.iter().map(|(_, at)| *at).find(|&at| holds(at)))
    }

    /// The innermost method's instruction, where that has failed rather than called: `address` is
    /// where the runtime's walk says that the method goes on, `holds` whether an address lies in
    /// its code. For an instruction that failed in the method itself, the runtime leaves the frame
    /// pointer and the address at a fixed place, as a call further in would. In a block, whose
    /// stack pointer is not known, the address is not behind a call, and no address behind a call
    /// is there; the runtime's own notes may hold such pairs in addition to that of a call.
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
