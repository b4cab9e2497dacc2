//! A sample as an engine takes it, before its addresses are looked up.

use std::cell::Cell;
use std::collections::HashMap;
use std::hash::BuildHasherDefault;

use crate::awaiters::CopiedObjects;
use crate::stacks::Mix;

/// The registers by which callers are found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Registers {
    pub(crate) ip: usize,
    pub sp: usize,
    pub(crate) bp: usize,
}

/// Stands for an unknown frame pointer. It is not 0, which is the frame pointer of a thread's first
/// function, the one without a caller.
pub(crate) const UNKNOWN_FRAME: usize = 1;

/// A sample of a thread, with everything that is needed to find its stack.
#[derive(Debug, Default)]
pub(crate) struct RawSample {
    /// Time of the sample in monotonic nanoseconds.
    pub time_ns: u64,
    /// CPU time in nanoseconds that the sample represents.
    pub(crate) weight_ns: u64,
    /// The system's id of the thread.
    pub os_id: u32,
    /// Whether the thread was in the kernel.
    pub(crate) in_kernel: bool,
    /// The registers in user mode; all 0 if unknown.
    pub registers: Registers,
    /// Addresses in the kernel, innermost first.
    pub kernel: Vec<usize>,
    /// Words of the stack from the stack pointer on.
    pub stack: Vec<u64>,
    /// Frame pointers, each with the return address next to it, in ascending order. The word at a
    /// frame pointer is the next frame pointer, unless [`GAP`] or [`DETOUR`] is set in it.
    pub frames: Vec<(usize, usize)>,
    /// Words of the stack that were read after the sample was taken; see
    /// [`read_on`](Self::read_on).
    pub later: LateWords,
    /// Return addresses of frames whose frame pointers are unknown, innermost first. The first
    /// entry is the interrupted instruction.
    pub chain: Vec<usize>,
    /// Copies of the objects that the thread's innermost async method led to.
    pub(super) objects: CopiedObjects,
    /// Registers of the last caller in `chain`, if words that were read later lead on from there.
    pub rest: Option<Registers>,
}

/// Words of a stack that were read after a sample was taken.
#[derive(Debug, Default)]
pub(crate) struct LateWords {
    /// Address of the first word.
    start: usize,
    bytes: Vec<u8>,
    /// Whether one of them was used.
    was_asked: Cell<bool>,
}

impl LateWords {
    fn word(&self, address: usize) -> Option<usize> {
        let above = address.checked_sub(self.start).filter(|_| address.is_multiple_of(8))?;
        self.bytes.get(above..)?.first_chunk().map(|word| usize::from_le_bytes(*word))
    }

    /// Addresses and words from an address on.
    fn words(&self, from: usize) -> impl Iterator<Item = (usize, usize)> {
        let above = from.saturating_sub(self.start) & !7;
        let words = self.bytes.get(above..).unwrap_or_default().as_chunks().0;
        (self.start + above..).step_by(8).zip(words.iter().map(|word| usize::from_le_bytes(*word)))
    }

    /// Drops the words before an address, which becomes the first one.
    fn forget_before(&mut self, address: usize) -> usize {
        self.bytes.drain(..(address - self.start).min(self.bytes.len()));
        address
    }
}

/// Bit of a frame pointer in [`RawSample::frames`]: the word at this frame pointer does not lead to
/// the next one.
pub(crate) const GAP: usize = 1;
/// Bit of a frame pointer in [`RawSample::frames`]: this frame took over the next frame. The word
/// at this frame pointer leads past that frame, to the one behind it.
pub(crate) const DETOUR: usize = 2;
const MARKS: usize = GAP | DETOUR;
/// Bytes before the place where a walk was lost that are compared with the later contents.
const BEFORE: usize = 512;
/// Least number of known words to decide that a stack is unchanged, and number of words that are
/// compared.
const LEAST_KNOWN: usize = 8;
const MOST_COMPARED: usize = 2048;
/// Words of 64 bits of a filter that recognises most words that are not return addresses of a
/// chain.
const FILTER: usize = 64;

