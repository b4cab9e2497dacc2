//! The chain of frame pointers of a stack, the return addresses that are missing from this chain,
//! and a fold over all return addresses.
//!
//! A method may leave the frame pointer register unchanged. Such a method has no frame in the
//! chain: the next frame is the frame of its caller, and the return address into the caller is not
//! part of any frame. This return address is hidden. It lies on the stack at a fixed distance above
//! the return address into the method. The code that follows the chain may or may not know this
//! distance.

use super::{CurrentStack, NativeFrame};

/// Location of a hidden return address, relative to the return address into the code that hides it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct HiddenReturn {
    /// Distance in bytes between the two words on the stack.
    pub bytes: usize,
    /// Whether the code replaced an older body of the method and took over its frame, above its
    /// own. If so, the chain of frame pointers leads to a return address into the older body
    /// instead.
    pub takes_place: bool,
}

impl HiddenReturn {
    /// A return address at a distance of `bytes`; `takes_place`: whether the code took over a
    /// frame.
    #[must_use]
    pub const fn new(bytes: usize, takes_place: bool) -> Self {
        Self { bytes, takes_place }
    }
}

/// The return addresses hidden by the code that `frame` returns to, the innermost first. Each item
/// has the location on the stack, the return address, and whether it replaces the next return
/// address of the frame-pointer chain. `behind` gives, for a return address, the location of the
/// one that its code hides, if known.
#[inline]
pub fn hidden_returns(
    stack: CurrentStack,
    frame: NativeFrame,
    behind: impl Fn(usize) -> Option<HiddenReturn>,
) -> impl Iterator<Item = (usize, usize, bool)> {
    let at = frame.address();
    let read = || Some((at.checked_add(8)?, stack.word(at.checked_add(8)?)?, stack.word(at)?));
    let mut last = read();
    std::iter::from_fn(move || {
        let (at, address, next) = last.take()?;
        let HiddenReturn { bytes, takes_place } = behind(address)?;
        let place = at.checked_add(8)?.checked_add(bytes)?;
        // The code's own frame and the frame that it took over must have the same caller's frame
        // pointer.
        let end = if takes_place { stack.word(next).filter(|up| stack.word(place - 8) == Some(*up))? } else { next };
        let found = stack.word(place).filter(|_| place < end)?;
        last = Some((place, found, end));
        Some((place, found, takes_place))
    })
}

/// A return address of a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReturnAddress {
    /// The address of the instruction after the call.
    pub address: usize,
    /// The frame pointer of the code at this address. `None` if that code has no frame pointer or
    /// if unknown.
    pub frame_pointer: Option<usize>,
}

impl ReturnAddress {
    /// A return address, with the frame pointer of the code at this address.
    #[must_use]
    pub const fn new(address: usize, frame_pointer: Option<usize>) -> Self {
        Self { address, frame_pointer }
    }
}

/// The chain of frame pointers of a thread, as the last walk found it. The next walk checks the
/// known frames independently of each other instead of following one pointer after another, which
/// takes a fraction of the time. For each frame the chain keeps a `T`: the fold of the return
/// addresses of that frame and of all outer frames. So a fold costs only the new frames.
#[derive(Debug, Default)]
pub struct FrameChain<T = u64> {
    /// The outermost frame first.
    frames: Vec<ChainedFrame>,
    /// For each frame, the fold of the return addresses of this frame and of all outer frames.
    folds: Vec<T>,
    /// Frames that the last walk found and that were not known before, the innermost first.
    fresh: Vec<ChainedFrame>,
    /// Hidden return addresses, outermost frame first.
    hidden: Vec<HiddenWord>,
    /// Generation number of the knowledge that found the hidden return addresses.
    generation: u64,
}

/// One frame.
#[derive(Debug, Clone, Copy)]
struct ChainedFrame {
    /// The frame pointer.
    at: usize,
    /// The word at the frame pointer: the caller's frame pointer.
    up: usize,
    /// The next word: the return address.
    address: usize,
}

/// A hidden return address.
#[derive(Debug, Clone, Copy)]
struct HiddenWord {
    /// Index of the frame that hides it.
    frame: usize,
    place: usize,
    word: usize,
    /// Whether the code that hides it took over a frame.
    takes_place: bool,
}

