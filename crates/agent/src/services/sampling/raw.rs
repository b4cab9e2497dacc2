//! A sample as an engine takes it, before anybody looked at its addresses.

/// Registers that lead to the callers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Registers {
    pub(crate) ip: usize,
    pub(crate) sp: usize,
    pub(crate) bp: usize,
}

/// Frame pointer that nobody knows. Not 0: that is the one of a thread's first function, which has no caller.
pub(crate) const UNKNOWN_FRAME: usize = 1;

/// A sample.
#[derive(Debug, Default)]
pub(crate) struct RawSample {
    /// Monotonic nanoseconds.
    pub(crate) time_ns: u64,
    /// CPU time that it stands for.
    pub(crate) weight_ns: u64,
    /// The system's number of the thread.
    pub(crate) os_id: u32,
    /// The thread was in the kernel.
    pub(crate) in_kernel: bool,
    /// The registers in user mode; all 0 where they are not known.
    pub(crate) registers: Registers,
    /// Addresses in the kernel, innermost first.
    pub(crate) kernel: Vec<usize>,
    /// Words of the stack from the stack pointer on.
    pub(crate) stack: Vec<u64>,
    /// Frame pointers with the return addresses beside them, by ascending frame pointer. The word at a frame pointer is the
    /// next one, unless [`GAP`] or [`DETOUR`] is set in it.
    pub(crate) frames: Vec<(usize, usize)>,
    /// Words that were read a moment later, after the address of the first; see [`read_on`](Self::read_on).
    pub(crate) later: (usize, Vec<u64>),
    /// Return addresses as found by frame pointers that nobody knows, the innermost first; the first is the interrupted
    /// instruction.
    pub(crate) chain: Vec<usize>,
}

/// Bit of a frame pointer in [`RawSample::frames`]: what lies there does not lead to the next one.
pub(crate) const GAP: usize = 1;
/// Bit of a frame pointer in [`RawSample::frames`]: the next one is that of the frame it took over; what lies here leads
/// to the one after that.
pub(crate) const DETOUR: usize = 2;
const MARKS: usize = GAP | DETOUR;
/// Bytes before the place where a walk was lost that are compared with what lies there later.
const BEFORE: usize = 512;
/// Words that must be known to say that a stack is the same still.
const LEAST_KNOWN: usize = 8;

impl RawSample {
    /// Empties the sample but keeps its memory.
    pub(crate) fn clear(&mut self) {
        self.registers = Registers::default();
        self.in_kernel = false;
        self.kernel.clear();
        self.stack.clear();
        self.frames.clear();
        self.chain.clear();
        self.later.1.clear();
    }

    /// Reads on where a walk was lost for want of words: `read` copies the thread's stack as it is now, from an address on. Whether
    /// it is the same stack still: what is known of it from `lost_at` on, and of the words before, stands there as it was.
    pub(crate) fn read_on(&mut self, lost_at: usize, read: impl FnOnce(usize) -> Vec<u64>) -> bool {
        let start = lost_at.saturating_sub(BEFORE).max(self.registers.sp) & !7;
        let later = read(start);
        let both = (start..).step_by(8).zip(&later).filter_map(|(at, &now)| Some((self.word(at)?, now as usize)));
        let (same, all) = both.fold((0, 0), |(same, all), (then, now)| (same + usize::from(then == now), all + 1));
        let is_same = all >= LEAST_KNOWN && 10 * same >= 9 * all;
        self.later = (start, if is_same { later } else { Vec::new() });
        is_same
    }

    /// The word at an address of the thread's stack, as far as the sample holds it.
    pub(crate) fn word(&self, address: usize) -> Option<usize> {
        self.word_then(address).or_else(|| {
            let (start, words) = &self.later;
            let above = address.checked_sub(*start).filter(|_| address.is_multiple_of(8))?;
            words.get(above / 8).map(|word| *word as usize)
        })
    }

    /// The word at an address when the sample was taken.
    fn word_then(&self, address: usize) -> Option<usize> {
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
            // No frame, whatever it is.
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

    /// Place of the frame that the one at `frame` took over: its frame pointer holds the same as the one that took over, further up.
    pub(crate) fn taken_over_by(
        &self,
        frame: usize,
        mut is_return_address: impl FnMut(usize) -> bool,
    ) -> Option<usize> {
        if let Some(at) = self.frame_at(frame).filter(|&at| self.frames[at].0 == frame | DETOUR) {
            return self.next(at + 1);
        }
        let next = self.word(frame)?;
        (frame + 16..next).step_by(8).take(1024).find(|&at| {
            // Other words may hold the same by chance.
            self.word(at) == Some(next) && self.word(at + 8).is_some_and(&mut is_return_address)
        })
    }

    /// The frames that the engine found from `start` on, with their return addresses.
    pub(crate) fn frames_from(&self, start: usize) -> impl Iterator<Item = (usize, usize)> {
        let at = self.frames.partition_point(|(frame, _)| frame & !MARKS < start);
        self.frames[at..].iter().map(|&(frame, return_address)| (frame & !MARKS, return_address))
    }

    /// The first place from `start` on that looks like a frame: it leads to another one further up, and both have return
    /// addresses that `is_return_address` agrees to. Or it returns to where threads start, by `is_start_of_thread`: that code keeps no frame
    /// pointers, so whatever lies there leads to none.
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

    #[test]
    fn the_frame_that_was_taken_over_leads_where_the_one_above_leads() {
        // What took over at 0x1000; a word that is the same by chance; the frame it took over; another one.
        let stack = vec![0x1050, 11, 0x1050, 12, 0x1050, 77, 0, 0, 0, 0, 0x2000, 88];
        let sample =
            RawSample { registers: Registers { ip: 1, sp: 0x1000, bp: 0x1000 }, stack, ..RawSample::default() };
        assert_eq!(sample.taken_over_by(0x1000, |ip| ip == 77), Some(0x1020));
        assert_eq!(sample.taken_over_by(0x1000, |_| false), None);
        let frames = vec![(0x1000 | DETOUR, 11), (0x1020, 77), (0x1050, 88)];
        let noted = RawSample { frames, ..RawSample::default() };
        assert_eq!(noted.taken_over_by(0x1000, |_| false), Some(0x1020));
    }

    /// `read` in a loop that only `start_thread` called was no whole stack: no frame leads on from there.
    #[test]
    fn a_frame_that_returns_to_the_start_of_the_thread_leads_to_no_other() {
        // A return address of a call that is over; the frame, its caller's register and where it returns to.
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
        let later = |from: usize, other: u64| {
            assert_eq!(from, 0x1000);
            stack.iter().copied().chain([other, 88]).map(|word| if word == 3 { other } else { word }).collect()
        };
        assert!(sample.read_on(0x1080, |from| later(from, 77)));
        assert_eq!([0x1010, 0x1080, 0x1088, 0x1090].map(|at| sample.word(at)), [Some(3), Some(77), Some(88), None]);
        assert!(!sample.read_on(0x1080, |_| vec![9; 20]) && sample.word(0x1080).is_none(), "another stack");
        assert!(!sample.read_on(0x1080, |_| Vec::new()), "the thread is gone");
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
