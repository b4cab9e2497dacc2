//! The way to a call: the return addresses on the stack of the calling thread, from the frame of a probed method on.

use clr_profiler::internals::CurrentStack;

use super::gaps::Gaps;
use crate::services::stacks::mix_address;

/// Callers that are kept at most.
pub(super) const MOST_FRAMES: usize = 32;

/// A call of a probed method, as it stands on the stack.
#[derive(Clone, Copy)]
pub(super) struct Call {
    pub(super) stack: CurrentStack,
    /// The method's frame pointer: its caller's lies there, and above that the address at which the caller goes on.
    pub(super) frame: usize,
    /// Address at which the method itself goes on.
    pub(super) goes_on_at: usize,
}

/// Way in which a return address was found.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Found {
    /// Frame pointers lead to it.
    ByFrame,
    /// Frame pointers lead to another one in its place.
    Instead,
    /// Stack between two frames: code without one of its own has its return address there.
    Between,
}

impl Call {
    /// Addresses at which callers go on, the innermost first.
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

    /// Addresses at which callers go on, those that no frame pointer leads to included: behind callers of which `gaps` has the bit, and behind
    /// these. Where that is lost, no more.
    pub(super) fn all_callers(self, gaps: u32, known: &Gaps) -> impl Iterator<Item = usize> {
        let (mut frame, mut nth) = (self.frame, 0_u32);
        let mut next = frame.checked_add(8).map(|at| (at, Found::ByFrame));
        std::iter::from_fn(move || {
            let (at, found) = next.take()?;
            let address = self.stack.word(at)?;
            let may_have_gap = found != Found::ByFrame || gaps.checked_shr(nth).unwrap_or(0) & 1 != 0;
            if found != Found::Between {
                let up = self.stack.word(frame)?;
                nth += 1;
                if up <= frame {
                    return Some(address);
                }
                frame = up;
            }
            next = frame.checked_add(8).map(|at| (at, Found::ByFrame));
            let gap = if may_have_gap { known.behind(self.stack, address, at + 8, frame) } else { None };
            match gap {
                Some((taken, true)) => next = Some((taken, Found::Instead)),
                Some((between, false)) if between < frame => next = Some((between, Found::Between)),
                _ => {}
            }
            Some(address)
        })
    }

    /// Number for all callers where frame pointers lead to those of this number: the callers that they do not lead to tell such ways apart.
    #[inline]
    pub(super) fn whole_path(self, path: u64, gaps: u32, known: &Gaps) -> u64 {
        let (mut frame, mut mixed) = (self.frame, !path);
        for nth in 0..u32::BITS - gaps.leading_zeros() {
            let at = frame.wrapping_add(8);
            let (Some(up), Some(address)) = (self.stack.word(frame), self.stack.word(at)) else { break };
            if up <= frame {
                break;
            }
            if gaps >> nth & 1 != 0 {
                mixed = self.mix_between(mixed, (at, address, up), known);
            }
            frame = up;
        }
        mixed
    }

    /// Adds the callers behind a return address, found at a place of the stack, to a number. `frame` is the next frame pointer.
    #[inline]
    fn mix_between(self, mut mixed: u64, (mut at, mut address, mut frame): (usize, usize, usize), known: &Gaps) -> u64 {
        while let Some((next, is_instead)) = known.behind(self.stack, address, at + 8, frame)
            && let Some(found) = self.stack.word(next)
            && (is_instead || next < frame)
        {
            mixed = mix_address(mixed, found);
            (at, address) = (next, found);
            if is_instead {
                match self.stack.word(frame) {
                    Some(up) if up > frame => frame = up,
                    _ => break,
                }
            }
        }
        mixed
    }

    /// Number for the method's code and so many of its callers, the same wherever the stack is. `first` tells apart what had other code at the
    /// same addresses.
    #[inline]
    pub(super) fn path(self, most: usize, first: u64) -> u64 {
        self.callers().take(most).fold(mix_address(first, self.goes_on_at), mix_address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instruments::probes::callers::gaps::Gap;

    #[test]
    fn callers_without_frames_and_frames_that_were_taken_over_are_found() {
        let mut words = [0_usize; 64];
        let base = std::hint::black_box(&mut words).as_mut_ptr().expose_provenance();
        let at = |word: usize| base + 8 * word;
        // The method; two callers without frames, 8 and 16 bytes large; one that took over a frame, and its caller; the last.
        let frames = [(0, at(20), 0xA1), (20, at(40), 0xFA), (40, at(50), 0xC1), (50, 0, 0xD1)];
        for (word, up, address) in frames {
            (words[word], words[word + 1]) = (up, address);
        }
        (words[3], words[6], words[30], words[31]) = (0xA2, 0xB1, at(40), 0xB2);
        std::hint::black_box(&mut words);
        let call = Call { stack: CurrentStack::here().expect("bounds are known"), frame: at(0), goes_on_at: 5 };
        let gaps = Gaps::new();
        let noted = [(0xA1, Gap::NoFrame(8)), (0xA2, Gap::NoFrame(16)), (0xB1, Gap::TookOver)];
        assert!(noted.into_iter().all(|(address, gap)| gaps.note(address, gap)));
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

    /// Three frames that lie so far apart, from a place of the stack on: the path of so many of them.
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
