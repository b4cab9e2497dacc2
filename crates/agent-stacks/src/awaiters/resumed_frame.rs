//! The method that was resumed on a stack whose return addresses are folded from the outermost on,
//! and its chain: for callbacks that follow frame pointers alone, as those about allocations.
//!
//! Return addresses are compared with the async code that is known: what was compiled while the
//! agent was there, at once, and precompiled code once the agent's thread has looked a stack up
//! that it is on.

use clr_profiler::internals::{CurrentStack, ReturnAddress};

use super::code::CodePart;
use super::{Awaiters, Chain, Questions};

/// The innermost method that was resumed on a stack, as far as its return addresses are folded: the
/// same as a search from the innermost frame on finds. One word, as each frame that a thread knows
/// has one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ResumedFrame(
    /// 0 for none, or one whose `this` is not known; [`NEXT`]; or a method's.
    u64,
);

/// The innermost part is a resumption: the next async method inside is the one.
const NEXT: u64 = 1;
/// Bits of a method's number, below the address of the word that has its `this`, in words.
const NUMBER_BITS: u32 = 20;

/// A method that was resumed on the calling thread's stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ResumedMethod {
    number: u32,
    /// Address of the word of its frame that holds `this`.
    this: usize,
}

/// The chain that a thread read last. Reading one takes some microseconds, and an object stays
/// where it is between two collections.
#[derive(Debug)]
pub struct LastChain {
    /// Number of the method: another one's with this `this` would have moved there, in a
    /// collection.
    number: u32,
    this: usize,
    collections: u64,
    chain: Chain,
    mixed: u64,
}

impl LastChain {
    /// The chain.
    pub fn chain(&self) -> &Chain {
        &self.chain
    }

    /// A number that stands for the chain.
    #[inline]
    pub fn mixed(&self) -> u64 {
        self.mixed
    }
}

/// The moment at which a chain is asked for.
#[derive(Debug, Clone, Copy)]
pub struct Moment {
    /// Number of collections so far: objects move in no other time.
    pub collections: u64,
    /// The runtime may be asked: it keeps the object that the callback is about.
    pub may_ask: bool,
}

impl ResumedFrame {
    /// The method that was resumed.
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
    /// A number that is another one each time that more async code is known.
    #[inline]
    pub fn generation(&self) -> u64 {
        self.code.generation()
    }

    /// Folds a return address into the method that was resumed further out. Takes a lock for a
    /// look-up at most.
    #[inline]
    pub fn fold(&self, outer: ResumedFrame, to: ReturnAddress) -> ResumedFrame {
        match self.code.part(to.address.wrapping_sub(1)) {
            None => outer,
            Some(part) => outer.inside(part, to.frame_pointer),
        }
    }

    /// The chain of who awaits a method on the calling thread's stack, which is read where `last`
    /// is of another one. In a callback in which objects don't move.
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

    /// All stacks of four frames of each part.
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
