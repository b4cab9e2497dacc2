//! Walks a stack with a rule for each return address on it.
//!
//! The stack pointer in a compiled method is a fixed distance below that of its caller, so the
//! return address alone determines the position of the next one. Only rules that have led to the
//! same stack as the runtime's own walk are trusted (`unwind_training`). At any other address the
//! walk gives up, and the runtime is asked.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

use clr_profiler::internals::{CurrentStack, NativeFrame, StackWords};

use super::code_locations::CodeLocation;

/// Most addresses, and most ends of stacks, that are remembered.
pub(super) const MOST: usize = 1 << 16;
/// Most runtime frames between the innermost method and us, and between the end of a stack and that
/// of the thread.
const NATIVE_FRAMES: usize = 32;
const END_FRAMES: usize = 6;

/// The kind of code at a return address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CodeKind {
    /// Code of the runtime, or its managed helpers. The frame pointer leads to the caller.
    Runtime,
    /// A stub of the runtime that keeps no frame pointer. Its frame has this many bytes, from the
    /// end of its callee's frame.
    Stub(usize),
    /// A method whose frame has this many bytes.
    Method { bytes: usize, keeps_frame_pointer: bool, location: CodeLocation },
    /// Other code: filters, finally and catch blocks, IL stubs, unusual frames.
    Odd,
}

/// The rule for a return address.
#[derive(Debug, Clone, Copy)]
pub(super) struct UnwindRule {
    pub(super) kind: CodeKind,
    /// Whether the rule is confirmed: it has led to the same next frame as the runtime's walk.
    pub(super) sure: bool,
    /// How often the rule led to another frame than the runtime's walk.
    pub(super) failed: u8,
}

impl UnwindRule {
    pub(super) fn new(kind: CodeKind) -> Self {
        Self { kind, sure: false, failed: 0 }
    }
}

/// All rules. Rules depend on addresses, and are forgotten when code is unloaded.
#[derive(Default)]
pub(super) struct UnwindRules {
    pub(super) addresses: HashMap<usize, UnwindRule, BuildHasherDefault<Mix>>,
    /// Ends of stacks, where native code called the outermost method: see [`end_of_stack`].
    pub(super) ends: HashSet<u64, BuildHasherDefault<Mix>>,
}

/// Which rules a walk may follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trust {
    /// Only rules that are confirmed.
    Sure,
    /// All rules, for training.
    All,
}

/// Reads words of the calling thread's stack, for a walk.
pub(super) trait Words {
    /// See [`CurrentStack::word`].
    fn word(&mut self, address: usize) -> Option<usize>;
}

impl Words for CurrentStack {
    #[inline]
    fn word(&mut self, address: usize) -> Option<usize> {
        CurrentStack::word(self, address)
    }
}

/// Remembers the words that a walk reads.
pub(super) struct NotedWords<'a>(pub(super) CurrentStack, pub(super) &'a mut StackWords);

impl Words for NotedWords<'_> {
    #[inline]
    fn word(&mut self, address: usize) -> Option<usize> {
        self.1.read(self.0, address)
    }
}

/// How a walk ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The walk reached the outermost method.
    Whole,
    /// The walk reached the limit, and there are more methods.
    Cut,
    /// The walk reached something unknown. If it has passed methods before, the value holds the
    /// unknown return address and the stack pointer there.
    Lost(Option<(usize, usize)>),
}

impl UnwindRules {
    pub(super) fn clear(&mut self) {
        self.addresses.clear();
        self.ends.clear();
    }

    fn get(&self, address: usize, trust: Trust) -> Option<CodeKind> {
        let rule = self.addresses.get(&address)?;
        (trust == Trust::All || rule.sure).then_some(rule.kind)
    }