impl<T: Copy + Default> FrameChain<T> {
    /// Follows the frame pointers from `frame` on, and folds the return addresses with `fold`, from
    /// the default value and the outermost return address on. `None` if there are fewer than
    /// `least` frames. If the stack has more than `most` frames, only the innermost `most` are
    /// folded. `behind` gives, for a return address, the location of the one that its code hides,
    /// if known; hidden return addresses are part of the fold. The caller must change `generation`
    /// each time the answers of `behind` or `fold` change.
    #[inline]
    pub fn follow(
        &mut self,
        stack: CurrentStack,
        frame: NativeFrame,
        (least, most): (usize, usize),
        (generation, behind): (u64, impl Fn(usize) -> Option<HiddenReturn>),
        fold: impl Fn(T, ReturnAddress) -> T,
    ) -> Option<T> {
        if self.generation != generation {
            self.keep(0);
            self.generation = generation;
        }
        let known = self.unchanged(stack, frame.address());
        self.keep(known);
        match self.frames.last() {
            Some(innermost) if innermost.at == frame.address() => {}
            _ => {
                if !self.walk(stack, frame.address(), most) {
                    return Some(self.innermost(stack, most, &behind, &fold));
                }
                self.append(stack, &behind, &fold);
            }
        }
        self.folds.last().filter(|_| self.frames.len() >= least).copied()
    }

    /// Forgets all frames.
    pub fn forget(&mut self) {
        self.keep(0);
    }

    /// Keeps the outermost `known` frames and forgets the others.
    #[inline]
    fn keep(&mut self, known: usize) {
        self.frames.truncate(known);
        self.folds.truncate(known);
        while self.hidden.pop_if(|hidden| hidden.frame >= known).is_some() {}
    }

    /// Number of known frames, counted from the outermost, that are unchanged on the stack,
    /// together with their hidden return addresses. Only frames at `frame` and further out count.
    #[inline]
    fn unchanged(&self, stack: CurrentStack, frame: usize) -> usize {
        // Each frame lies at a lower address than its caller's frame. Frames below `frame` are not
        // read.
        let is_inside = |outermost: &ChainedFrame| outermost.at < stack.end - 8;
        if frame < stack.low || !self.frames.first().is_some_and(is_inside) {
            return 0;
        }
        let is_same = |one: &&ChainedFrame| {
            // SAFETY: aligned, as `CurrentStack` has read both words before, and within the part of
            // the calling thread's stack that is in use; see `CurrentStack::word`.
            let words = || unsafe { [0, 1].map(|at| (one.at as *const usize).add(at).read_volatile()) };
            one.at >= frame && words() == [one.up, one.address]
        };
        let known = self.frames.iter().take_while(is_same).count();
        let inside = self.hidden.iter().take_while(|hidden| hidden.frame < known);
        let changed = inside.copied().find(|hidden| stack.word(hidden.place) != Some(hidden.word));
        changed.map_or(known, |hidden| hidden.frame)
    }

    /// Walks from `frame` to the innermost known frame, or to the end. Returns whether the whole
    /// stack has at most `most` frames.
    fn walk(&mut self, stack: CurrentStack, frame: usize, most: usize) -> bool {
        self.fresh.clear();
        let mut at = frame;
        let mut known = self.frames.len();
        loop {
            // Known frames that the walk skipped belong to an older chain.
            while known > 0 && self.frames[known - 1].at < at {
                known -= 1;
            }
            let is_known = known > 0 && self.frames[known - 1].at == at;
            if is_known || self.fresh.len() >= most {
                break;
            }
            let (Some(address), Some(up)) = (stack.word(at.wrapping_add(8)), stack.word(at)) else {
                known = 0;
                break;
            };
            self.fresh.push(ChainedFrame { at, up, address });
            if up <= at {
                known = 0;
                break;
            }
            at = up;
        }
        self.keep(known);
        self.frames.len() + self.fresh.len() <= most && self.fresh.len() < most
    }

