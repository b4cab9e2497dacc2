//! The stacks of threads at their last samples.
//!
//! Between two samples a thread seldom returns from more than its innermost calls. A frame is
//! unchanged as long as its return address is. So a walk can stop when it reaches a frame of the
//! last stack with the same registers, and the return addresses of all frames further out are
//! unchanged: these frames are those of the last stack. So only changed frames cost time, in walks
//! and in the search for stack numbers.

use std::collections::HashMap;
use std::hash::BuildHasherDefault;
use std::ops::Range;

use super::raw::{RawSample, Registers};
use super::walked::WalkedFrame;
use crate::stacks::Mix;

/// Most threads that are remembered.
const MOST: usize = 256;
/// Least number of unchanged return addresses, if a sample does not hold all of them.
const LEAST: usize = 8;

/// The stack of a thread at its last sample with a complete stack.
#[derive(Debug, Default)]
pub(super) struct LastStack {
    /// Frames, from the outermost inwards, each with the number of the stack that ends there.
    frames: Vec<(WalkedFrame, u32)>,
}

/// The last stacks of all threads.
#[derive(Debug, Default)]
pub(super) struct LastStacks(HashMap<u32, LastStack, BuildHasherDefault<Mix>>);

/// Comparison of a sample with the last stack of its thread.
pub(super) struct Comparison<'a> {
    last: &'a LastStack,
    /// Indices of the frames at which a walk may join the stack.
    places: Range<usize>,
}

impl LastStacks {
    /// Returns the last stack of a thread; an empty one for a new thread.
    pub(super) fn stack_of_thread(&mut self, os_id: u32) -> &mut LastStack {
        if self.0.len() >= MOST && !self.0.contains_key(&os_id) {
            self.0.clear();
        }
        self.0.entry(os_id).or_default()
    }

    /// Forgets all stacks, as code was unloaded and they may be wrong.
    pub(super) fn forget(&mut self) {
        self.0.values_mut().for_each(LastStack::forget);
    }
}

impl LastStack {
    /// Forgets the stack, but keeps the allocated memory.
    pub(super) fn forget(&mut self) {
        self.frames.clear();
    }

    /// Frames from the outermost to the one with this index; empty once the stack is forgotten.
    pub(super) fn frames_to(&self, index: usize) -> &[(WalkedFrame, u32)] {
        self.frames.get(..=index).unwrap_or_default()
    }

    /// Replaces the innermost frames. `fresh` are the new frames, innermost first; the previous
    /// frames from the outermost to `joined` stay. `numbers` are those of the new frames, outermost
    /// first.
    pub(super) fn replace_innermost(&mut self, joined: Option<usize>, fresh: &[WalkedFrame], numbers: &[u32]) {
        self.frames.truncate(joined.map_or(0, |index| index + 1));
        self.frames.extend(fresh.iter().rev().copied().zip(numbers.iter().copied()));
    }

    /// Compares a sample of the thread with the stack.
    pub(super) fn compare(&self, sample: &RawSample) -> Comparison<'_> {
        let (mut seen, mut unseen, mut first, mut end) = (0, 0, 0, 0);
        // The innermost frame was interrupted, and is not at a call.
        let callers = self.frames.split_last().map_or(&[][..], |(_, callers)| callers);
        for (index, (frame, _)) in callers.iter().enumerate() {
            let Registers { ip, sp, .. } = frame.registers;
            match sp.checked_sub(8) {
                Some(at) if at < sample.registers.sp => break,
                Some(at) => match sample.word(at) {
                    // An earlier guess may be certain now, as the sample holds the words.
                    Some(word) if word == ip && frame.marks.guessed => break,
                    Some(word) if word == ip => seen += 1,
                    Some(_) => break,
                    None => unseen += 1,
                },
                None => unseen += 1,
            }
            if unseen > 0 && seen < LEAST {
                first = index + 1;
            }
            end = index + 1;
        }
        Comparison { last: self, places: first..end.max(first) }
    }
}

impl Comparison<'_> {
    /// The index of the previous frame that has these registers, if everything further out is
    /// unchanged. Must be called for the frames of a walk from the innermost outwards.
    pub(super) fn joins(&mut self, registers: Registers) -> Option<usize> {
        let frame = |index: usize| self.last.frames[index].0.registers;
        while !self.places.is_empty() && (1..registers.sp).contains(&frame(self.places.end - 1).sp) {
            self.places.end -= 1;
        }
        self.places.clone().next_back().filter(|&index| frame(index) == registers)
    }
}

#[cfg(test)]
mod tests {
    use clrscope_recording::model::StackFrame;

    use super::*;
    use crate::awaiters::AsyncPart;
    use crate::inlined::InlinedFrames;
    use crate::sampling::walked::Marks;

    /// A frame whose call at `sp - 8` made it the caller of another one.
    fn frame(sp: usize) -> WalkedFrame {
        let registers = Registers { ip: 0x10_0000 + sp, sp, bp: sp + 8 };
        let (inlined, marks) = (InlinedFrames::default(), Marks::default());
        WalkedFrame { registers, frame: StackFrame::method(sp as u32, None), inlined, part: AsyncPart::Other, marks }
    }

