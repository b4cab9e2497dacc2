//! Walks along all stacks once, and computes all sums over frames on the way.
//!
//! A [`StackVisitor`] defines a computation: what to do when a frame is entered, when a stack ends,
//! and when a frame is left. When a frame is left, the visitor gets the sum of the stacks that
//! passed through the frame since it was entered. A pair of visitors is a visitor too, so code that
//! needs several sums reads each frame once. The walk takes stacks in the order of the table, in
//! which stacks with common outer frames are mostly neighbours. Each stack enters only the frames
//! that the previous stack was not in. A frame may be entered several times, and its partial sums
//! add up to the whole.

use std::sync::atomic::{AtomicBool, Ordering};

use clrscope_recording::model::{StackFrame, Tier};
use clrscope_recording::parallel::fold;

use super::amounts::{StackSum, SummedStacks};
use super::children::Children;
use crate::catalog::{Catalog, Slot};
use crate::samples::NO_CALLER;

/// Stacks that a worker takes at a time.
const TOGETHER: usize = 1 << 12;
/// Average number of times that a frame may be entered. If it is exceeded, the walk changes to a
/// better order of stacks.
const MOST_TIMES: usize = 4;

/// A frame on the walk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame {
    /// Index of the function; 0 for frames without a function.
    pub(crate) function: u32,
    /// Slot of the function.
    pub(crate) slot: Slot,
    /// Tier of the code; `None` if the frame belongs to no method, or represents a whole stack.
    pub(crate) tier: Option<Tier>,
}

/// A visitor of all stacks, which computes sums along them.
pub(crate) trait StackVisitor: Sync {
    /// Accumulator of one worker.
    type Acc: Send;
    /// State that is passed from a frame to its callees.
    type Inherited: Copy + Send;

    /// Returns an empty accumulator.
    fn begin(&self) -> Self::Acc;

    /// Returns the state outside of all frames.
    fn outside(&self) -> Self::Inherited;

    /// A frame is entered.
    fn enter(&self, found: &mut Self::Acc, caller: Self::Inherited, frame: &Frame) -> Self::Inherited;

    /// A stack ends at an entered frame. `stack` is its number among the events' stacks.
    fn stack(&self, found: &mut Self::Acc, here: Self::Inherited, frame: &Frame, stack: u32, sum: StackSum);

    /// A frame is left. `sum` is the sum of the stacks that passed through the frame since it was
    /// entered.
    fn leave(&self, found: &mut Self::Acc, here: Self::Inherited, frame: &Frame, sum: StackSum);

    /// Adds the accumulator of another worker.
    fn join(&self, all: &mut Self::Acc, part: Self::Acc);
}

impl StackVisitor for () {
    type Acc = ();
    type Inherited = ();

    fn begin(&self) {}
    fn outside(&self) {}
    fn enter(&self, (): &mut (), (): (), _: &Frame) {}
    fn stack(&self, (): &mut (), (): (), _: &Frame, _: u32, _: StackSum) {}
    fn leave(&self, (): &mut (), (): (), _: &Frame, _: StackSum) {}
    fn join(&self, (): &mut (), (): ()) {}
}

impl<A: StackVisitor> StackVisitor for &A {
    type Acc = A::Acc;
    type Inherited = A::Inherited;

    fn begin(&self) -> Self::Acc {
        A::begin(self)
    }

    fn outside(&self) -> Self::Inherited {
        A::outside(self)
    }

    #[inline(always)]
    fn enter(&self, found: &mut Self::Acc, caller: Self::Inherited, frame: &Frame) -> Self::Inherited {
        A::enter(self, found, caller, frame)
    }

    #[inline(always)]
    fn stack(&self, found: &mut Self::Acc, here: Self::Inherited, frame: &Frame, stack: u32, sum: StackSum) {
        A::stack(self, found, here, frame, stack, sum);
    }

    #[inline(always)]
    fn leave(&self, found: &mut Self::Acc, here: Self::Inherited, frame: &Frame, sum: StackSum) {
        A::leave(self, found, here, frame, sum);
    }

    fn join(&self, all: &mut Self::Acc, part: Self::Acc) {
        A::join(self, all, part);
    }
}

