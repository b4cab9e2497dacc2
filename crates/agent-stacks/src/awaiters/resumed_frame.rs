//! The resumed method on a stack and its chain, for callbacks that follow only frame pointers, such
//! as callbacks about allocations. Return addresses are folded (added one after another), from the
//! outermost inwards.
//!
//! Return addresses are compared with the known async code. Code compiled while the agent is there
//! is known at once. Precompiled code is known once the agent's thread has looked up a stack that
//! contains it.

use clr_profiler::internals::{CurrentStack, ReturnAddress};

use super::code::CodePart;
use super::{Awaiters, Chain, Questions};

/// The innermost resumed method on a stack, folded from some of its return addresses. Equals the
/// result of a search from the innermost frame outwards, but takes one word, because each known
/// frame of a thread stores one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ResumedFrame(
    /// 0 for no method, or one with an unknown `this`; [`NEXT`]; or the encoding of a method.
    u64,
);

/// The innermost async part is a resumption: the next async method inside is the resumed one.
const NEXT: u64 = 1;
/// Bits for the method's number, below the word address of the slot with its `this`.
const NUMBER_BITS: u32 = 20;

/// A resumed method on the calling thread's stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResumedMethod {
    number: u32,
    /// Address of the word in its frame that holds `this`.
    this: usize,
}

/// The chain that a thread read last. Reading a chain takes some microseconds, and between two
/// collections an object stays at its address.
#[derive(Debug)]
pub struct LastChain {
    /// Number of the method. For another method to have this `this`, its box must have moved there
    /// in a collection.
    number: u32,
    this: usize,
    collections: u64,
    chain: Chain,
    mixed: u64,
}

impl LastChain {
    /// The chain that was read.
    pub fn chain(&self) -> &Chain {
        &self.chain
    }

    /// A hash of the chain.
    #[inline]
    pub fn mixed(&self) -> u64 {
        self.mixed
    }
}

/// The moment at which a chain is requested.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    /// Number of collections so far: objects move only during collections.
    pub collections: u64,
    /// Whether the callback keeps the object alive, so that the runtime can be queried about it.
    pub may_ask: bool,
}

impl ResumedFrame {
    /// The resumed method; `None` if there is none.
    #[inline]
    pub fn method(self) -> Option<ResumedMethod> {
        let number = (self.0 & ((1 << NUMBER_BITS) - 1)) as u32;
        (self.0 > NEXT).then_some(ResumedMethod { number, this: (self.0 >> NUMBER_BITS) as usize * 8 })
    }

    fn inside(self, part: CodePart, frame_pointer: Option<usize>) -> Self {
        match part {
            CodePart::Resumption => Self(NEXT),
            CodePart::Method { number, below } if self.0 == NEXT => {
                let this = frame_pointer.and_then(|frame| frame.checked_add_signed(below as isize));
                let this = this.filter(|this| this.is_multiple_of(8) && number >> NUMBER_BITS == 0);
                Self(this.map_or(0, |this| (this as u64 / 8) << NUMBER_BITS | u64::from(number)))
            }
            CodePart::Method { .. } => self,
        }
    }
}

impl Awaiters {
    /// A number that changes whenever more async code becomes known.
    #[inline]
    pub fn generation(&self) -> u64 {
        self.code.generation()
    }

    /// Adds a return address to the resumed method of the outer frames. Takes a lock at most for a
    /// look-up.
    #[inline]
    pub fn fold(&self, outer: ResumedFrame, to: ReturnAddress) -> ResumedFrame {
        match self.code.part(to.address.wrapping_sub(1)) {
            None => outer,
            Some(part) => outer.inside(part, to.frame_pointer),
        }
    }

    /// The chain of awaiters of a method on the calling thread's stack. The chain is read only if
    /// `last` belongs to another method. Call it in a callback in which objects don't move.
    #[inline]
    pub fn chain_here<'o>(
        &self,
        last: &'o mut Option<LastChain>,
        resumed: ResumedMethod,
        moment: Moment,
    ) -> Option<&'o LastChain> {
        let (number, collections) = (resumed.number, moment.collections);
        let this = CurrentStack::here()?.word(resumed.this)?;
        let is_same = |last: &LastChain| (last.number, last.this, last.collections) == (number, this, collections);
        if !last.as_ref().is_some_and(|last| is_same(last) && last.chain.is_final()) {
            let questions = if moment.may_ask { Questions::Asked } else { Questions::Noted };
            let chain = self.chain_of(self.code.method(number)?, this, questions);
            *last = Some(LastChain { number, this, collections, mixed: chain.mixed(), chain });
        }
        last.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use clr_profiler::FunctionId;

    use super::super::{AsyncPart, ResumedSearch};
    use super::*;

    /// All stacks of four frames with all combinations of roles.
    #[test]
    fn the_method_is_the_one_that_a_search_from_the_innermost_frame_finds() {
        // SAFETY: only compared.
        let function = |frame: usize| unsafe { FunctionId::from_raw(frame + 1) };
        let part = |kind: usize, frame: usize| match kind {
            0 => (AsyncPart::Other, None),
            1 => {
                let code = CodePart::Method { number: frame as u32, below: -16 };
                (AsyncPart::Method { function: function(frame), below: -16 }, Some(code))
            }
            _ => (AsyncPart::Resumption, Some(CodePart::Resumption)),
        };
        let mut found = 0;
        for stack in 0..3_usize.pow(4) {
            let parts: Vec<_> = (0..4).map(|frame| part(stack / 3_usize.pow(frame) % 3, frame as usize)).collect();
            let mut search = ResumedSearch::default();
            let mut folded = ResumedFrame::default();
            for (frame, (part, _)) in parts.iter().enumerate() {
                search.frame(*part, Some(1024 * (1 + frame)));
            }
            for (frame, (_, code)) in parts.iter().enumerate().rev() {
                folded = code.map_or(folded, |code| folded.inside(code, Some(1024 * (1 + frame))));
            }
            let method = folded.method().map(|method| (function(method.number as usize), method.this));
            assert_eq!(method, search.found().map(|found| (found.function, found.this)), "{parts:?}");
            found += usize::from(method.is_some());
        }
        assert!(found > 10, "{found}");
    }
}