impl RawSample {
    /// Empties the sample, but keeps the allocated memory.
    pub(super) fn clear(&mut self) {
        self.registers = Registers::default();
        self.in_kernel = false;
        self.kernel.clear();
        self.stack.clear();
        self.frames.clear();
        self.chain.clear();
        self.later.bytes.clear();
        self.objects.clear();
        self.rest = None;
    }

    /// Moves the sample to interrupted code further out on the same stack, which had these
    /// registers. Does nothing if the registers belong to another stack.
    pub(crate) fn interrupted_at(&mut self, registers: Registers) {
        let below = registers.sp.checked_sub(self.registers.sp & !7).map(|bytes| bytes / 8);
        if let Some(words) = below.filter(|&words| words <= self.stack.len()) {
            self.stack.drain(..words);
            self.registers = registers;
        }
    }

    /// Reads more of the stack where a walk was lost for lack of words, with these registers.
    /// `read` copies the thread's stack as it is now, from an address on, and returns the number of
    /// bytes. Returns whether the stack is still the same. This is so if the known words there and
    /// before are unchanged. It is also so if callers of the chain are still there, whatever they
    /// have called since; then [`rest`](Self::rest) leads on from the chain's end.
    pub(crate) fn read_on(&mut self, lost: Registers, read: impl FnOnce(usize, &mut Vec<u8>)) -> bool {
        let start = lost.sp.saturating_sub(BEFORE).max(self.registers.sp) & !7;
        let mut later = LateWords { start, bytes: std::mem::take(&mut self.later.bytes), ..LateWords::default() };
        read(start, &mut later.bytes);
        let both = later.words(start).filter_map(|(at, now)| Some((self.word_then(at)?, now)));
        let (same, all) = both
            .take(MOST_COMPARED)
            .fold((0, 0), |(same, all), (then, now)| (same + usize::from(then == now), all + 1));
        let mut is_same = all >= LEAST_KNOWN && 10 * same >= 9 * all;
        if !is_same {
            let rest = self.end_of_chain(lost, &later);
            is_same = rest.is_some();
            match rest {
                Some((frame, rest)) => (later.start, self.rest) = (later.forget_before(frame), Some(rest)),
                None => later.bytes.clear(),
            }
        }
        self.later = later;
        is_same
    }

    /// Return addresses of the chain beyond a frame.
    pub(crate) fn chain_beyond(&self, frame: Registers) -> Option<&[usize]> {
        let known = self.chain.iter().rposition(|&address| address == frame.ip);
        // The chain begins at the frame pointer, whatever frame that belongs to.
        let begins_here = || (frame.bp == self.registers.bp && !self.chain.is_empty()).then_some(0);
        self.chain.get(known.or_else(begins_here)? + 1..)
    }

    /// The place in the later words from which frame pointers lead to the callers at the end of the
    /// chain, as many as there are, and the registers of the outermost of these callers; `None` if
    /// the callers are found more than once.
    fn end_of_chain(&self, lost: Registers, later: &LateWords) -> Option<(usize, Registers)> {
        let chain = self.chain_beyond(lost)?;
        // The first position of each address in the chain that is followed by enough others.
        let mut places: HashMap<usize, usize, BuildHasherDefault<Mix>> = HashMap::default();
        for (at, &address) in chain.iter().enumerate().take(chain.len().saturating_sub(LEAST_KNOWN - 1)) {
            places.entry(address).or_insert(at);
        }
        if places.is_empty() {
            return None;
        }
        let outermost = |mut frame: usize, callers: &[usize]| {
            let mut registers = Registers::default();
            for &ip in callers {
                if frame < later.start || later.word(frame + 8)? != ip {
                    return None;
                }
                registers = Registers { ip, sp: frame + 16, bp: later.word(frame)? };
                frame = registers.bp;
            }
            Some(registers)
        };
        let mut found: Option<(usize, usize, Registers)> = None;
        let mut is_only = true;
        // Hardly any word is one of them: the filter recognises most without a look-up.
        let bit = |word: usize| (word ^ word >> 12) % (64 * FILTER);
        let mut filter = [0_u64; FILTER];
        places.keys().for_each(|&word| filter[bit(word) / 64] |= 1 << (bit(word) % 64));
        for (at, word) in later.words(lost.sp.max(later.start) + 8) {
            if filter[bit(word) / 64] >> (bit(word) % 64) & 1 == 0 {
                continue;
            }
            let Some(&first) = places.get(&word) else { continue };
            let Some(registers) = outermost(at - 8, &chain[first..]) else { continue };
            match found {
                Some((known, ..)) if known < first => {}
                Some((known, ..)) if known == first => is_only = false,
                _ => (found, is_only) = (Some((first, at - 8, registers)), true),
            }
        }
        found.filter(|_| is_only).map(|(_, frame, registers)| (frame, registers))
    }