impl<A: StackVisitor, B: StackVisitor> StackVisitor for (A, B) {
    type Acc = (A::Acc, B::Acc);
    type Inherited = (A::Inherited, B::Inherited);

    fn begin(&self) -> Self::Acc {
        (self.0.begin(), self.1.begin())
    }

    fn outside(&self) -> Self::Inherited {
        (self.0.outside(), self.1.outside())
    }

    #[inline(always)]
    fn enter(&self, found: &mut Self::Acc, caller: Self::Inherited, frame: &Frame) -> Self::Inherited {
        (self.0.enter(&mut found.0, caller.0, frame), self.1.enter(&mut found.1, caller.1, frame))
    }

    #[inline(always)]
    fn stack(&self, found: &mut Self::Acc, here: Self::Inherited, frame: &Frame, stack: u32, sum: StackSum) {
        self.0.stack(&mut found.0, here.0, frame, stack, sum);
        self.1.stack(&mut found.1, here.1, frame, stack, sum);
    }

    #[inline(always)]
    fn leave(&self, found: &mut Self::Acc, here: Self::Inherited, frame: &Frame, sum: StackSum) {
        self.0.leave(&mut found.0, here.0, frame, sum);
        self.1.leave(&mut found.1, here.1, frame, sum);
    }

    fn join(&self, all: &mut Self::Acc, part: Self::Acc) {
        self.0.join(&mut all.0, part.0);
        self.1.join(&mut all.1, part.1);
    }
}

impl SummedStacks {
    /// Visits all stacks, without the frames that are folded into their callers, and returns the
    /// accumulated result.
    pub(crate) fn visit_stacks<A: StackVisitor>(&self, catalog: &Catalog<'_>, what: &A) -> A::Acc {
        let (stacks, frames) = (self.measured.stacks(), self.measured.table.len());
        let limit = frames.saturating_add(stacks).saturating_mul(MOST_TIMES);
        self.in_order(catalog, what, stacks, limit, |at| at as u32).unwrap_or_else(|| {
            let order = Children::new(&self.measured).stacks_in_depth(&self.measured);
            self.in_order(catalog, what, order.len(), usize::MAX, |at| order[at]).unwrap_or_else(|| what.begin())
        })
    }

    /// Walks the stacks in a given order; `None` if a worker would enter more frames than `limit`.
    fn in_order<A: StackVisitor>(
        &self,
        catalog: &Catalog<'_>,
        what: &A,
        count: usize,
        limit: usize,
        stack: impl Fn(usize) -> u32 + Sync,
    ) -> Option<A::Acc> {
        let is_too_far = AtomicBool::new(false);
        let new = || Walker::new(self, catalog, what);
        let parts = fold(count.div_ceil(TOGETHER), new, |walker, piece| {
            let from = piece * TOGETHER;
            for at in from..count.min(from + TOGETHER) {
                if walker.entered > limit || is_too_far.load(Ordering::Relaxed) {
                    return is_too_far.store(true, Ordering::Relaxed);
                }
                walker.visit_stack(stack(at));
            }
            walker.leave_all();
        });
        if is_too_far.into_inner() {
            return None;
        }
        let mut parts = parts.into_iter().map(|walker| walker.found);
        let mut all = parts.next().unwrap_or_else(|| what.begin());
        parts.for_each(|part| what.join(&mut all, part));
        Some(all)
    }
}

/// Entry for "no method".
const NO_METHOD: u32 = u32::MAX;

/// A frame of the current stack.
struct Open<H> {
    /// Place in the table.
    place: usize,
    is_kept: bool,
    /// Index in the path of the innermost kept frame, from 1; 0 if no frame is kept.
    kept: usize,
    /// The outermost method on the path.
    outermost_method: u32,
    frame: Frame,
    here: H,
    /// Sum of all stacks at the moment the frame was entered.
    before: StackSum,
}

/// A worker and its current stack.
struct Walker<'w, A: StackVisitor> {
    stacks: &'w SummedStacks,
    catalog: &'w Catalog<'w>,
    what: &'w A,
    found: A::Acc,
    path: Vec<Open<A::Inherited>>,
    /// Places of the frames to be entered, the outermost last.
    ahead: Vec<usize>,
    all: StackSum,
    entered: usize,
}

