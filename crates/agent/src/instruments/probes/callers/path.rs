//! The way to a call: the return addresses on the stack of the calling thread, from the frame of a probed method on.

use clr_profiler::internals::CurrentStack;

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