    /// The word at an address of the thread's stack; `None` if the sample does not hold it.
    pub(super) fn word(&self, address: usize) -> Option<usize> {
        self.word_then(address).or_else(|| self.later.word(address).inspect(|_| self.later.was_asked.set(true)))
    }

    /// Whether [`word`](Self::word) has returned a word that was read later, since the last call.
    /// In the meantime the thread may have returned, and called other functions. That leaves words
    /// below its stack pointer unchanged, so a comparison of the stack may prove nothing.
    pub(crate) fn took_later(&self) -> bool {
        self.later.was_asked.take()
    }

    /// The word at an address when the sample was taken.
    pub(super) fn word_then(&self, address: usize) -> Option<usize> {
        let base = self.registers.sp & !7;
        let copied = address.checked_sub(base).filter(|_| address.is_multiple_of(8));
        if let Some(word) = copied.and_then(|above| self.stack.get(above / 8)) {
            return Some(*word as usize);
        }
        let at = self.frame_at(address)?;
        let (frame, return_address) = self.frames[at];
        match address - (frame & !MARKS) {
            0 if frame & MARKS == 0 => self.next(at + 1),
            0 if frame & MARKS == DETOUR => self.next(at + 2),
            // Not a frame, in any case.
            0 => Some(0),
            8 => Some(return_address),
            _ => None,
        }
    }

    /// The index of the last frame that is not above an address.
    fn frame_at(&self, address: usize) -> Option<usize> {
        self.frames.partition_point(|(frame, _)| frame & !MARKS <= address).checked_sub(1)
    }

    fn next(&self, at: usize) -> Option<usize> {
        self.frames.get(at).map(|(frame, _)| frame & !MARKS)
    }

    /// The frames that the engine found from `start` on, with their return addresses.
    pub(crate) fn frames_from(&self, start: usize) -> impl Iterator<Item = (usize, usize)> {
        let at = self.frames.partition_point(|(frame, _)| frame & !MARKS < start);
        self.frames[at..].iter().map(|&(frame, return_address)| (frame & !MARKS, return_address))
    }

