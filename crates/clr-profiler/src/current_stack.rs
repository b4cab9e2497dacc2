//! The calling thread's own stack, word by word.
//!
//! For profilers that walk stacks by themselves because
//! [`ProfilerInfo::stack_here`](crate::ProfilerInfo::stack_here) costs too much: [`CurrentStack`]
//! reads words of the stack and nothing else, [`NativeFrame`] says where the runtime's frames
//! begin, and [`FrameChain`] follows frame pointers.

mod frame_chain;

use std::ffi::c_void;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::OnceLock;

pub use frame_chain::{FrameChain, HiddenReturn, ReturnAddress, hidden_returns};

use crate::{PerThread, os};

/// The frame pointer that the runtime's code had when it called back. As a rule `[frame]` is its
/// caller's frame pointer and `[frame + 8]` the return address, and so on for the callers of the
/// runtime's own code; nothing guarantees that layout, so a walker checks each step.
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
    /// The stack of this thread from this call on. The first call on a thread asks the C library
    /// for its bounds, which may allocate; `None` where it does not know them, or where this code
    /// runs on another stack.
    #[inline]
    pub fn here() -> Option<Self> {
        static ENDS: OnceLock<Option<PerThread<(usize, usize)>>> = OnceLock::new();
        let ends = ENDS.get_or_init(|| PerThread::new(bounds, |_| ()).ok()).as_ref()?;
        let (start, end) = ends.with(|bounds| *bounds);
        let low = (&raw const start).addr() & !7;
        (start <= low && low < end).then_some(Self { low, end, thread: PhantomData })
    }

    /// The addresses of the calling thread's stack: all that it may grow to for a program's first
    /// thread. `None` where the C library does not know, which may allocate.
    #[must_use]
    pub fn bounds() -> Option<Range<usize>> {
        let all = os::stack_bounds()?;
        Some(all.start..all.end & !7)
    }

    /// The word at `address`, where that is an aligned address of this stack above the function
    /// that called [`here`](Self::here).
    #[inline]
    #[must_use]
    pub fn word(&self, address: usize) -> Option<usize> {
        let inside = address >= self.low && address < self.end && address.is_multiple_of(8);
        // SAFETY: within the part of the calling thread's stack that is in use, which is mapped and
        // readable; `end` is a multiple of 8.
        inside.then(|| unsafe { (address as *const usize).read_volatile() })
    }
}

/// Words of a stack as they were once. What was found out by reading them and nothing else is found
/// again where they are the same.
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
        // SAFETY: all addresses are aligned, since `CurrentStack` read from them, and lie between
        // the two bounds, within the part of the calling thread's stack that is in use; see
        // `CurrentStack::word`.
        inside && self.words.iter().all(|&(address, word)| unsafe { (address as *const usize).read_volatile() } == word)
    }
}

/// The calling thread's stack; empty where the C library does not know.
fn bounds() -> (usize, usize) {
    CurrentStack::bounds().map_or((0, 0), |bounds| (bounds.start, bounds.end))
}

/// Beginning of the library that `address` lies in; `None` for compiled methods, data and anything
/// else. Asks the dynamic loader.
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

    #[test]
    fn code_of_libraries_is_told_from_data() {
        let libc = library_of(libc::getpid as *const () as usize);
        assert!(libc.is_some() && libc != library_of(library_of as *const () as usize));
        assert_eq!(library_of((&raw const *Box::new(1)).addr()), None);
    }
}
