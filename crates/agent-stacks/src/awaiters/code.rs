//! The async code found so far, by address.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{PoisonError, RwLock};

use clr_profiler::FunctionId;
use clrscope_agent_base::os::memory::zeroed_words;

use super::AsyncPart;

/// Bytes of code that share one bit.
const GRAIN: usize = 64;
/// Words of bits, one bit for each grain of 64 MB of code: 128 kB. The system backs only the part
/// that is used.
const WORDS: usize = 1 << 14;

/// The role of a piece of code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CodePart {
    /// Code of an async method, with its number in this table. The method's `this` lies `below`
    /// bytes below the frame pointer.
    Method { number: u32, below: i32 },
    /// Code of the framework that resumes a method.
    Resumption,
}

/// Async code by address.
pub(super) struct AsyncCode {
    /// A bit for each grain of code, by the lower bits of its address: whether it may contain async
    /// code.
    grains: Box<[AtomicU64]>,
    bodies: RwLock<Bodies>,
    /// Counts changes to the table.
    generation: AtomicU64,
}

#[derive(Default)]
struct Bodies {
    /// Ends and roles of pieces, by their start addresses.
    parts: BTreeMap<usize, (usize, CodePart)>,
    /// Async methods by number.
    methods: Vec<FunctionId>,
}

impl Bodies {
    fn part_of(&mut self, part: AsyncPart) -> Option<CodePart> {
        match part {
            AsyncPart::Other | AsyncPart::Beginning => None,
            AsyncPart::Resumption => Some(CodePart::Resumption),
            AsyncPart::Method { function, below } => {
                let number = self.methods.iter().position(|known| *known == function).unwrap_or_else(|| {
                    self.methods.push(function);
                    self.methods.len() - 1
                });
                Some(CodePart::Method { number: u32::try_from(number).ok()?, below })
            }
        }
    }
}

impl Default for AsyncCode {
    fn default() -> Self {
        Self { grains: zeroed_words(WORDS), bodies: RwLock::default(), generation: AtomicU64::new(0) }
    }
}

impl AsyncCode {
    /// A number that changes with each change to the table. To be read before the table is.
    #[inline]
    pub(super) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// Adds a piece of code with its role.
    pub(super) fn add(&self, code: Range<usize>, part: AsyncPart) {
        let mut bodies = self.bodies.write().unwrap_or_else(PoisonError::into_inner);
        let Some(part) = bodies.part_of(part) else { return };
        if bodies.parts.insert(code.start, (code.end, part)) == Some((code.end, part)) {
            return;
        }
        for address in (code.start / GRAIN * GRAIN..code.end).step_by(GRAIN) {
            let (word, bit) = self.grain(address);
            word.fetch_or(bit, Ordering::Relaxed);
        }
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// Call it when code was unloaded: identifiers of functions may be reused, and other code may
    /// be placed at these addresses.
    pub(super) fn forget(&self) {
        let mut bodies = self.bodies.write().unwrap_or_else(PoisonError::into_inner);
        *bodies = Bodies::default();
        // Untouched words stay untouched.
        let marked = self.grains.iter().filter(|word| word.load(Ordering::Relaxed) != 0);
        marked.for_each(|word| word.store(0, Ordering::Relaxed));
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    fn grain(&self, address: usize) -> (&AtomicU64, u64) {
        let grain = address / GRAIN;
        (&self.grains[grain / 64 % WORDS], 1 << (grain % 64))
    }

    /// The role of the code at an address. Takes a lock where async code may lie, so it is not for
    /// signal handlers.
    #[inline]
    pub(super) fn part(&self, address: usize) -> Option<CodePart> {
        let (word, bit) = self.grain(address);
        if word.load(Ordering::Relaxed) & bit == 0 { None } else { self.part_among_bodies(address) }
    }

    #[cold]
    fn part_among_bodies(&self, address: usize) -> Option<CodePart> {
        let bodies = self.bodies.read().unwrap_or_else(PoisonError::into_inner);
        let found = bodies.parts.range(..=address).next_back().filter(|(_, (end, _))| address < *end);
        found.map(|(_, (_, part))| *part)
    }

    /// The async method with this number in the table; `None` if there is none.
    pub(super) fn method(&self, number: u32) -> Option<FunctionId> {
        let bodies = self.bodies.read().unwrap_or_else(PoisonError::into_inner);
        bodies.methods.get(number as usize).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_has_its_part_from_its_first_byte_to_its_last() {
        let code = AsyncCode::default();
        let before = code.generation();
        code.add(100..120, AsyncPart::Resumption);
        // SAFETY: only compared.
        let function = unsafe { FunctionId::from_raw(7) };
        code.add(130..140, AsyncPart::Method { function, below: -16 });
        code.add(200..210, AsyncPart::Other);
        assert_ne!(code.generation(), before);
        let parts = [99, 100, 119, 120, 129, 130, 140, 1 << 20].map(|at| code.part(at));
        let (other, resumes) = (None, Some(CodePart::Resumption));
        let method = Some(CodePart::Method { number: 0, below: -16 });
        assert_eq!(parts, [other, resumes, resumes, other, other, method, other, other]);
        assert_eq!((code.method(0), code.method(1), code.part(205)), (Some(function), None, other));
        // Its bits are shared with other code.
        assert_eq!(code.part(100 + WORDS * 64 * GRAIN), other);
        let known = code.generation();
        code.add(100..120, AsyncPart::Resumption);
        assert_eq!(code.generation(), known, "nothing new");
        code.forget();
        assert_ne!(code.generation(), known);
        assert_eq!(([100, 130].map(|at| code.part(at)), code.method(0)), ([other, other], None));
    }
}
