//! The path to a call: the return addresses on the stack of the calling thread, from the frame of a
//! probed method outwards.

use clr_profiler::internals::{CurrentStack, NativeFrame, hidden_returns};
use clrscope_agent_stacks::stacks::hidden_returns::HiddenReturns;
use clrscope_agent_stacks::stacks::mix_address;

/// Most callers that are kept of a call.
pub(super) const MOST_FRAMES: usize = 32;

/// A call of a probed method on the stack of the calling thread.
#[derive(Clone, Copy)]
pub(super) struct Call {
    pub(super) stack: CurrentStack,
    /// The method's frame pointer. It points to the saved frame pointer of the caller, which is
    /// followed by the return address into the caller.
    pub(super) frame: usize,
    /// Address at which the method itself continues.
    pub(super) goes_on_at: usize,
}

impl Call {
    /// Return addresses into the callers, innermost first.
    #[inline]
    pub(super) fn callers(self) -> impl Iterator<Item = usize> {
        let mut frame = self.frame;
        std::iter::from_fn(move || {
            let (up, address) = (self.stack.word(frame)?, self.stack.word(frame.wrapping_add(8))?);
            // Callers' frames lie at higher addresses; 0 is no frame, and ends the walk.
            frame = if up > frame { up } else { 0 };
            Some(address)
        })
    }

    /// Return addresses into the callers, including hidden callers: those that no frame pointer
    /// leads to. A hidden caller follows a caller whose bit is set in `gaps`, or another hidden
    /// one. The walk ends where a hidden caller can't be found.
    pub(super) fn all_callers(self, gaps: u32, known: &HiddenReturns) -> impl Iterator<Item = usize> {
        let (mut frame, mut nth, mut skipped) = (self.frame, 0_u32, 0_u32);
        let mut hidden = Some(self.hidden_at(0, known));
        std::iter::from_fn(move || {
            loop {
                if let Some((address, takes_place)) = hidden.as_mut().and_then(Iterator::next) {
                    skipped += u32::from(takes_place);
                    return Some(address);
                }
                let (up, address) = (self.stack.word(frame)?, self.stack.word(frame.wrapping_add(8))?);
                let hides = skipped == 0 && gaps.checked_shr(nth).unwrap_or(0) & 1 != 0;
                hidden = hides.then(|| self.hidden_at(frame, known));
                // Callers' frames lie at higher addresses; 0 is no frame, and ends the walk.
                (frame, nth) = (if up > frame { up } else { 0 }, nth + 1);
                match skipped.checked_sub(1) {
                    Some(left) => skipped = left,
                    None => return Some(address),
                }
            }
        })
    }

    /// A hash of all callers of a path. `path` is the hash of the callers that frame pointers lead
    /// to. Adding the hidden callers distinguishes paths that have the same `path`.
    #[inline]
    pub(super) fn whole_path(self, path: u64, gaps: u32, known: &HiddenReturns) -> u64 {
        let (mut frame, mut mixed) = (self.frame, !path);
        for nth in 0..u32::BITS - gaps.leading_zeros() {
            let Some(up) = self.stack.word(frame).filter(|up| *up > frame) else { break };
            if gaps >> nth & 1 != 0 {
                mixed = self.hidden_at(frame, known).fold(mixed, |mixed, (address, _)| mix_address(mixed, address));
            }
            frame = up;
        }
        mixed
    }

    /// Addresses that the return address of a frame hides, and whether each replaces the address
    /// that frame pointers lead to.
    #[inline]
    fn hidden_at(self, frame: usize, known: &HiddenReturns) -> impl Iterator<Item = (usize, bool)> {
        let all = hidden_returns(self.stack, NativeFrame::new(frame), |address| known.hidden_behind(address));
        all.map(|(_, address, takes_place)| (address, takes_place))
    }