    /// Fold of the innermost `most` frames, from the last walk and the known frames, for a stack
    /// that has too many frames to keep.
    #[cold]
    fn innermost(
        &mut self,
        stack: CurrentStack,
        most: usize,
        behind: &impl Fn(usize) -> Option<HiddenReturn>,
        fold: &impl Fn(T, ReturnAddress) -> T,
    ) -> T {
        let outer = most.saturating_sub(self.fresh.len()).min(self.frames.len());
        let known = self.hidden.len();
        let outer = self.frames[self.frames.len() - outer..].iter();
        outer.chain(self.fresh.iter().rev()).fold(T::default(), |folded, one| {
            let folded = one.fold_into(folded, (stack, 0), (behind, &mut self.hidden), fold);
            self.hidden.truncate(known);
            folded
        })
    }

    /// Moves the frames of `fresh` to the known frames and folds them.
    fn append(
        &mut self,
        stack: CurrentStack,
        behind: &impl Fn(usize) -> Option<HiddenReturn>,
        fold: &impl Fn(T, ReturnAddress) -> T,
    ) {
        let mut folded = self.folds.last().copied().unwrap_or_default();
        for fresh in self.fresh.drain(..).rev() {
            folded = fresh.fold_into(folded, (stack, self.frames.len()), (behind, &mut self.hidden), fold);
            self.frames.push(fresh);
            self.folds.push(folded);
        }
    }
}