    /// The first place from `start` on that looks like a frame. Either it leads to another frame
    /// further up, and `is_return_address` accepts the return addresses of both. Or it returns to
    /// the code in which threads start, as `is_start_of_thread` tells. That code keeps no frame
    /// pointers, so the saved word leads to no frame.
    pub(crate) fn find_frame(
        &self,
        start: usize,
        mut is_return_address: impl FnMut(usize) -> bool,
        is_start_of_thread: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let mut is_frame = |at: usize| self.word(at + 8).is_some_and(&mut is_return_address);
        (start.next_multiple_of(8)..).step_by(8).take(2048).map_while(|at| Some((at, self.word(at)?))).find_map(
            |(at, next)| {
                let leads = next > at + 8 && next - at < 1 << 16 && next.is_multiple_of(8);
                let is_last = || self.word(at + 8).is_some_and(&is_start_of_thread);
                (leads && is_frame(next) && is_frame(at) || is_last()).then_some(at)
            },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `read` in a loop that only `start_thread` called was once an incomplete stack, because no
    /// frame leads on from there.
    #[test]
    fn a_frame_that_returns_to_the_start_of_the_thread_leads_to_no_other() {
        // The return address of a finished call; then the frame: the caller's register and the
        // return address.
        let stack = vec![9, 77, 8, 0xFFFF_FFFF, 99, 0];
        let sample = RawSample { registers: Registers { ip: 1, sp: 0x1000, bp: 1 }, stack, ..RawSample::default() };
        let find = |start| sample.find_frame(0x1000, |ip| ip == 77 || ip == 99, |ip| ip == start);
        assert_eq!([find(99), find(98)], [Some(0x1018), None]);
    }

    #[test]
    fn a_stack_is_read_on_where_it_is_the_same_still() {
        let stack: Vec<u64> = (1..=16).collect();
        let registers = Registers { ip: 1, sp: 0x1000, bp: 0 };
        let mut sample = RawSample { registers, stack: stack.clone(), ..RawSample::default() };
        let lost = Registers { ip: 2, sp: 0x1080, bp: 0 };
        let read = |words: Vec<u64>| {
            move |from: usize, into: &mut Vec<u8>| {
                assert_eq!(from, 0x1000);
                *into = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            }
        };
        let later = |other: u64| {
            stack.iter().copied().chain([other, 88]).map(|word| if word == 3 { other } else { word }).collect()
        };
        assert!(sample.read_on(lost, read(later(77))));
        assert_eq!((sample.word(0x1010), sample.took_later()), (Some(3), false));
        assert_eq!((sample.word(0x1080), sample.took_later(), sample.took_later()), (Some(77), true, false));
        assert_eq!([0x1088, 0x1090].map(|at| sample.word(at)), [Some(88), None]);
        assert!(!sample.read_on(lost, read(vec![9; 20])) && sample.word(0x1080).is_none(), "another stack");
        assert!(!sample.read_on(lost, read(Vec::new())), "the thread is gone");
    }

    /// In a program that starts with long chains of continuations, a tenth of the stacks was
    /// truncated. Types were loaded below the chains, and others when the rest of the stack was
    /// read.
    #[test]
    fn a_stack_is_read_on_from_the_end_of_the_chain_whatever_its_callers_have_called_since() {
        let registers = Registers { ip: 7, sp: 0x1000, bp: 0x1010 };
        let sample = |chain| RawSample { registers, stack: vec![1; 2], chain, ..RawSample::default() };
        // The words of later calls, and ten frames: a word of their own, the next frame, the return
        // address.
        let frames = (0..10_u64).flat_map(|at| [55, 0x1020 + 24 * (at + 1) + 8, 100 + at]);
        let read = |from: usize, into: &mut Vec<u8>| {
            assert_eq!(from, 0x1000);
            *into = [8, 9, 10, 11].into_iter().chain(frames.clone()).flat_map(u64::to_le_bytes).collect();
        };
        // The frame below them is gone; the chain ends before they do.
        let chain: Vec<usize> = [7, 66].into_iter().chain(100..109).collect();
        let mut same = sample(chain.clone());
        assert!(same.read_on(registers, read));
        assert_eq!(same.rest, Some(Registers { ip: 108, sp: 0x1028 + 8 * 24 + 16, bp: 0x1028 + 9 * 24 }));
        assert_eq!([0x1018, 0x1020, 0x1028, 0x1030].map(|at| same.word(at)), [None, None, Some(0x1040), Some(100)]);
        let mut other = sample(chain.iter().map(|&ip| if ip == 105 { 99 } else { ip }).collect());
        assert!(!other.read_on(registers, read) && other.rest.is_none(), "another caller");
        assert!(!sample(chain[..9].to_vec()).read_on(registers, read), "too few to tell");
    }

    #[test]
    fn words_are_those_of_the_stack_and_of_frames_further_up() {
        let sample = RawSample {
            registers: Registers { ip: 1, sp: 0x1000, bp: 0x2000 },
            stack: vec![5, 6],
            frames: vec![(0x2000, 77), (0x3000 | GAP, 88), (0x4000, 99)],
            ..RawSample::default()
        };
        assert_eq!(
            [0x1000, 0x1008, 0x1010, 0xFF8, 0x1001].map(|at| sample.word(at)),
            [Some(5), Some(6), None, None, None]
        );
        assert_eq!([0x2000, 0x2008, 0x2010].map(|at| sample.word(at)), [Some(0x3000), Some(77), None]);
        assert_eq!([0x3000, 0x3008, 0x4000, 0x4008].map(|at| sample.word(at)), [Some(0), Some(88), None, Some(99)]);
    }
}