    /// A sample with these return addresses, and a different number in every other word.
    fn sample(sp: usize, end: usize, frames: &[usize]) -> RawSample {
        let word = |at: usize| if frames.contains(&(at + 8)) { frame(at + 8).registers.ip as u64 } else { at as u64 };
        let stack = (sp..end).step_by(8).map(word).collect();
        RawSample { registers: Registers { ip: 1, sp, bp: 0 }, stack, ..RawSample::default() }
    }

    /// The stack with these frames, innermost first. Their numbers are 7, 8 and so on, from the
    /// outermost inwards.
    fn known(frames: &[usize]) -> LastStack {
        let mut last = LastStack::default();
        let fresh: Vec<_> = frames.iter().map(|&sp| frame(sp)).collect();
        last.replace_innermost(None, &fresh, &(7..7 + frames.len() as u32).collect::<Vec<_>>());
        last
    }

    #[test]
    fn a_walk_joins_the_last_one_where_all_further_out_is_as_it_was() {
        let last = known(&[0x1000, 0x1010, 0x1030, 0x1080]);
        // Another innermost frame, and changed variables.
        let now = sample(0xFF8, 0x1100, &[0x1010, 0x1030, 0x1080]);
        let join = |registers: Registers| last.compare(&now).joins(registers);
        assert_eq!(join(frame(0x1000).registers), None, "that one did not call");
        assert_eq!(join(Registers { ip: 5, ..frame(0x1010).registers }), None, "another instruction");
        assert_eq!(join(Registers { bp: 5, ..frame(0x1010).registers }), None, "another frame pointer");
        assert_eq!(join(frame(0x1010).registers), Some(2));
        assert_eq!(join(frame(0x1030).registers), Some(1), "frames between may be gone");
        assert_eq!(last.frames_to(2).iter().map(|(_, number)| *number).collect::<Vec<_>>(), [7, 8, 9]);
        let other = sample(0xFF8, 0x1100, &[0x1010, 0x1080]);
        assert_eq!(last.compare(&other).joins(frame(0x1010).registers), None, "one further out is gone");
        assert_eq!(last.compare(&other).joins(frame(0x1080).registers), Some(0));
        let gone = sample(0x1020, 0x1100, &[0x1030, 0x1080]);
        assert_eq!(last.compare(&gone).joins(frame(0x1010).registers), None, "the thread has returned from there");
    }

    #[test]
    fn where_a_sample_holds_too_little_enough_of_it_must_be_the_same() {
        let frames: Vec<usize> = (0..20).map(|number| 0x1000 + 16 * number).collect();
        let last = known(&frames);
        let joins = |held: usize, at: usize| {
            last.compare(&sample(0x1000, frames[held], &frames)).joins(frame(frames[at]).registers)
        };
        assert_eq!((joins(9, 1), joins(9, 3), joins(7, 1)), (Some(18), None, None), "nine are seen, or seven");
        let mut followed = known(&frames);
        followed.frames[0].0.registers.sp = 0;
        let now = sample(0x1000, 0x2000, &frames);
        assert_eq!(followed.compare(&now).joins(frame(frames[1]).registers), Some(18), "by a chain of addresses");
    }

    #[test]
    fn a_guess_of_the_last_walk_is_not_taken_over_where_the_sample_holds_the_words() {
        let frames = [0x1000, 0x1010, 0x1030, 0x1080, 0x10A0];
        let mut last = known(&frames);
        // The second frame from the outside was guessed.
        last.frames[1].0.marks.guessed = true;
        let join =
            |end: usize, at: usize| last.compare(&sample(0xFF8, end, &frames)).joins(frame(frames[at]).registers);
        assert_eq!((join(0x1100, 1), join(0x1100, 3)), (None, None), "all words are there");
        assert_eq!(join(0x1100, 4), Some(0), "further out nothing was a guess");
    }

    /// A stack that finds no room is forgotten, including frames that a walk has just joined.
    #[test]
    fn a_forgotten_stack_has_no_frames_up_to_where_it_was_joined() {
        let mut last = known(&[0x1000, 0x1010, 0x1030]);
        assert_eq!(last.frames_to(1).len(), 2);
        last.forget();
        assert!(last.frames_to(1).is_empty());
    }

    #[test]
    fn what_was_taken_over_and_what_is_fresh_make_the_next_stack() {
        let mut last = known(&[0x1000, 0x1010, 0x1030]);
        last.replace_innermost(Some(1), &[frame(0xF00), frame(0xF80)], &[20, 21]);
        let numbers: Vec<u32> = last.frames_to(3).iter().map(|(_, number)| *number).collect();
        assert_eq!((numbers, last.frames[3].0.registers.sp), (vec![7, 8, 20, 21], 0xF00));
        last.forget();
        assert_eq!(last.compare(&sample(0xF00, 0x1100, &[0x1010])).joins(frame(0x1010).registers), None);
    }

    #[test]
    fn as_many_threads_are_remembered_as_there_is_room_for() {
        let mut stacks = LastStacks::default();
        (0..3 * MOST as u32)
            .for_each(|os_id| stacks.stack_of_thread(os_id).replace_innermost(None, &[frame(0x1000)], &[7]));
        assert!(stacks.0.len() <= MOST && stacks.stack_of_thread(3 * MOST as u32 - 1).frames.len() == 1);
    }
}
