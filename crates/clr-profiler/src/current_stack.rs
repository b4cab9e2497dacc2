//! The calling thread's own stack, word by word.
//!
//! For profilers that walk stacks by themselves because [`ProfilerInfo::stack_here`](crate::ProfilerInfo::stack_here) costs too much:
//! [`CurrentStack`] reads words of the stack and nothing else, and [`NativeFrame`] says where the runtime's frames begin.

use std::ffi::c_void;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::OnceLock;

use crate::{PerThread, os};

/// The frame pointer that the runtime's code had when it called back. As a rule `[frame]` is its caller's frame pointer and `[frame + 8]`
/// the return address, and so on for the callers of the runtime's own code; nothing guarantees that layout, so a walker checks each step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NativeFrame(usize);

impl NativeFrame {
    /// The frame whose pointer has this value.
    #[must_use]
    pub const fn new(address: usize) -> Self {
        Self(address)
    }

    /// The frame pointer's value: a number that a walker looks up by [`CurrentStack::word`].
    #[must_use]
    pub const fn address(self) -> usize {
        self.0
    }
}

/// Words on the calling thread's stack from the call on upwards. Belongs to its thread.
#[derive(Clone, Copy, Debug)]
pub struct CurrentStack {
    low: usize,
    end: usize,
    thread: PhantomData<*const ()>,
}

impl CurrentStack {
    /// The stack of this thread from this call on. The first call on a thread asks the C library for its bounds, which may allocate;
    /// `None` where it does not know them, or where this code runs on another stack.
    #[inline]
    pub fn here() -> Option<Self> {
        static ENDS: OnceLock<Option<PerThread<(usize, usize)>>> = OnceLock::new();
        let ends = ENDS.get_or_init(|| PerThread::new(bounds, |_| ()).ok()).as_ref()?;
        let (start, end) = ends.with(|bounds| *bounds);
        let low = (&raw const start).addr() & !7;
        (start <= low && low < end).then_some(Self { low, end, thread: PhantomData })
    }

    /// The addresses of the calling thread's stack: all that it may grow to for a program's first thread. `None` where the C library
    /// does not know, which may allocate.
    #[must_use]
    pub fn bounds() -> Option<Range<usize>> {
        let all = os::stack_bounds()?;
        Some(all.start..all.end & !7)
    }

    /// The word at `address`, where that is an aligned address of this stack above the function that called [`here`](Self::here).
    #[inline]
    #[must_use]
    pub fn word(&self, address: usize) -> Option<usize> {
        let inside = address >= self.low && address < self.end && address.is_multiple_of(8);
        // SAFETY: within the part of the calling thread's stack that is in use, which is mapped and readable; `end` is a multiple of 8.
        inside.then(|| unsafe { (address as *const usize).read_volatile() })
    }
}

/// Words of a stack as they were once. What was found out by reading them and nothing else is found again where they are the same.
#[derive(Debug)]
pub struct StackWords {
    words: Vec<(usize, usize)>,
    /// The lowest and the highest address.
    low: usize,
    high: usize,
}

impl Default for StackWords {
    fn default() -> Self {
        Self { words: Vec::new(), low: usize::MAX, high: 0 }
    }
}

impl StackWords {
    /// Forgets them, but keeps the memory.
    pub fn clear(&mut self) {
        self.words.clear();
        (self.low, self.high) = (usize::MAX, 0);
    }

    /// Number of words.
    #[must_use]
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Reads as [`CurrentStack::word`] does, and keeps the word.
    #[inline]
    pub fn read(&mut self, stack: CurrentStack, address: usize) -> Option<usize> {
        let word = stack.word(address)?;
        self.words.push((address, word));
        (self.low, self.high) = (self.low.min(address), self.high.max(address));
        Some(word)
    }