impl ChainedFrame {
    /// Adds the return addresses that are hidden behind the frame with this index to `hidden`.
    /// Folds them, the outermost first, and then the return address of the frame itself.
    #[inline]
    fn fold_into<T>(
        &self,
        folded: T,
        (stack, frame): (CurrentStack, usize),
        (behind, hidden): (&impl Fn(usize) -> Option<HiddenReturn>, &mut Vec<HiddenWord>),
        fold: &impl Fn(T, ReturnAddress) -> T,
    ) -> T {
        let first = hidden.len();
        for (place, word, takes_place) in hidden_returns(stack, NativeFrame::new(self.at), behind) {
            hidden.push(HiddenWord { frame, place, word, takes_place });
        }
        let hidden = &hidden[first..];
        let took_over = |hidden: &HiddenWord| hidden.place - 8;
        // The chain of frame pointers skips code that hides its caller: the next frame in the chain
        // is the frame of the outermost hidden return address. Code that took over a frame has its
        // own frame below the one that it took over; both have the same caller's frame pointer.
        let mut frame_pointer = match hidden.last() {
            Some(last) if last.takes_place => stack.word(took_over(last)),
            _ => Some(self.up),
        };
        let mut folded = folded;
        for hidden in hidden.iter().rev() {
            folded = fold(folded, ReturnAddress::new(hidden.word, frame_pointer));
            frame_pointer = hidden.takes_place.then(|| took_over(hidden));
        }
        fold(folded, ReturnAddress::new(self.address, frame_pointer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The fold by a chain without known frames.
    fn number(stack: CurrentStack, at: usize, most: usize) -> Option<u64> {
        follow(&mut FrameChain::default(), stack, at, most)
    }

    /// Code at 2 has no frame, only 8 bytes on the stack. Code at 3 took over a frame.
    fn behind(address: usize) -> Option<HiddenReturn> {
        match address {
            2 => Some(HiddenReturn { bytes: 8, takes_place: false }),
            3 => Some(HiddenReturn { bytes: 80, takes_place: true }),
            _ => None,
        }
    }

    fn mix(mixed: u64, to: ReturnAddress) -> u64 {
        (mixed ^ to.address as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29)
    }

    fn follow(chain: &mut FrameChain, stack: CurrentStack, at: usize, most: usize) -> Option<u64> {
        chain.follow(stack, NativeFrame::new(at), (2, most), (1, behind), mix)
    }

    #[test]
    fn a_chain_that_is_known_has_the_number_of_one_that_is_new() {
        let mut words = [0_usize; 256];
        let at = std::hint::black_box(&mut words).as_mut_ptr().expose_provenance();
        let stack = CurrentStack::here().expect("bounds are known");
        let (mut state, mut numbers) = (1_u64, std::collections::HashSet::new());
        let mut chains = [8, 40, 200].map(|most| (most, FrameChain::default()));
        let mut chance = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for _ in 0..20_000 {
            // Frames of two words or more, from a random place on; some stay as they were.
            let first = 2 * chance(20) as usize;
            let mut frame = first;
            while frame + 8 < 256 {
                let next = frame + 2 + 2 * chance(3) as usize;
                if chance(3) == 0 {
                    std::hint::black_box(&mut words)[frame] = at + next * 8;
                    std::hint::black_box(&mut words)[frame + 1] = chance(4) as usize;
                }
                frame = next;
            }
            let (most, chain) = &mut chains[chance(3) as usize];
            let expected = number(stack, at + first * 8, *most);
            assert_eq!(follow(chain, stack, at + first * 8, *most), expected);
            assert_eq!(follow(chain, stack, at + first * 8, *most), expected, "nothing has changed");
            numbers.insert(expected);
        }
        assert!(numbers.len() > 1_000, "{}", numbers.len());
        std::hint::black_box(&words);
        let [_, _, (_, mut chain)] = chains;
        let elsewhere = move || follow(&mut chain, CurrentStack::here().expect("bounds are known"), at, 40);
        assert_eq!(std::thread::spawn(elsewhere).join().expect("it reads nothing of others"), None);
    }

    #[test]
    fn a_chain_is_its_return_addresses_wherever_its_frames_lie() {
        let mut words = [0_usize; 64];
        let at = std::hint::black_box(&mut words).as_mut_ptr().expose_provenance();
        let stack = CurrentStack::here().expect("bounds are known");
        let mut number_of = |first: usize, apart: usize, addresses: &[usize]| {
            let words = std::hint::black_box(&mut words);
            for (nth, &address) in addresses.iter().enumerate() {
                let frame = first + nth * apart;
                words[frame] = if nth + 1 < addresses.len() { at + (frame + apart) * 8 } else { 0 };
                words[frame + 1] = address;
            }
            number(stack, at + first * 8, 40)
        };
        let first = number_of(0, 2, &[5, 6, 7]);
        assert!(first.is_some());
        assert_eq!(number_of(20, 6, &[5, 6, 7]), first, "elsewhere, and larger frames");
        assert_ne!(number_of(20, 6, &[6, 5, 7]), first, "another order");
        assert_ne!(number_of(20, 6, &[5, 6, 7, 7]), first, "a frame more");
    }

    #[test]
    fn a_chain_stands_for_its_innermost_frames_where_there_are_too_many() {
        let mut words = [0_usize; 64];
        let at = std::hint::black_box(&mut words).as_mut_ptr().expose_provenance();
        let mut set = |frames: usize, outermost: usize| {
            let words = std::hint::black_box(&mut words);
            for frame in 0..frames {
                words[frame * 2] = if frame + 1 < frames { at + frame * 16 + 16 } else { 0 };
                words[frame * 2 + 1] = if frame + 1 < frames { 100 + frame } else { outermost };
            }
        };
        let stack = CurrentStack::here().expect("bounds are known");
        set(10, 7);
        let first = number(stack, at, 8);
        set(20, 9);
        assert_eq!(number(stack, at, 8), first, "what lies further out is not looked at");
        set(8, 7);
        let eight = number(stack, at, 8);
        set(8, 9);
        assert_ne!(number(stack, at, 8), eight);
        set(1, 9);
        assert_eq!(number(stack, at, 8), None, "one is too few");
    }

    /// A stack with these frames: the method; a caller without a frame, with 8 bytes on the stack;
    /// a caller that took over a frame, and that frame; the last frame.
    fn with_hidden(words: &mut [usize; 64], base: usize) -> [usize; 2] {
        let at = |word: usize| base + 8 * word;
        for (word, up, address) in [(0, at(8), 2), (8, at(40), 0xFA), (13, at(40), 0xB2), (40, 0, 0xD1)] {
            (words[word], words[word + 1]) = (up, address);
        }
        words[3] = 0xA2;
        [at(3), at(14)]
    }

    #[test]
    fn what_no_frame_pointer_leads_to_is_part_of_the_number_as_far_as_it_is_known() {
        let mut words = [0_usize; 64];
        let base = std::hint::black_box(&mut words).as_mut_ptr().expose_provenance();
        let stack = CurrentStack::here().expect("bounds are known");
        let [behind_first, taken] = with_hidden(std::hint::black_box(&mut words), base);
        let first = hidden_returns(stack, NativeFrame::new(base), behind);
        assert_eq!(first.collect::<Vec<_>>(), [(behind_first, 0xA2, false)]);
        std::hint::black_box(&mut words)[3] = 3;
        let all = hidden_returns(stack, NativeFrame::new(base), behind);
        assert_eq!(all.collect::<Vec<_>>(), [(behind_first, 3, false), (taken, 0xB2, true)]);
        std::hint::black_box(&mut words)[13] = 0;
        let first = hidden_returns(stack, NativeFrame::new(base), behind);
        assert_eq!(first.count(), 1, "what lies there is no frame that was taken over");
        with_hidden(std::hint::black_box(&mut words), base);
        let (mut chain, mut numbers) = (FrameChain::default(), Vec::new());
        for (word, differs) in [(3, true), (14, false), (30, false), (9, true), (3, true)] {
            let before = follow(&mut chain, stack, base, 40);
            let kept = std::mem::replace(&mut std::hint::black_box(&mut words)[word], 0xEE);
            let after = follow(&mut chain, stack, base, 40);
            assert_eq!(after != before, differs, "{word}");
            assert_eq!(after, number(stack, base, 40), "{word}");
            std::hint::black_box(&mut words)[word] = kept;
            numbers.push(follow(&mut chain, stack, base, 40));
        }
        numbers.dedup();
        assert_eq!(numbers.len(), 1, "all is as it was");
        // Too many frames to be known.
        let few = follow(&mut chain, stack, base, 2);
        std::hint::black_box(&mut words)[3] = 0xEE;
        assert_ne!(follow(&mut chain, stack, base, 2), few);
        std::hint::black_box(&words);
    }

    #[test]
    fn what_became_known_is_part_of_the_number_of_frames_that_are_known() {
        let mut words = [0_usize; 64];
        let base = std::hint::black_box(&mut words).as_mut_ptr().expose_provenance();
        let stack = CurrentStack::here().expect("bounds are known");
        with_hidden(std::hint::black_box(&mut words), base);
        let mut chain = FrameChain::default();
        let mut follow = |generation| {
            let known = |address| if generation > 1 { behind(address) } else { None };
            chain.follow(stack, NativeFrame::new(base), (2, 40), (generation, known), mix)
        };
        let before = follow(1);
        assert_eq!(follow(1), before);
        let after = follow(2);
        assert_ne!(after, before);
        assert_eq!((follow(2), follow(1)), (after, before));
        std::hint::black_box(&words);
    }

    #[test]
    fn the_code_behind_a_return_address_has_the_frame_pointer_that_is_its_own() {
        let mut words = [0_usize; 64];
        let base = std::hint::black_box(&mut words).as_mut_ptr().expose_provenance();
        let stack = CurrentStack::here().expect("bounds are known");
        with_hidden(std::hint::black_box(&mut words), base);
        let place_of = |up: usize| (up - base) / 8;
        let list = |all: [(usize, usize); 6], to: ReturnAddress| {
            let free = all.iter().position(|one| one.0 == 0).expect("room");
            let mut all = all;
            all[free] = (to.address, to.frame_pointer.map_or(0, place_of));
            all
        };
        let follow = || {
            let fold = |all, to: ReturnAddress| {
                list(all, ReturnAddress::new(to.address, to.frame_pointer.filter(|up| *up != 0)))
            };
            FrameChain::default().follow(stack, NativeFrame::new(base), (2, 40), (1, behind), fold)
        };
        // Outermost first. The code at 2 has no frame: the frame pointers lead to the frame of its
        // caller.
        assert_eq!(follow(), Some([(0xD1, 0), (0xFA, 40), (0xA2, 8), (2, 0), (0, 0), (0, 0)]));
        // The code at 3 took over a frame; both frames have the same caller's frame pointer.
        std::hint::black_box(&mut words)[3] = 3;
        assert_eq!(follow(), Some([(0xD1, 0), (0xFA, 40), (0xB2, 40), (3, 13), (2, 0), (0, 0)]));
        std::hint::black_box(&words);
    }
}