    /// The address at which the innermost method resumes, and its stack pointer. `visit` gets the
    /// addresses on the way.
    fn innermost(
        &self,
        stack: &mut impl Words,
        frame: NativeFrame,
        trust: Trust,
        mut visit: impl FnMut(usize),
    ) -> Option<(usize, usize)> {
        let mut frame = frame.address();
        for _ in 0..NATIVE_FRAMES {
            let address = stack.word(frame.checked_add(8)?)?;
            visit(address);
            match self.get(address, trust)? {
                CodeKind::Runtime => frame = stack.word(frame).filter(|&up| up > frame)?,
                CodeKind::Stub(bytes) => {
                    let sp = frame.checked_add(16 + bytes)?;
                    return Some((stack.word(sp - 8)?, sp));
                }
                CodeKind::Method { .. } => return Some((address, frame + 16)),
                CodeKind::Odd => return None,
            }
        }
        None
    }

    /// Walks from the innermost method outwards, at most `limit` methods. `visit` is called with
    /// the address, stack pointer and place of each method, `on_the_way` with the addresses of the
    /// runtime's code before the innermost method.
    pub(super) fn walk(
        &self,
        mut stack: impl Words,
        frame: NativeFrame,
        limit: usize,
        trust: Trust,
        on_the_way: impl FnMut(usize),
        mut visit: impl FnMut(usize, usize, CodeLocation),
    ) -> Outcome {
        let Some((mut address, mut sp)) = self.innermost(&mut stack, frame, trust, on_the_way) else {
            return Outcome::Lost(None);
        };
        let mut left = limit;
        let mut keeps = false;
        loop {
            if left == 0 && matches!(self.get(address, Trust::All), Some(CodeKind::Method { .. })) {
                return Outcome::Cut;
            }
            let Some(CodeKind::Method { bytes, keeps_frame_pointer, location }) = self.get(address, trust) else {
                let end = (left < limit && keeps).then(|| end_of_stack(&mut stack, address, sp)).flatten();
                let is_known = end.is_some_and(|end| self.ends.contains(&end));
                return if is_known { Outcome::Whole } else { Outcome::Lost(Some((address, sp))) };
            };
            left -= 1;
            visit(address, sp, location);
            keeps = keeps_frame_pointer;
            sp += bytes;
            match stack.word(sp - 8) {
                Some(next) => address = next,
                None => return Outcome::Lost(None),
            }
        }
    }
}

/// Identifies a position on a thread's stack at which native code called a method, by a hash of the
/// addresses and positions of the frames further out. Equal frames mean equal callers: if there was
/// no managed code further out once, there is none now. `None` if the frames can't be followed.
/// `sp` is the caller's stack pointer after the return.
pub(super) fn end_of_stack(stack: &mut impl Words, address: usize, sp: usize) -> Option<u64> {
    let mut mix = Mix::default();
    mix.write_usize(address);
    mix.write_usize(sp);
    let mut frame = stack.word(sp.checked_sub(16)?)?;
    let mut frames = 0;
    while frames < END_FRAMES
        && let Some(up) = stack.word(frame)
        && let Some(address) = frame.checked_add(8).and_then(|at| stack.word(at))
    {
        mix.write_usize(frame.rotate_left(32) ^ address);
        frames += 1;
        if up <= frame {
            break;
        }
        frame = up;
    }
    // With fewer than two frames, positions can't be distinguished.
    (frames >= 2).then(|| mix.finish())
}

/// Hashes words. Addresses need no protection against deliberate collisions.
#[derive(Default, Clone, Copy)]
pub struct Mix(u64);

impl Mix {
    /// A hasher that continues from the hash `mixed`.
    pub(crate) fn after(mixed: u64) -> Self {
        Self(mixed)
    }
}

