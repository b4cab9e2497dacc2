//! Callers that no frame pointer leads to, and how they are found all the same.
//!
//! A short method may have no frame: the address at which its caller goes on lies at a fixed distance on the stack. A body that took over a
//! running frame (OSR) has that one above its own, with the address at which the caller goes on, and an address of the older body where that
//! of the caller would be. Which return addresses are of such code finds out the thread that looks addresses up; calls look here, without a
//! lock.

use std::sync::atomic::{AtomicUsize, Ordering};

use clr_profiler::internals::CurrentStack;

/// Places for addresses. A power of two.
const PLACES: usize = 1 << 12;
/// Places looked at for one.
const STEPS: usize = 16;
/// Words searched for the frame that was taken over.
const SEARCHED: usize = 2048;
/// Mark of code that took over a frame; the rest is the distance to that, 0 where it is not known yet.
const TOOK_OVER: usize = 1 << 63;

/// Way from a return address to the next caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Gap {
    /// The method has no frame, but so many bytes on the stack.
    NoFrame(usize),
    /// The body took over a frame.
    TookOver,
}

/// Return addresses with gaps behind them.
pub(super) struct Gaps(Box<[(AtomicUsize, AtomicUsize)]>);

impl Gaps {
    pub(super) fn new() -> Self {
        Self((0..PLACES).map(|_| Default::default()).collect())
    }

    /// Notes an address; whether there was room. For one thread.
    pub(super) fn note(&self, address: usize, gap: Gap) -> bool {
        let value = match gap {
            Gap::NoFrame(bytes) => bytes,
            Gap::TookOver => TOOK_OVER,
        };
        let is_free = |place: &&(AtomicUsize, AtomicUsize)| [0, address].contains(&place.0.load(Ordering::Relaxed));
        let Some((of, way)) = self.places(address).find(is_free) else { return false };
        if of.load(Ordering::Relaxed) == 0 {
            way.store(value, Ordering::Relaxed);
            of.store(address, Ordering::Release);
        }
        true
    }

    /// Code is gone, and what is known of addresses with it.
    pub(super) fn forget(&self) {
        self.0.iter().for_each(|(of, _)| of.store(0, Ordering::Release));
    }

    /// Place of the address at which the caller of the code goes on to which `address` returns, and whether that stands in the place of the one that
    /// frame pointers lead to. `above` is where that code's own part of the stack begins, `frame` the next frame pointer.
    #[inline]
    pub(super) fn behind(&self, stack: CurrentStack, address: usize, above: usize, frame: usize) -> Option<(usize, bool)> {
        let known = self.places(address).map(|place| (place.0.load(Ordering::Acquire), place));
        let (_, (_, way)) = known.take_while(|(of, _)| *of != 0).find(|(of, _)| *of == address)?;
        let value = way.load(Ordering::Relaxed);
        if value & TOOK_OVER == 0 {
            return Some((above.checked_add(value)?, false));
        }
        // Both frames lead where the one above them leads.
        let up = stack.word(frame)?;
        let is_it = |at: &usize| stack.word(*at) == Some(up);
        let told = Some(frame + (value & !TOOK_OVER)).filter(|at| *at != frame && is_it(at));
        let search = || (frame + 16..up).step_by(8).take(SEARCHED).find(is_it);
        let taken = told.or_else(search)?;
        way.store(TOOK_OVER | (taken - frame), Ordering::Relaxed);
        Some((taken + 8, true))
    }

    #[inline]
    fn places(&self, address: usize) -> impl Iterator<Item = &(AtomicUsize, AtomicUsize)> {
        let first = address.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
        (0..STEPS).map_while(move |step| self.0.get(first.wrapping_add(step) & (PLACES - 1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_behind_an_address_is_known_until_code_goes() {
        let mut words = [0_usize; 32];
        let base = std::hint::black_box(&mut words).as_mut_ptr().expose_provenance();
        let at = |word: usize| base + 8 * word;
        // A frame that took over another, whose saved frame pointer is the same, and the frame that both lead to.
        for word in [2, 9] {
            words[word] = at(20);
        }
        std::hint::black_box(&mut words);
        let stack = CurrentStack::here().expect("bounds are known");
        let gaps = Gaps::new();
        assert_eq!(gaps.behind(stack, 0xA, at(0), at(2)), None);
        assert!(gaps.note(0xA, Gap::NoFrame(24)) && gaps.note(0xB, Gap::TookOver));
        assert_eq!(gaps.behind(stack, 0xA, at(0), at(2)), Some((at(3), false)));
        for _ in 0..2 {
            assert_eq!(gaps.behind(stack, 0xB, at(0), at(2)), Some((at(10), true)));
        }
        assert_eq!(gaps.behind(stack, 0xB, at(0), at(9)), None, "nothing was taken over there");
        gaps.forget();
        assert_eq!(gaps.behind(stack, 0xA, at(0), at(2)), None);
        std::hint::black_box(&words);
    }
}
