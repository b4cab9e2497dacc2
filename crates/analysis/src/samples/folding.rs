//! Folding: unwanted frames are removed, and their samples count for their callers.
//!
//! Functions that filters exclude have no hooks, so their time counts for the caller. Samples have
//! all frames, so folding removes the frames that the recording's filters or the option for own
//! code exclude. Native code without names is folded afterwards, see [`Nameless`].

use std::sync::Arc;

use clrscope_recording::model::{FunctionKind, Process, Recording};

use super::nameless::Nameless;
use crate::function::{FunctionRef, is_own};
use crate::metric::Metric;
use crate::query::{NativeCode, Query};

/// Functions of a process that are folded into their callers.
pub(crate) struct FoldedFunctions {
    left_out: Option<LeftOut>,
    nameless: Option<Arc<Nameless>>,
}

/// Functions that are left out, regardless of their callers.
struct LeftOut {
    /// By function index.
    is_left_out: Vec<bool>,
    /// Whether the function is a method, by function index.
    is_method: Vec<bool>,
}

impl LeftOut {
    /// Returns the functions that the query or the filters of the recording leave out; `None` if
    /// they leave none out.
    fn for_query(recording: &Recording, process: &Process, query: &Query) -> Option<Self> {
        let asked = recording.run.filled.request();
        let just_my_code = query.just_my_code || asked.just_my_code;
        let filter = &asked.filter;
        if !just_my_code && filter.include.is_empty() && filter.exclude.is_empty() {
            return None;
        }
        let is_left_out = process.functions.iter().map(|function| {
            let named = FunctionRef::new(process, Some(function));
            let passes = filter.passes(named.module(), &function.name, &function.signature);
            !passes || (just_my_code && !is_own(&named))
        });
        let is_method = process.functions.iter().map(|function| function.kind == FunctionKind::Managed);
        Some(Self { is_left_out: is_left_out.collect(), is_method: is_method.collect() })
    }
}

/// Stands for the caller of the outermost frames.
pub(crate) const NO_CALLER: u32 = 0;

impl FoldedFunctions {
    /// Returns the functions that the query or the filters of the recording fold; `None` if they
    /// fold none.
    pub(crate) fn for_query(recording: &Recording, process: &Process, query: &Query, metric: &Metric) -> Option<Self> {
        // Other metrics were recorded without the functions that filters exclude.
        let left_out = metric.is_sampled().then(|| LeftOut::for_query(recording, process, query)).flatten();
        let nameless = (query.native_code() == NativeCode::Libraries).then(|| Nameless::for_process(process)).flatten();
        (left_out.is_some() || nameless.is_some()).then_some(Self { left_out, nameless })
    }

    /// Short name of the set of folded functions, for the keys of derived data. The filters of a
    /// recording are the same in every query and need no name.
    pub(crate) fn name(query: &Query) -> &'static str {
        match (query.just_my_code, query.native_code()) {
            (true, NativeCode::Libraries) => ", own code, libraries",
            (true, NativeCode::Places) => ", own code, places",
            (false, NativeCode::Libraries) => ", libraries",
            (false, NativeCode::Places) => ", places",
        }
    }

    /// The function that represents a frame of `function` if its caller's frame is shown as
    /// `caller`; `None` if the frame is folded into the caller.
    #[inline]
    pub(crate) fn frame(&self, caller: u32, function: u32) -> Option<u32> {
        if self.leaves_out(function) {
            return None;
        }
        match self.nameless.as_ref().and_then(|nameless| nameless.library_of(function)) {
            Some(library) => (library != caller).then_some(library),
            None => Some(function),
        }
    }

    /// Whether the function is left out, regardless of its caller.
    fn leaves_out(&self, function: u32) -> bool {
        self.left_out.as_ref().is_some_and(|left| left.is_left_out.get(function as usize) != Some(&false))
    }

    /// Whether the function is a method.
    pub(crate) fn is_method(&self, function: u32) -> bool {
        self.left_out.as_ref().is_some_and(|left| left.is_method.get(function as usize) == Some(&true))
    }

    /// The function that represents a frame that is alone on its stack.
    pub(crate) fn alone(&self, function: u32) -> u32 {
        self.nameless.as_ref().and_then(|nameless| nameless.library_of(function)).unwrap_or(function)
    }

    /// Folds a path, innermost frame first. If no frame would be left, the outermost method stays,
    /// or the outermost function if there is no method: it identifies the thread and represents the
    /// whole stack.
    pub(crate) fn fold<F: FoldedFrame>(&self, path: &mut Vec<F>) {
        let is_method = |frame: &&F| self.is_method(frame.function());
        let outermost = path.iter().rev().find(is_method).or(path.last()).copied();
        path.reverse();
        let (mut caller, mut is_below_folded) = (NO_CALLER, false);
        path.retain_mut(|frame| {
            let shown = self.frame(caller, frame.function());
            if let Some(shown) = shown {
                *frame = frame.shown_as(shown, is_below_folded);
                caller = shown;
            }
            is_below_folded = shown.is_none();
            shown.is_some()
        });
        path.reverse();
        if path.is_empty() {
            path.extend(outermost.map(|outermost| outermost.shown_as(self.alone(outermost.function()), true)));
        }
    }
}

/// A frame of a path that is folded.
pub(crate) trait FoldedFrame: Copy {
    /// Index of the function.
    fn function(self) -> u32;

    /// The frame, shown as a frame of `function`. `is_below_folded` tells whether its caller's
    /// frame is folded.
    fn shown_as(self, function: u32, is_below_folded: bool) -> Self;
}

impl FoldedFrame for u32 {
    fn function(self) -> u32 {
        self
    }

    fn shown_as(self, function: u32, _is_below_folded: bool) -> Self {
        function
    }
}

// A function, and whether it was inlined into its caller.
impl FoldedFrame for (u32, bool) {
    fn function(self) -> u32 {
        self.0
    }

    fn shown_as(self, function: u32, is_below_folded: bool) -> Self {
        (function, self.1 && !is_below_folded)
    }
}
