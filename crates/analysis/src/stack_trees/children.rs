//! A stack table from the outside in: the frames that each frame called.

use clrscope_recording::parallel::zeros;

use crate::measured::Measured;

/// Frames with a stack of events at them or below them, by their callers. They are named by their places in the table, from 1; 0
/// stands for the threads themselves.
pub(super) struct Children {
    /// The first that each frame called, in the order of the table; 0 for none.
    first: Vec<u32>,
    /// The next of the same caller.
    next: Vec<u32>,
}

impl Children {
    pub(super) fn of(measured: &Measured) -> Self {
        Self::with(measured, |_, _, _| {})
    }

    /// As [`of`](Self::of). `visit` is told of each frame, its stack of events and its caller, frames before their callers.
    pub(super) fn with(measured: &Measured, mut visit: impl FnMut(usize, Option<u32>, usize)) -> Self {
        let frames = measured.table.len();
        let [mut first, mut next] = [zeros(frames + 1), zeros(frames + 1)];
        for place in (0..frames).rev() {
            let id = place + 1;
            let stack = measured.stack_at(place as u32);
            if first[id] == 0 && stack.is_none() {
                continue;
            }
            let caller = measured.table.caller_of(place).map_or(0, |caller| caller + 1);
            visit(id, stack, caller);
            next[id] = std::mem::replace(&mut first[caller], id as u32);
        }
        Self { first, next }
    }

    /// Number of frames, those that are left out included, and one for the threads themselves.
    pub(super) fn len(&self) -> usize {
        self.first.len()
    }

    /// The frames that a frame called.
    #[inline]
    pub(super) fn of_frame(&self, frame: u32) -> impl Iterator<Item = u32> {
        let some = |frame: u32| (frame != 0).then_some(frame);
        std::iter::successors(some(self.first[frame as usize]), move |&child| some(self.next[child as usize]))
    }

    /// The stacks of events, so that those below a frame follow one another; one that is not known comes first.
    pub(super) fn stacks_in_depth(&self, measured: &Measured) -> Vec<u32> {
        let mut stacks = vec![0];
        let mut ahead: Vec<u32> = self.of_frame(0).collect();
        while let Some(frame) = ahead.pop() {
            stacks.extend(measured.stack_at(frame - 1));
            ahead.extend(self.of_frame(frame));
        }
        stacks
    }
}