    /// A hash of the method's code and at most `most` of its callers. It does not depend on the
    /// address of the stack. `first` is the start value, which makes paths differ before and after
    /// an unload of code.
    #[inline]
    pub(super) fn path(self, most: usize, first: u64) -> u64 {
        self.callers().take(most).fold(mix_address(first, self.goes_on_at), mix_address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clr_profiler::internals::HiddenReturn;
    use clrscope_agent_stacks::stacks::hidden_returns::CallerReturn;

    #[test]
    fn callers_without_frames_and_frames_that_were_taken_over_are_found() {
        let mut words = [0_usize; 64];
        let base = std::hint::black_box(&mut words).as_mut_ptr().expose_provenance();
        let at = |word: usize| base + 8 * word;
        // The method; two callers without frames, of 8 and 16 bytes; a caller that reuses a frame,
        // and its own caller; the last caller.
        let frames = [(0, at(20), 0xA1), (20, at(40), 0xFA), (40, at(50), 0xC1), (50, 0, 0xD1)];
        for (word, up, address) in frames {
            (words[word], words[word + 1]) = (up, address);
        }
        (words[3], words[6], words[30], words[31]) = (0xA2, 0xB1, at(40), 0xB2);
        std::hint::black_box(&mut words);
        let call = Call { stack: CurrentStack::here().expect("bounds are known"), frame: at(0), goes_on_at: 5 };
        let gaps = HiddenReturns::default();
        for (address, bytes, takes_place) in [(0xA1, 8, false), (0xA2, 16, false), (0xB1, 192, true)] {
            assert!(gaps.note(address, CallerReturn::Hidden(HiddenReturn::new(bytes, takes_place))));
        }
        assert_eq!(call.callers().collect::<Vec<_>>(), [0xA1, 0xFA, 0xC1, 0xD1]);
        assert_eq!(call.all_callers(1, &gaps).collect::<Vec<_>>(), [0xA1, 0xA2, 0xB1, 0xB2, 0xC1, 0xD1]);
        assert_eq!(call.all_callers(0, &gaps).collect::<Vec<_>>(), [0xA1, 0xFA, 0xC1, 0xD1]);
        let path = call.whole_path(7, 1, &gaps);
        for (word, differs) in [(3, true), (6, true), (31, true), (30, true), (60, false)] {
            let kept = std::mem::replace(&mut words[word], 0xEE);
            std::hint::black_box(&mut words);
            assert_eq!(call.whole_path(7, 1, &gaps) != path, differs, "{word}");
            words[word] = kept;
            std::hint::black_box(&mut words);
        }
        assert_ne!(call.whole_path(8, 1, &gaps), path, "other callers with frames");
    }

    /// Makes three frames that lie `apart` words apart on a stack, and returns the path of `most`
    /// of them.
    fn path(first: usize, apart: usize, addresses: [usize; 3], most: usize) -> (u64, Vec<usize>) {
        let mut words = [0_usize; 64];
        let base = std::hint::black_box(&mut words).as_mut_ptr().expose_provenance();
        for (nth, address) in addresses.into_iter().enumerate() {
            let at = first + nth * apart;
            words[at] = if nth < 2 { base + (at + apart) * 8 } else { 7 };
            words[at + 1] = address;
        }
        std::hint::black_box(&mut words);
        let stack = CurrentStack::here().expect("bounds are known");
        let call = Call { stack, frame: base + first * 8, goes_on_at: 5 };
        (call.path(most, 0), call.callers().collect())
    }

    #[test]
    fn paths_are_told_by_as_many_callers_as_are_kept_wherever_the_stack_is() {
        let (first, all) = path(0, 2, [10, 11, 12], 2);
        assert_eq!(all, [10, 11, 12], "and what is no frame ends the walk");
        assert_eq!(path(20, 6, [10, 11, 99], 2).0, first, "further out and elsewhere");
        assert_ne!(path(0, 2, [10, 12, 12], 2).0, first);
        assert_ne!(path(0, 2, [11, 10, 12], 2).0, first, "another order");
        assert_ne!(path(0, 2, [10, 11, 12], 1).0, first);
    }
}
