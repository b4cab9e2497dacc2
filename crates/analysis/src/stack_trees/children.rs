//! The stack table from callers to callees: the frames that each frame called.

use std::iter::successors;

use clrscope_recording::parallel::fold;

use crate::metric_events::{MetricEvents, NodeSet};

/// Frames that a worker processes at a time.
const TOGETHER: usize = 1 << 18;

/// Frames that are on a stack of an event, by their callers. A frame is identified by its place in
/// the table, from 1; 0 represents the threads themselves.
///
/// The new frames of a new stack are consecutive in the table, so frames form runs. Each frame of a
/// run except the last has the next frame as its only callee, and no stack of events ends at it.
/// Runs have numbers from 1.
pub(super) struct Children {
    /// Number of frames.
    frames: usize,
    /// Places of the last frames of runs.
    ends: NodeSet,
    /// Place of the first frame of each run, followed by the number of frames. The first entry is
    /// for the threads.
    starts: Vec<u32>,
    /// The first run that each run called, in the order of the table; 0 for none.
    first: Vec<u32>,
    /// The next run of the same caller.
    next: Vec<u32>,
}

impl Children {
    pub(super) fn new(measured: &MetricEvents) -> Self {
        Self::with(measured, |_, _, _| {})
    }

    /// Like [`new`](Self::new), and also calls `visit` with each run, its stack of events and its
    /// caller. Runs come before their callers.
    pub(super) fn with(measured: &MetricEvents, mut visit: impl FnMut(u32, Option<u32>, u32)) -> Self {
        let (frames, ends) = (measured.table.len(), ends_of_runs(measured));
        let mut starts = vec![0, 0];
        starts.extend(ends.iter().map(|end| end + 1));
        let runs = starts.len() - 2;
        let [mut first, mut next] = [0, 0].map(|none| vec![none; runs + 1]);
        for run in (1..=runs).rev() {
            let stack = measured.stack_at(starts[run + 1] - 1);
            if first[run] == 0 && stack.is_none() {
                continue;
            }
            let caller = measured.table.caller_of(starts[run] as usize).map_or(0, |place| ends.number(place as u32));
            visit(run as u32, stack, caller);
            next[run] = std::mem::replace(&mut first[caller as usize], run as u32);
        }
        Self { frames, ends, starts, first, next }
    }

    /// Number of frames, including omitted frames, plus one for the threads themselves.
    pub(super) fn len(&self) -> usize {
        self.frames + 1
    }

    /// Number of runs, plus one for the threads themselves.
    pub(super) fn runs(&self) -> usize {
        self.first.len()
    }

    /// The run that a frame is in.
    #[inline]
    pub(super) fn run_of(&self, frame: u32) -> usize {
        frame.checked_sub(1).map_or(0, |place| self.ends.number(place) as usize)
    }

    /// The only callee of a frame, if the frame is within a run, so that no stack of events ends at
    /// it.
    #[inline]
    pub(super) fn only(&self, frame: u32) -> Option<u32> {
        let place = frame.checked_sub(1)?;
        ((place as usize) < self.frames && !self.ends.has(place)).then_some(frame + 1)
    }

    /// The frames that a frame called.
    #[inline]
    pub(super) fn of_frame(&self, frame: u32) -> impl Iterator<Item = u32> {
        let only = self.only(frame);
        let run = if only.is_some() { None } else { Some(self.run_of(frame)) };
        only.into_iter().chain(run.into_iter().flat_map(|run| self.of_run(run)).map(|run| self.starts[run] + 1))
    }

    /// The runs that a run called.
    #[inline]
    fn of_run(&self, run: usize) -> impl Iterator<Item = usize> {
        let some = |run: u32| (run != 0).then_some(run as usize);
        successors(some(self.first[run]), move |run| some(self.next[*run]))
    }

    /// The stacks of events in depth-first order: stacks below one frame are consecutive. An
    /// unknown stack comes first.
    pub(super) fn stacks_in_depth(&self, measured: &MetricEvents) -> Vec<u32> {
        let mut stacks = vec![0];
        let mut ahead: Vec<usize> = self.of_run(0).collect();
        while let Some(run) = ahead.pop() {
            stacks.extend(measured.stack_at(self.starts[run + 1] - 1));
            ahead.extend(self.of_run(run));
        }
        stacks
    }
}

/// Places of the frames whose only callee is not the next frame of the table, or at which a stack
/// of events ends.
fn ends_of_runs(measured: &MetricEvents) -> NodeSet {
    let (table, frames) = (&measured.table, measured.table.len());
    let new = || NodeSet::for_places(frames);
    let parts = fold(frames.div_ceil(TOGETHER), new, |met, piece| {
        let from = piece * TOGETHER;
        for place in from..frames.min(from + TOGETHER) {
            let (before, caller) = (place.checked_sub(1), table.caller_of(place));
            if caller != before {
                before.iter().chain(&caller).for_each(|end| met.add(*end as u32));
            }
        }
    });
    let mut ends = measured.used_places().clone();
    parts.iter().for_each(|part| ends.join(part));
    if let Some(last) = frames.checked_sub(1) {
        ends.add(last as u32);
    }
    ends.count();
    ends
}