impl<'w, A: StackVisitor> Walker<'w, A> {
    fn new(stacks: &'w SummedStacks, catalog: &'w Catalog<'w>, what: &'w A) -> Self {
        let (path, ahead) = (Vec::new(), Vec::new());
        Self { stacks, catalog, what, found: what.begin(), path, ahead, all: StackSum::default(), entered: 0 }
    }

    fn visit_stack(&mut self, stack: u32) {
        let Some(sum) = self.stacks.sum_of(stack) else { return };
        let Some(place) = self.stacks.measured.position_of_stack(stack) else {
            self.leave_all();
            return self.alone(0, stack, sum);
        };
        self.go_to(place);
        let Some(top) = self.path.last() else { return };
        match top.kept.checked_sub(1) {
            Some(at) => {
                let kept = &self.path[at];
                self.what.stack(&mut self.found, kept.here, &kept.frame, stack, sum);
            }
            None => {
                // A stack that would lose all its frames keeps one.
                let outermost = self.path.first().map_or(0, |first| first.frame.function);
                let kept = if top.outermost_method == NO_METHOD { outermost } else { top.outermost_method };
                self.alone(kept, stack, sum);
            }
        }
        self.all.add(sum);
    }

    /// Moves to another stack: leaves the frames that are not on it and enters its other frames.
    fn go_to(&mut self, place: usize) {
        let table = &self.stacks.measured.table;
        let mut next = Some(place);
        while let Some(place) = next {
            // Callers have smaller places: a frame with a larger place is not on this stack.
            while self.path.last().is_some_and(|last| last.place > place) {
                self.leave();
            }
            if self.path.last().is_some_and(|last| last.place == place) {
                break;
            }
            self.ahead.push(place);
            next = table.caller_of(place);
        }
        if next.is_none() {
            self.leave_all();
        }
        self.entered += self.ahead.len();
        while let Some(place) = self.ahead.pop() {
            self.enter(place);
        }
    }

    #[inline]
    fn enter(&mut self, place: usize) {
        let (function, tier) = match self.stacks.measured.table.frame_at(place) {
            Some(StackFrame::Method { function, tier, .. }) => (function, Some(tier)),
            _ => (0, None),
        };
        let (above, method, caller) = match self.path.last() {
            Some(last) => (last.kept, last.outermost_method, last.here),
            None => (0, NO_METHOD, self.what.outside()),
        };
        let folded = self.stacks.folded.as_ref();
        let shown = match folded {
            Some(folded) => {
                let caller = above.checked_sub(1).map_or(NO_CALLER, |at| self.path[at].frame.function);
                folded.frame(caller, function)
            }
            None => Some(function),
        };
        let is_kept = shown.is_some();
        let shown = shown.unwrap_or(function);
        let frame = Frame { function: shown, slot: self.catalog.slot(shown), tier };
        let here = if is_kept { self.what.enter(&mut self.found, caller, &frame) } else { caller };
        let is_method = || folded.is_some_and(|folded| folded.is_method(function));
        let outermost_method = if method == NO_METHOD && is_method() { function } else { method };
        let kept = if is_kept { self.path.len() + 1 } else { above };
        self.path.push(Open { place, is_kept, kept, outermost_method, frame, here, before: self.all });
    }

    #[inline]
    fn leave(&mut self) {
        if let Some(Open { is_kept: true, frame, here, before, .. }) = self.path.pop() {
            self.what.leave(&mut self.found, here, &frame, self.all.since(before));
        }
    }

    fn leave_all(&mut self) {
        while !self.path.is_empty() {
            self.leave();
        }
    }

    /// Visits a stack that is shown as a single frame of a function because none of its frames is
    /// kept.
    fn alone(&mut self, function: u32, stack: u32, sum: StackSum) {
        let function = self.stacks.folded.as_ref().map_or(function, |folded| folded.alone(function));
        let frame = Frame { function, slot: self.catalog.slot(function), tier: None };
        let here = self.what.enter(&mut self.found, self.what.outside(), &frame);
        self.what.stack(&mut self.found, here, &frame, stack, sum);
        self.what.leave(&mut self.found, here, &frame, sum);
    }
}
