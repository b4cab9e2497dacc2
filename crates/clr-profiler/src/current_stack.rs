//! The calling thread's own stack, word by word.
//!
//! For profilers that walk stacks by themselves because
//! [`ProfilerInfo::stack_here`](crate::ProfilerInfo::stack_here) costs too much. [`CurrentStack`]
//! reads words of the stack and no other memory, [`NativeFrame`] is the frame pointer at which the
//! walk begins, and [`FrameChain`] follows frame pointers.

mod frame_chain;

use std::ffi::c_void;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::OnceLock;

pub use frame_chain::{FrameChain, HiddenReturn, ReturnAddress, hidden_returns};

use crate::{PerThread, os};

/// The frame pointer of the runtime's code that called the callback. As a rule the word at
/// `[frame]` is the frame pointer of the caller of that code, and the word at `[frame + 8]` is the
/// return address; each further frame has the same layout. Nothing guarantees this layout, so a
/// stack walker checks each step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NativeFrame(usize);

impl NativeFrame {
    /// The frame with this frame pointer.
    #[must_use]
    pub const fn new(address: usize) -> Self {
        Self(address)
    }

    /// The value of the frame pointer, for [`CurrentStack::word`].
    #[must_use]
    pub const fn address(self) -> usize {
        self.0
    }
}

/// The part of the calling thread's stack above the call of [`here`](Self::here). Usable on that
/// thread only.
#[derive(Clone, Copy, Debug)]
pub struct CurrentStack {
    low: usize,
    end: usize,
    thread: PhantomData<*const ()>,
}

impl CurrentStack {
    /// The stack of this thread, from this call upwards. The first call on a thread gets the bounds
    /// of the stack from the C library, which may allocate. `None` if the C library does not know
    /// them, or if this code runs on another stack.
    #[inline]
    pub fn here() -> Option<Self> {
        static ENDS: OnceLock<Option<PerThread<(usize, usize)>>> = OnceLock::new();
        let ends = ENDS.get_or_init(|| PerThread::new(bounds, |_| ()).ok()).as_ref()?;
        let (start, end) = ends.with(|bounds| *bounds);
        let low = (&raw const start).addr() & !7;
        (start <= low && low < end).then_some(Self { low, end, thread: PhantomData })
    }

    /// The address range of the calling thread's stack. For the first thread of the program this
    /// includes the range for the stack's growth. `None` if the C library does not know the range.
    /// The C library may allocate.
    #[must_use]
    pub fn bounds() -> Option<Range<usize>> {
        let all = os::stack_bounds()?;
        Some(all.start..all.end & !7)
    }

    /// The word at `address`. `None` unless `address` is aligned, and on this stack above the
    /// function that called [`here`](Self::here).
    #[inline]
    #[must_use]
    pub fn word(&self, address: usize) -> Option<usize> {
        let inside = address >= self.low && address < self.end && address.is_multiple_of(8);
        // SAFETY: within the part of the calling thread's stack that is in use, which is mapped and
        // readable; `end` is a multiple of 8.
        inside.then(|| unsafe { (address as *const usize).read_volatile() })
    }
}

/// Words of a stack, recorded while a stack walk read them. If the stack still has the same words,
/// a walk that reads only these words gives the same result.
#[derive(Debug)]
pub struct StackWords {
    words: Vec<(usize, usize)>,
    /// The lowest address read; the next field is the highest.
    low: usize,
    high: usize,
}

impl Default for StackWords {
    fn default() -> Self {
        Self { words: Vec::new(), low: usize::MAX, high: 0 }
    }
}

impl StackWords {
    /// Removes all words, but keeps the memory.
    pub fn clear(&mut self) {
        self.words.clear();
        (self.low, self.high) = (usize::MAX, 0);
    }

    /// Number of words.
    #[must_use]
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// Whether there are no words.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Reads a word like [`CurrentStack::word`], and records it.
    #[inline]
    pub fn read(&mut self, stack: CurrentStack, address: usize) -> Option<usize> {
        let word = stack.word(address)?;
        self.words.push((address, word));
        (self.low, self.high) = (self.low.min(address), self.high.max(address));
        Some(word)
    }

    /// Whether there are recorded words and `stack` still has each of them at its address.
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

/// The bounds of the calling thread's stack; an empty range if the C library does not know them.
fn bounds() -> (usize, usize) {
    CurrentStack::bounds().map_or((0, 0), |bounds| (bounds.start, bounds.end))
}

/// Start address of the library that contains `address`; `None` for compiled methods, data and all
/// other addresses. Queries the dynamic loader.
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