    /// Whether there are words, and each is what it was, at the same address of `stack`.
    #[inline]
    #[must_use]
    pub fn are_in(&self, stack: CurrentStack) -> bool {
        let inside = !self.words.is_empty() && self.low >= stack.low && self.high < stack.end;
        // SAFETY: all addresses are aligned, since `CurrentStack` read from them, and lie between the two bounds, within the part of the
        // calling thread's stack that is in use; see `CurrentStack::word`.
        inside && self.words.iter().all(|&(address, word)| unsafe { (address as *const usize).read_volatile() } == word)
    }
}

/// Frames that frame pointers lead through, as they were when a thread followed them last. Following them again reads what is still there
/// side by side instead of one after another, which takes a fraction of the time.
#[derive(Debug, Default)]
pub struct FrameChain {
    /// The outermost frame first.
    frames: Vec<ChainedFrame>,
    /// Frames of the last walk that were not there before, innermost first.
    fresh: Vec<ChainedFrame>,
}

/// One frame.
#[derive(Debug, Clone, Copy)]
struct ChainedFrame {
    /// The frame pointer.
    at: usize,
    /// The word there: the caller's frame pointer.
    up: usize,
    /// The word above: the return address.
    address: usize,
    /// Number that stands for the return addresses of this frame and all further out.
    mixed: u64,
}

impl FrameChain {
    /// Follows the frame pointers from `frame` on, and mixes the return addresses into one number by `mix`, beginning with 0 and the outermost;
    /// `None` where there are fewer than `least`. Of a stack of more than `most` frames the number stands for the innermost `most`.
    #[inline]
    pub fn follow(
        &mut self,
        stack: CurrentStack,
        frame: NativeFrame,
        (least, most): (usize, usize),
        mix: impl Fn(u64, usize) -> u64,
    ) -> Option<u64> {
        let known = self.unchanged(stack, frame.address());
        self.frames.truncate(known);
        match self.frames.last() {
            Some(innermost) if innermost.at == frame.address() => {}
            _ => {
                if !self.walk(stack, frame.address(), most) {
                    return Some(self.innermost(most, &mix));
                }
                self.append(&mix);
            }
        }
        self.frames.last().filter(|_| self.frames.len() >= least).map(|innermost| innermost.mixed)
    }

    /// Number of frames, from the outermost on, that lie where they did, at `frame` and further out.
    #[inline]
    fn unchanged(&self, stack: CurrentStack, frame: usize) -> usize {
        // Frames lie at ever lower addresses, and none below `frame` is looked at.
        let is_inside = |outermost: &ChainedFrame| outermost.at < stack.end - 8;
        if frame < stack.low || !self.frames.first().is_some_and(is_inside) {
            return 0;
        }
        let is_same = |one: &&ChainedFrame| {
            // SAFETY: aligned, as `CurrentStack` has read both words before, and within the part of the calling thread's stack that is
            // in use; see `CurrentStack::word`.
            let words = || unsafe { [0, 1].map(|at| (one.at as *const usize).add(at).read_volatile()) };
            one.at >= frame && words() == [one.up, one.address]
        };
        self.frames.iter().take_while(is_same).count()
    }

    /// Walks from `frame` to the innermost of the known frames, or to the end; whether the whole stack has at most so many frames.
    fn walk(&mut self, stack: CurrentStack, frame: usize, most: usize) -> bool {
        self.fresh.clear();
        let mut at = frame;
        let mut known = self.frames.len();
        loop {
            // Known frames that were jumped over belong to a chain of before.
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
            self.fresh.push(ChainedFrame { at, up, address, mixed: 0 });
            if up <= at {
                known = 0;
                break;
            }
            at = up;
        }
        self.frames.truncate(known);
        self.frames.len() + self.fresh.len() <= most && self.fresh.len() < most
    }

