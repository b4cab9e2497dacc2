//! The calling thread's own stack, word by word.
//!
//! For profilers that walk stacks by themselves because [`ProfilerInfo::stack_here`](crate::ProfilerInfo::stack_here) costs too much:
//! [`CurrentStack`] reads words of the stack and nothing else, [`NativeFrame`] says where the runtime's frames begin, and [`FrameShape`]
//! how many bytes the frame of a compiled method has.

use std::ffi::c_void;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::OnceLock;

use crate::PerThread;

/// The frame pointer that the runtime's code had when it called back. As a rule `[frame]` is its caller's frame pointer and `[frame + 8]`
/// the return address, and so on for the callers of the runtime's own code; nothing guarantees that layout, so a walker checks each step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NativeFrame(pub usize);

impl NativeFrame {
    /// Frame pointer of the caller, if the compiler has kept it; else any number.
    #[inline(always)]
    pub(crate) fn of_caller() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            let frame: usize;
            // SAFETY: reads a register.
            unsafe { std::arch::asm!("mov {}, rbp", out(reg) frame, options(nomem, nostack, preserves_flags)) };
            Self(frame)
        }
        #[cfg(not(target_arch = "x86_64"))]
        Self(0)
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
    pub fn bounds() -> Option<Range<usize>> {
        // SAFETY: an attribute object that is initialised by the call that succeeds and destroyed after use.
        let (start, bytes) = unsafe {
            let mut attributes: libc::pthread_attr_t = std::mem::zeroed();
            if libc::pthread_getattr_np(libc::pthread_self(), &mut attributes) != 0 {
                return None;
            }
            let (mut start, mut bytes) = (std::ptr::null_mut::<c_void>(), 0);
            let known = libc::pthread_attr_getstack(&attributes, &mut start, &mut bytes) == 0;
            libc::pthread_attr_destroy(&mut attributes);
            (known && bytes > 0).then_some((start.addr(), bytes))?
        };
        Some(start..(start + bytes) & !7)
    }

    /// The word at `address`, where that is an aligned address of this stack above the function that called [`here`](Self::here).
    #[inline]
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

    /// How many.
    pub fn len(&self) -> usize {
        self.words.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// As [`CurrentStack::word`], and keeps what it reads.
    #[inline]
    pub fn read(&mut self, stack: CurrentStack, address: usize) -> Option<usize> {
        let word = stack.word(address)?;
        self.words.push((address, word));
        (self.low, self.high) = (self.low.min(address), self.high.max(address));
        Some(word)
    }

    /// Whether there are words, and each is what it was, at the same address of `stack`.
    #[inline]
    pub fn are_in(&self, stack: CurrentStack) -> bool {
        let inside = !self.words.is_empty() && self.low >= stack.low && self.high < stack.end;
        // SAFETY: all addresses are aligned, since `CurrentStack` read from them, and lie between the two bounds, within the part of the
        // calling thread's stack that is in use; see `CurrentStack::word`.
        inside && self.words.iter().all(|&(address, word)| unsafe { (address as *const usize).read_volatile() } == word)
    }
}

/// The calling thread's stack; empty where the C library does not know.
fn bounds() -> (usize, usize) {
    CurrentStack::bounds().map_or((0, 0), |bounds| (bounds.start, bounds.end))
}

/// Where the library begins that `address` lies in; `None` for compiled methods, data and anything else. Asks the dynamic loader.
pub fn library_of(address: usize) -> Option<usize> {
    // SAFETY: zeroes are a valid value of this plain structure.
    let mut found: libc::Dl_info = unsafe { std::mem::zeroed() };
    // SAFETY: only compares the address; a valid out-parameter.
    let known = unsafe { libc::dladdr(address as *const c_void, &mut found) } != 0;
    known.then(|| found.dli_fbase.addr())
}

/// The frame of a compiled method, as its prolog makes it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameShape {
    /// From the stack pointer in the method's body to that of its caller after the return. Not so in a method that allocates on the
    /// stack and in funclets. A method that took over a running frame (OSR) has that one beneath its own, of which this is the size.
    pub bytes: usize,
    /// The caller's frame pointer is the word below the return address.
    pub keeps_frame_pointer: bool,
}

impl FrameShape {
    /// From a method's first bytes of x64 code; `None` for a prolog that is not understood.
    pub fn of_prolog(code: &[u8]) -> Option<Self> {
        let mut shape = Self { bytes: 8, keeps_frame_pointer: code.first() == Some(&0x55) };
        let mut rest = code;
        // mov rax, [rbp]; push rax: what takes over a running frame keeps its caller's frame pointer.
        if let [0x48, 0x8B, 0x45, 0x00, 0x50, after @ ..] = code {
            (shape.bytes, shape.keeps_frame_pointer, rest) = (16, true, after);
        }
        loop {
            rest = match rest {
                // push of an old register, of a new one
                [0x50..=0x57, rest @ ..] | [0x41, 0x50..=0x57, rest @ ..] => {
                    shape.bytes += 8;
                    rest
                }
                // vzeroupper
                [0xC5, 0xF8, 0x77, rest @ ..] => rest,
                // sub rsp, and nothing after it moves the stack pointer
                [0x48, 0x83, 0xEC, bytes @ 0..0x80, ..] => {
                    shape.bytes += usize::from(*bytes);
                    break;
                }
                [0x48, 0x81, 0xEC, a, b, c, d, ..] => {
                    shape.bytes += u32::from_le_bytes([*a, *b, *c, *d]) as usize;
                    break;
                }
                // lea r11, [rsp - n]: a large frame, page by page
                [0x4C, 0x8D, 0x9C, 0x24, ..] => return None,
                [] => return None,
                _ => break,
            };
        }
        // The caller has an aligned stack.
        (shape.bytes.is_multiple_of(16) && shape.bytes < 1 << 20).then_some(shape)
    }
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

    #[test]
    fn prologs_say_how_large_the_frame_is() {
        let shape = |code: &[u8]| FrameShape::of_prolog(code).map(|shape| (shape.bytes, shape.keeps_frame_pointer));
        // push rbp; push r15; push rbx; sub rsp, 0x10; lea rbp, [rsp+0x20]; mov rbx, rdi
        let framed = [0x55, 0x41, 0x57, 0x53, 0x48, 0x83, 0xEC, 0x10, 0x48, 0x8D, 0x6C, 0x24, 0x20, 0x48, 0x8B, 0xDF];
        assert_eq!(shape(&framed), Some((8 + 24 + 0x10, true)));
        // push rax; call
        assert_eq!(shape(&[0x50, 0xE8, 0, 0, 0, 0]), Some((16, false)));
        // push rbp; vzeroupper; sub rsp, 0x110
        assert_eq!(shape(&[0x55, 0xC5, 0xF8, 0x77, 0x48, 0x81, 0xEC, 0x10, 1, 0, 0]), Some((16 + 0x110, true)));
        // mov rax, [rbp]; push rax; sub rsp, 0x80
        let osr = [0x48, 0x8B, 0x45, 0, 0x50, 0x48, 0x81, 0xEC, 0x80, 0, 0, 0];
        assert_eq!(shape(&osr), Some((0x90, true)));
        // A frame larger than a page, and one that no call could be made from.
        assert_eq!(shape(&[0x55, 0x4C, 0x8D, 0x9C, 0x24, 0, 0, 0xFF, 0xFF]), None);
        assert_eq!((shape(&[0x90]), shape(&[])), (None, None));
    }
}