impl Hasher for Mix {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(byte.into()));
    }

    #[inline]
    fn write_u64(&mut self, word: u64) {
        let product = u128::from(self.0 ^ word.wrapping_add(0x9E37_79B9_7F4A_7C15)) * 0xD6E8_FEB8_6659_FD93_u128;
        self.0 = (product >> 64) as u64 ^ product as u64;
    }

    #[inline]
    fn write_usize(&mut self, word: usize) {
        self.write_u64(word as u64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUNTIME: usize = 0x1000;
    const STUB: usize = 0x1100;
    const THROWER: usize = 0x2000;
    const CALLER: usize = 0x2100;
    const NATIVE: usize = 0x3000;

    /// The words of our own frame as a stack: two frames of the runtime, a stub of 16 bytes, a
    /// thrower of 32 bytes, and a caller of 16 bytes that native code called.
    fn stack(words: &mut [usize; 20]) -> NativeFrame {
        let at = words.as_ptr().expose_provenance();
        let address = |index: usize| at + index * 8;
        for (index, word) in [
            (0, address(2)),
            (1, RUNTIME),
            (2, address(18)),
            (3, STUB),
            (5, THROWER),
            (9, CALLER),
            (10, address(12)),
            (11, NATIVE),
            (12, address(14)),
            (13, NATIVE + 1),
            (14, 0),
            (15, NATIVE + 2),
        ] {
            words[index] = word;
        }
        NativeFrame::new(std::hint::black_box(at))
    }

    fn method(bytes: usize, function: u32) -> CodeKind {
        CodeKind::Method { bytes, keeps_frame_pointer: true, location: CodeLocation::of_function(function) }
    }

    fn walk(rules: &UnwindRules, frame: NativeFrame, limit: usize) -> (Vec<u32>, Outcome) {
        let own = CurrentStack::here().expect("bounds are known");
        let mut found = Vec::new();
        let outcome =
            rules.walk(own, frame, limit, Trust::Sure, |_| (), |_, _, location| found.push(location.function));
        (found, outcome)
    }

    #[test]
    fn only_what_is_sure_leads_on_and_only_a_known_end_is_the_end() {
        let mut words = [0; 20];
        let frame = stack(&mut words);
        let mut rules = UnwindRules::default();
        let known = [
            (RUNTIME, CodeKind::Runtime),
            (STUB, CodeKind::Stub(16)),
            (THROWER, method(32, 7)),
            (CALLER, method(16, 8)),
        ];
        for (address, what) in known {
            assert!(matches!(walk(&rules, frame, 9).1, Outcome::Lost(_)), "without {address:#x}");
            rules.addresses.insert(address, UnwindRule { sure: true, ..UnwindRule::new(what) });
        }
        let (found, outcome) = walk(&rules, frame, 9);
        let Outcome::Lost(Some((NATIVE, sp))) = outcome else { panic!("{outcome:?}") };
        assert_eq!((found, sp), (vec![7, 8], frame.address() + 12 * 8));
        let mut own = CurrentStack::here().expect("bounds are known");
        rules.ends.extend(end_of_stack(&mut own, NATIVE, sp));
        assert_eq!(walk(&rules, frame, 9), (vec![7, 8], Outcome::Whole));
        assert_eq!(walk(&rules, frame, 1), (vec![7], Outcome::Cut));
        assert_eq!(walk(&rules, frame, 2), (vec![7, 8], Outcome::Whole));
        // An equal caller at an equal position, but called from elsewhere.
        std::hint::black_box(&mut words)[13] = NATIVE + 5;
        assert!(matches!(walk(&rules, frame, 9).1, Outcome::Lost(_)));
        rules.addresses.get_mut(&CALLER).expect("known").sure = false;
        assert_eq!(walk(&rules, frame, 9).0, [7]);
    }

    #[test]
    fn a_chain_that_leads_nowhere_ends() {
        let mut words = [0; 20];
        let frame = stack(&mut words);
        let mut rules = UnwindRules::default();
        rules.addresses.insert(RUNTIME, UnwindRule { sure: true, ..UnwindRule::new(CodeKind::Runtime) });
        std::hint::black_box(&mut words)[0] = frame.address();
        assert_eq!(walk(&rules, frame, 9).1, Outcome::Lost(None));
        assert_eq!(walk(&rules, NativeFrame::new(usize::MAX), 9).1, Outcome::Lost(None));
        assert_eq!(walk(&rules, NativeFrame::new(0), 9).1, Outcome::Lost(None));
    }
}
