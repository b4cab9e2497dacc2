//! Reconstruction of calls from the events of one thread.
//!
//! The rules are those of the framework's shadow stack. An activation is over, no matter how it
//! ended, when a later call has a stack pointer that is not below the activation's. Calls by a
//! finally, catch or filter block are attributed to the function that contains the block.

use super::decode::{EventKind, Raw};

/// An activation on the stack.
#[derive(Debug, Clone, Copy)]
struct Activation {
    sp: u32,
    function: u32,
    depth: u32,
    /// Number of this call among the calls of its function, from 1.
    call: u64,
    /// Time stamp of its begin.
    since: u64,
    /// Whether this is a filter that runs for its owner rather than a call.
    is_filter: bool,
}

impl Activation {
    fn end(&self, how: End) -> Step {
        let Self { function, depth, call, since, .. } = *self;
        Step::End { function, depth, call, how, since: Some(since) }
    }
}

/// End of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Leave,
    TailCall,
    /// No event reported the end, so an exception ended the call.
    Unwound,
}

/// A step that the replay reconstructs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// A call begins.
    Begin { function: u32, depth: u32, call: u64 },
    /// A call ends. If its begin was not recorded, `call` is 0 and the time stamp of the begin is
    /// unknown.
    End { function: u32, depth: u32, call: u64, how: End, since: Option<u64> },
}

/// The stack of a thread while its events are replayed.
#[derive(Debug, Default)]
pub(super) struct Replay {
    frames: Vec<Activation>,
    /// Length of the stack below each filter that runs.
    filters: Vec<usize>,
    calls: Vec<u64>,
    /// Depth of the outermost call that is known.
    base: u32,
    /// Number of calls that ended here without a begin.
    unmatched: u32,
    /// Results of `async` methods whose code has not ended yet, each with its position on the
    /// stack.
    results: Vec<(usize, Box<[u8]>)>,
}

impl Replay {
    /// Starts with an empty stack at the depth `base`.
    pub(super) fn new(base: u32) -> Self {
        Self { base, ..Self::default() }
    }

    /// Number of calls that ended here but had begun before the first event.
    pub(super) fn unmatched(&self) -> u32 {
        self.unmatched
    }

    /// Applies one event and passes its steps to `emit`. At the end of an `async` method's code the
    /// step comes with the result that the code set.
    pub(super) fn apply(&mut self, event: &Raw<'_>, emit: &mut impl FnMut(Step, &[u8])) {
        match event.what {
            EventKind::Enter(function) => {
                self.drop_at_or_below(event.sp, emit);
                self.begin(function, event, emit);
            }
            EventKind::Leave(function) => self.end(function, event.sp, End::Leave, emit),
            EventKind::TailCall(function) => self.end(function, event.sp, End::TailCall, emit),
            EventKind::Block => {
                self.drop_at_or_below(event.sp, emit);
                let left = self.frames.len();
                self.filters.retain(|&below| below < left);
            }
            EventKind::FilterEnter => self.begin_filter(event.sp),
            EventKind::FilterLeave => {
                if let Some(below) = self.filters.pop() {
                    self.drop_to(below, emit);
                }
            }
            EventKind::Result => {
                let of = self.frames.iter().rposition(|frame| frame.sp == event.sp && !frame.is_filter);
                if let Some(of) = of {
                    self.forget_results(of);
                    self.results.push((of, event.values.into()));
                }
            }
        }
    }

    /// Forgets the results of activations from this stack position on.
    fn forget_results(&mut self, from: usize) {
        while self.results.last().is_some_and(|(of, _)| *of >= from) {
            self.results.pop();
        }
    }

    fn begin(&mut self, function: u32, event: &Raw<'_>, emit: &mut impl FnMut(Step, &[u8])) {
        let depth = self.frames.last().map_or(self.base, |top| top.depth + 1);
        let at = function as usize;
        if self.calls.len() <= at {
            // An index has 30 bits; what a recording holds is bounded by its dictionary when it is
            // shown.
            self.calls.resize(at + 1, 0);
        }
        self.calls[at] += 1;
        let call = self.calls[at];
        let (sp, since) = (event.sp, event.ticks);
        self.frames.push(Activation { sp, function, depth, call, since, is_filter: false });
        emit(Step::Begin { function, depth, call }, &[]);
    }

    fn end(&mut self, function: u32, sp: u32, how: End, emit: &mut impl FnMut(Step, &[u8])) {
        self.drop_at_or_below(sp.wrapping_sub(1), emit);
        match self.frames.last().copied() {
            Some(top) if top.sp == sp && !top.is_filter => {
                self.frames.pop();
                let at = self.frames.len();
                self.forget_results(at + 1);
                let result = self.results.pop_if(|(of, _)| *of == at);
                let result = result.as_ref().map_or(&[][..], |(_, bytes)| bytes);
                emit(top.end(how), result);
            }
            other => {
                self.unmatched += u32::from(other.is_none());
                let depth = match other {
                    Some(top) => top.depth + 1,
                    None => {
                        self.base = self.base.saturating_sub(1);
                        self.base
                    }
                };
                emit(Step::End { function, depth, call: 0, how, since: None }, &[]);
            }
        }
    }

    /// Adds a second frame of the filter's owner on top of the frames of the thrower, which are
    /// still alive.
    fn begin_filter(&mut self, sp: u32) {
        let below = self.frames.len();
        let Some(top) = self.frames.last().copied() else { return };
        let owner = self.frames.iter().rev().find(|frame| is_above(frame.sp, sp)).copied().unwrap_or(top);
        self.filters.push(below);
        self.frames.push(Activation { sp: top.sp.wrapping_sub(1), is_filter: true, ..owner });
    }

    fn drop_at_or_below(&mut self, sp: u32, emit: &mut impl FnMut(Step, &[u8])) {
        let live = self.frames.iter().rposition(|frame| is_above(frame.sp, sp)).map_or(0, |top| top + 1);
        self.drop_to(live, emit);
    }

    fn drop_to(&mut self, live: usize, emit: &mut impl FnMut(Step, &[u8])) {
        while self.frames.len() > live {
            let Some(top) = self.frames.pop() else { return };
            if !top.is_filter {
                emit(top.end(End::Unwound), &[]);
            }
        }
        self.forget_results(live);
    }
}

/// Whether the stack pointer `a` is higher than `b`. Only the lower halves are known; no stack is
/// as large as 2 GiB.
fn is_above(a: u32, b: u32) -> bool {
    a.wrapping_sub(b) as i32 > 0
}