    /// Number that stands for the innermost `most` of the frames that were walked last and of those behind them, which are too many to
    /// be known.
    #[cold]
    fn innermost(&mut self, most: usize, mix: &impl Fn(u64, usize) -> u64) -> u64 {
        let behind = most.saturating_sub(self.fresh.len()).min(self.frames.len());
        let outer = self.frames[self.frames.len() - behind..].iter();
        outer.chain(self.fresh.iter().rev()).fold(0, |mixed, one| mix(mixed, one.address))
    }

    /// The fresh frames are known from now on.
    fn append(&mut self, mix: &impl Fn(u64, usize) -> u64) {
        let mut mixed = self.frames.last().map_or(0, |last| last.mixed);
        for fresh in self.fresh.drain(..).rev() {
            mixed = mix(mixed, fresh.address);
            self.frames.push(ChainedFrame { mixed, ..fresh });
        }
    }
}

/// The calling thread's stack; empty where the C library does not know.
fn bounds() -> (usize, usize) {
    CurrentStack::bounds().map_or((0, 0), |bounds| (bounds.start, bounds.end))
}

/// Beginning of the library that `address` lies in; `None` for compiled methods, data and anything else. Asks the dynamic loader.
#[must_use]
pub fn library_of(address: usize) -> Option<usize> {
    // SAFETY: zeroes are a valid value of this plain structure.
    let mut found: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: only compares the address; a valid out-parameter.
    let known = unsafe { libc::dladdr(address as *const c_void, &mut found) } != 0;
    known.then(|| found.dli_fbase.addr())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_words_are_read_and_others_are_not() {
        let words = [11_usize, 22];
        let stack = CurrentStack::here().expect("bounds are known");
        let at = words.as_ptr().addr();
        assert_eq!((stack.word(at), stack.word(at + 8)), (Some(words[0]), Some(words[1])));
        assert_eq!((stack.word(at + 1), stack.word(0), stack.word(usize::MAX & !7)), (None, None, None));
        let heap = Box::new(5_usize);
        assert_eq!(stack.word((&raw const *heap).addr()), None);
        std::thread::spawn(move || assert_eq!(CurrentStack::here().expect("bounds are known").word(at), None))
            .join()
            .expect("it reads nothing of others");
    }

    #[test]
    fn words_are_known_again_until_one_changes() {
        let mut words = [11_usize, 22, 33];
        let stack = CurrentStack::here().expect("bounds are known");
        let at = std::hint::black_box(&mut words).as_mut_ptr().expose_provenance();
        let mut known = StackWords::default();
        assert!(!known.are_in(stack), "nothing is known");
        assert_eq!(
            (known.read(stack, at), known.read(stack, at + 16), known.read(stack, 8)),
            (Some(11), Some(33), None)
        );
        assert!(known.are_in(stack) && known.len() == 2);
        std::hint::black_box(&mut words)[1] = 5;
        assert!(known.are_in(stack), "another word");
        std::hint::black_box(&mut words)[2] = 5;
        assert!(!known.are_in(stack));
        std::hint::black_box(&mut words)[2] = 33;
        assert!(known.are_in(stack));
        let elsewhere = std::thread::spawn(move || known.are_in(CurrentStack::here().expect("bounds are known")));
        assert!(!elsewhere.join().expect("it reads nothing of others"));
        std::hint::black_box(&words);
    }

    /// The number as it is without anything known.
    fn number(stack: CurrentStack, at: usize, most: usize) -> Option<u64> {
        follow(&mut FrameChain::default(), stack, at, most)
    }

    fn follow(chain: &mut FrameChain, stack: CurrentStack, at: usize, most: usize) -> Option<u64> {
        chain.follow(stack, NativeFrame::new(at), (2, most), |mixed, address| {
            (mixed ^ address as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29)
        })
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

    #[test]
    fn code_of_libraries_is_told_from_data() {
        let libc = library_of(libc::getpid as *const () as usize);
        assert!(libc.is_some() && libc != library_of(library_of as *const () as usize));
        assert_eq!(library_of((&raw const *Box::new(1)).addr()), None);
    }
}
