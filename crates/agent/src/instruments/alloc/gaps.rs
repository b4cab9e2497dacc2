//! Return addresses that no frame pointer leads to: those of methods whose calls reach the runtime by code that makes no frame of its own.
//!
//! From .NET 10 on the slow way to allocate begins with such code. The frame of the runtime's function that it calls is followed by that of
//! the method's, so that the address at which the method goes on, alone in telling what it is and where in it, is in no frame: all
//! methods that one call may lead to, and all places in one of them, looked the same. It lies at a distance from the runtime's frame
//! which is always the same for the same code, and is found out by what the runtime's own walk says.
//!
//! Looked up in callbacks on any thread: no locks, no memory.

use std::sync::atomic::{AtomicUsize, Ordering};

use clr_profiler::internals::{CurrentStack, NativeFrame};

/// Pieces of code that are remembered: the runtime has a few.
const MOST: usize = 16;
/// Frames of the runtime's own that are looked at.
const NATIVE_FRAMES: usize = 32;
/// Bytes above a frame pointer in which the address is looked for.
const REACH: usize = 1024;

/// One piece of code, and the distance that was found for it.
#[derive(Debug, Default)]
struct Gap {
    /// Address in it at which the runtime's function returns to it; 0 for none.
    code: AtomicUsize,
    /// Bytes from the frame pointer of that function to the return address that is in no frame; 0 until it is written.
    distance: AtomicUsize,
}

/// Code without frames of its own.
#[derive(Debug, Default)]
pub(super) struct Gaps([Gap; MOST]);

impl Gaps {
    /// The innermost return address of the calling thread that is in no frame, as far as it is known that there is one.
    #[inline]
    pub(super) fn address(&self, stack: CurrentStack, frame: NativeFrame) -> Option<usize> {
        if self.0[0].code.load(Ordering::Acquire) == 0 {
            return None;
        }
        let (at, distance) = frames(stack, frame).find_map(|one| Some((one.at, self.distance(one.address)?)))?;
        stack.word(at + distance)
    }

    fn distance(&self, code: usize) -> Option<usize> {
        let mut known = self.0.iter().take_while(|gap| gap.code.load(Ordering::Acquire) != 0);
        let found = known.find(|gap| gap.code.load(Ordering::Relaxed) == code)?;
        Some(found.distance.load(Ordering::Acquire)).filter(|distance| *distance != 0)
    }

    /// Finds out where the innermost return addresses lie that the runtime's walk has given, `innermost` and that of its caller; whether
    /// something is known now that was not.
    pub(super) fn learn(&self, stack: CurrentStack, frame: NativeFrame, innermost: usize, caller: Option<usize>) -> bool {
        let is_of_methods = |address: usize| address == innermost || Some(address) == caller;
        let Some(below) = frames(stack, frame).take_while(|one| !is_of_methods(one.address)).last() else { return false };
        // In a frame of its own.
        if frames(stack, frame).any(|one| one.address == innermost) || self.distance(below.address).is_some() {
            return false;
        }
        // Words next to the method's own frame are what its call has left there; those below may have been left before.
        let end = below.up.min(below.at + REACH);
        let mut words = (below.at + 16..end).step_by(8).rev();
        words.find(|&at| stack.word(at) == Some(innermost)).is_some_and(|at| self.keep(below.address, at - below.at))
    }

    fn keep(&self, code: usize, distance: usize) -> bool {
        let taken = |gap: &&Gap| {
            let found = gap.code.compare_exchange(0, code, Ordering::AcqRel, Ordering::Acquire);
            found.is_ok() || found == Err(code)
        };
        let gap = self.0.iter().find(taken);
        gap.inspect(|gap| gap.distance.store(distance, Ordering::Release)).is_some()
    }
}

/// One frame that frame pointers lead to.
#[derive(Clone, Copy)]
struct Frame {
    /// The frame pointer.
    at: usize,
    /// The caller's.
    up: usize,
    /// The return address.
    address: usize,
}

/// The frames from `frame` on, innermost first.
#[inline]
fn frames(stack: CurrentStack, frame: NativeFrame) -> impl Iterator<Item = Frame> {
    let read = move |at: usize| Some(Frame { at, up: stack.word(at)?, address: stack.word(at.checked_add(8)?)? });
    let next = move |one: &Frame| if one.up > one.at { read(one.up) } else { None };
    std::iter::successors(read(frame.address()), next).take(NATIVE_FRAMES)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A stack: the runtime's function, code without a frame whose return address into the method lies 24 bytes above its frame pointer, the
    /// method, and its caller.
    fn words(base: usize, in_method: usize, left_before: usize) -> [usize; 10] {
        let at = |word: usize| base + 8 * word;
        // The runtime's frame, its return address in the code without a frame, left-overs, the address in the method, the method's frame.
        [at(6), 0xC0DE, left_before, in_method, 0, 0, at(8), 0xCA11, 0, 0]
    }

    #[test]
    fn an_address_in_no_frame_is_found_once_the_runtime_has_said_it() {
        let gaps = Gaps::default();
        let mut room = [0_usize; 10];
        let base = std::hint::black_box(&mut room).as_mut_ptr().expose_provenance();
        let frame = NativeFrame::new(base);
        let stack = CurrentStack::here().expect("bounds are known");
        *std::hint::black_box(&mut room) = words(base, 0xA, 0xA);
        assert_eq!(gaps.address(stack, frame), None);
        assert!(!gaps.learn(stack, frame, 0xB, Some(0xCA11)), "what is nowhere is not learnt");
        assert!(gaps.learn(stack, frame, 0xA, Some(0xCA11)));
        assert!(!gaps.learn(stack, frame, 0xA, Some(0xCA11)), "it is known");
        for address in [0xA, 0xB, 0xC] {
            *std::hint::black_box(&mut room) = words(base, address, 0xD);
            assert_eq!(gaps.address(stack, frame), Some(address), "whatever was left in between");
        }
        // An address that has a frame of its own needs nothing.
        let others = Gaps::default();
        assert!(!others.learn(stack, frame, 0xCA11, None) && others.address(stack, frame).is_none());
        std::hint::black_box(&room);
    }
}
