//! Methods that the compiler put into others, where a call tells that the thread is in them.
//!
//! | module | what it holds |
//! |---|---|
//! | [`candidates`] | what callbacks tell of compilations: which methods the compiler looked at |
//! | [`called`] | the method that a call instruction leads to |
//! | [`facts`] | calls in methods, and the names that methods are called by |
//! | [`ways`] | the one way from a compiled method to a call in it |
//! | [`debug_events`] | the runtime's debug information, where it is asked for |
//! | [`exact`] | the map of a body in it |
//!
//! A call instruction says by itself where it leads: to a method's code, or to a piece of the
//! runtime's that hands the call on. Which
//! method's IL that call stands in, [`ways`] finds out. Of an instruction that was interrupted
//! nobody says which method it belongs to,
//! nor of a call by a table of methods: these have no frames here.
//!
//! All instruments ask here, of return addresses alone: samples by the map of code, exceptions and
//! collections in their callbacks. No lock
//! is held while the runtime is asked.

pub(crate) mod called;
mod candidates;
mod debug_events;
mod exact;
mod facts;
mod ways;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use clr_profiler::{FunctionId, ProfilerInfo};
use clrscope_recording::model::{StackFrame, Tier};

use crate::services::functions::Functions;
use called::Called;
use candidates::Told;
pub(crate) use candidates::{Candidates, OwnCalls};
pub(crate) use debug_events::DebugEvents;
use exact::{Places, Way};
use facts::MethodFacts;
use ways::{Callee, Candidate, IlCall, Methods, Named, Station, only_way};

/// Looks at the code of a dynamic method after which what it calls is known, or never will be. Each
/// is as many times later as all before.
const MOST_TRIES: u32 = 1 << 16;

/// Frames of methods that were put into another one; none by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub(crate) struct InlinedFrames(u32);

impl InlinedFrames {
    /// The number, other than that of any other frames; 0 for none.
    pub(crate) fn number(self) -> u32 {
        self.0
    }
}

/// Frames at an instruction. By default that is of the method whose code it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct InlinedThere {
    /// Methods that were put into the one whose code it is.
    pub(crate) frames: InlinedFrames,
    /// Offset of the call in that method's IL that leads to them, where that is certain.
    pub(crate) offset: Option<u32>,
    /// The thread may be in one more, which was put into the innermost of them.
    pub(crate) may_be_deeper: bool,
}

impl InlinedThere {
    /// The frame of the method whose code it is, at that call.
    pub(crate) fn at_call(self, frame: StackFrame) -> StackFrame {
        match (frame, self.offset) {
            (StackFrame::Method { function, tier, .. }, Some(il_offset)) => {
                StackFrame::Method { function, il_offset: Some(il_offset), il_span: 0, tier }
            }
            (unchanged, _) => unchanged,
        }
    }
}

/// Knowledge of inlining in the process.
pub(crate) struct InlinedMethods {
    functions: Arc<Functions>,
    /// Methods may have code from the load of their module on that is not their own.
    has_changed_code: Arc<AtomicBool>,
    told: Told,
    facts: MethodFacts,
    rows: Mutex<Rows>,
}

/// Frames that were found, each row once, innermost first. Rows name methods by their numbers in
/// the recording, which stay.
#[derive(Default)]
struct Rows {
    numbers: HashMap<Arc<[StackFrame]>, InlinedFrames>,
    /// Rows by their numbers less one.
    rows: Vec<Arc<[StackFrame]>>,
}

impl Rows {
    fn number(&mut self, row: Vec<StackFrame>) -> InlinedFrames {
        let row: Arc<[StackFrame]> = row.into();
        let Self { numbers, rows } = self;
        *numbers.entry(row).or_insert_with_key(|row| {
            rows.push(Arc::clone(row));
            InlinedFrames(rows.len() as u32)
        })
    }
}

/// Copies of rows for a thread that asks for them all the time.
#[derive(Default)]
pub(crate) struct KnownRows(Vec<Arc<[StackFrame]>>);

impl KnownRows {
    /// The frames, innermost first, as far as they were [copied](InlinedMethods::copy_rows).
    #[inline]
    pub(crate) fn get(&self, frames: InlinedFrames) -> &[StackFrame] {
        let index = (frames.0 as usize).checked_sub(1);
        index.and_then(|index| self.0.get(index)).map_or(&[], |row| row)
    }
}

/// The methods of one compilation, as the search asks for them.
struct OfBody<'a> {
    facts: &'a MethodFacts,
    root: FunctionId,
    /// The calls of a root whose IL can't be read.
    calls: Option<Arc<[IlCall]>>,
}

impl Methods for OfBody<'_> {
    type Id = FunctionId;

    fn calls(&mut self, method: FunctionId) -> Option<Arc<[IlCall]>> {
        match &self.calls {
            Some(calls) if method == self.root => Some(Arc::clone(calls)),
            _ => self.facts.calls(method),
        }
    }

    fn names(&mut self, method: FunctionId) -> Option<Arc<[Named]>> {
        self.facts.names(method)
    }
}

impl InlinedMethods {
    pub(crate) fn new(info: &ProfilerInfo, functions: &Arc<Functions>, has_changed_code: Arc<AtomicBool>) -> Self {
        Self {
            functions: Arc::clone(functions),
            has_changed_code,
            told: Told::default(),
            facts: MethodFacts::new(info, functions),
            rows: Mutex::default(),
        }
    }

    /// Compilations, as callbacks tell of them.
    pub(crate) fn told(&self) -> &Told {
        &self.told
    }

    fn rows(&self) -> MutexGuard<'_, Rows> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A piece of the runtime's debug information about the method that this thread compiles. `is_first`:
    /// what came before is of another body.
    pub(crate) fn debug_information(&self, method: u64, is_first: bool, bytes: &[u8]) {
        self.told.debug(|function| function.as_raw() as u64 == method, is_first, bytes);
    }

    /// [`there`](Self::there) by the runtime's debug information alone.
    fn at_instruction(&self, (root, candidates): (FunctionId, &Candidates), code: u32) -> Option<InlinedThere> {
        let mut methods = OfBody { facts: &self.facts, root, calls: None };
        let found = Places { map: candidates.map()?, methods: &mut methods }.at(code);
        // Before the first statement the frame is set up.
        let there = found.map(|(way, is_all)| InlinedThere { may_be_deeper: !is_all, ..self.on_way(&way) });
        Some(there.unwrap_or(InlinedThere { may_be_deeper: true, ..InlinedThere::default() }))
    }

    /// The frames of a way that begins with the method whose code it is.
    fn on_way(&self, way: &[Station]) -> InlinedThere {
        match way {
            [root, others @ ..] if !others.is_empty() => {
                InlinedThere { frames: self.number(others), offset: self.offset(root), may_be_deeper: false }
            }
            _ => InlinedThere::default(),
        }
    }

    /// The methods that were put into `root`, whose body has these candidates, at an instruction so many
    /// bytes behind the body's beginning, and whether the answer will be the same next time. `called` is
    /// where a call instruction leads, `None` at any other; `calls` finds all methods that the body's code
    /// calls. Asks the runtime about methods that are new.
    pub(crate) fn there(
        &self,
        body: (FunctionId, &Candidates),
        (called, code): (Option<Called>, u32),
        calls: impl FnOnce() -> Vec<FunctionId>,
    ) -> (Option<InlinedThere>, bool) {
        match called {
            Some(Called::Method(callee)) => self.at_call(body, (callee, code), calls),
            Some(Called::Unknown) => (self.at_instruction(body, code), false),
            Some(Called::Nothing) | None => (self.at_instruction(body, code), true),
        }
    }

    /// [`there`](Self::there) at a call of a method.
    fn at_call(
        &self,
        (root, candidates): (FunctionId, &Candidates),
        (callee, code): (FunctionId, u32),
        called: impl FnOnce() -> Vec<FunctionId>,
    ) -> (Option<InlinedThere>, bool) {
        let (there, lasts) = self.inferred((root, candidates), callee, called);
        if there.is_some() {
            return (there, lasts);
        }
        let Some(map) = candidates.map() else { return (None, lasts) };
        if self.facts.is_called_by_compilers(callee) {
            return (self.at_instruction((root, candidates), code), true);
        }
        let mut methods = OfBody { facts: &self.facts, root, calls: None };
        let way = self.facts.names(callee).map(|names| Places { map, methods: &mut methods }.way_to_call(code, &names));
        match way {
            Some(Way::Only(way)) => (Some(self.on_way(&way)), true),
            _ => (None, lasts),
        }
    }

    /// [`at_call`](Self::at_call) by the calls that the candidates have.
    fn inferred(
        &self,
        (root, candidates): (FunctionId, &Candidates),
        callee: FunctionId,
        called: impl FnOnce() -> Vec<FunctionId>,
    ) -> (Option<InlinedThere>, bool) {
        let (calls, lasts) = match candidates.own_calls() {
            _ if candidates.is_empty() || self.facts.is_called_by_compilers(callee) => return (None, true),
            OwnCalls::Readable => (None, true),
            OwnCalls::Counted(calls) => match self.calls_of_dynamic(root, calls, candidates.pairs(), called) {
                Some((calls, lasts)) => (Some(calls), lasts),
                None => return (None, true),
            },
            OwnCalls::Unknown => return (None, true),
        };
        let mut methods = OfBody { facts: &self.facts, root, calls };
        let way = self.facts.names(callee).and_then(|names| only_way(root, candidates.pairs(), &names, &mut methods));
        let there = way.as_deref().map(|way| self.on_way(way));
        (there, lasts || there.is_some_and(|there| there.frames.number() != 0))
    }

    /// The calls of a dynamic method, whose IL has so many of them, by tokens that the runtime
    /// alone can read, and whether that is all that will ever be
    /// known. Each candidate is one of them, and so is what the code calls that no candidate has a
    /// call of. Where there are no more
    /// than these, nothing else is called; otherwise any method may be.
    fn calls_of_dynamic(
        &self,
        root: FunctionId,
        calls: u32,
        candidates: &[Candidate],
        called: impl FnOnce() -> Vec<FunctionId>,
    ) -> Option<(Arc<[IlCall]>, bool)> {
        let is_own = |(of, own): &&Candidate| *of == root && self.is_of_no_candidate(*own, candidates);
        let mut own: Vec<FunctionId> = candidates.iter().filter(is_own).map(|(_, own)| *own).collect();
        let is_more = |own: &[FunctionId]| own.len() < calls as usize;
        let mut lasts = true;
        if is_more(&own) {
            let tries = self.told.tries(root);
            lasts = tries >= MOST_TRIES;
            // What was not called yet can't be told from the runtime's own code.
            if tries.is_power_of_two() || lasts {
                let is_new = |callee: &FunctionId| {
                    !self.facts.is_of_core(*callee)
                        && !candidates.contains(&(root, *callee))
                        && self.is_of_no_candidate(*callee, candidates)
                };
                own.extend(called().into_iter().filter(is_new));
            }
        }
        if own.len() > calls as usize {
            return None;
        }
        let is_any = is_more(&own);
        // Of the others nobody knows whether the method itself calls them.
        own.extend(
            candidates.iter().filter(|candidate| candidate.0 == root && !is_own(candidate)).map(|(_, callee)| *callee),
        );
        let mut found = Vec::new();
        for callee in own {
            let call = |name: &Named| IlCall { offset: None, callee: Callee::Named(name.clone()) };
            found.extend(self.facts.names(callee)?.iter().map(call));
        }
        found.extend(is_any.then_some(IlCall { offset: None, callee: Callee::Any }));
        Some((found.into(), lasts || !is_any))
    }

    /// Whether no candidate has a call that may be of a method: one that the compiler comes to
    /// late, once others are in place, is told as one of the
    /// root from .NET 10 on.
    fn is_of_no_candidate(&self, callee: FunctionId, candidates: &[Candidate]) -> bool {
        let Some(names) = self.facts.names(callee) else { return false };
        let has_none = |calls: Arc<[IlCall]>| !calls.iter().any(|call| call.may_be_of(&names));
        candidates.iter().all(|(_, candidate)| self.facts.calls(*candidate).is_some_and(has_none))
    }

    /// Offset of a call. Where methods have code that is not their own, offsets are in that.
    fn offset(&self, station: &Station) -> Option<u32> {
        station.offset.filter(|_| !self.has_changed_code.load(Ordering::Acquire))
    }

    fn number(&self, stations: &[Station]) -> InlinedFrames {
        let frame = |station: &Station| StackFrame::Method {
            function: self.functions.noted(station.method).index,
            il_offset: self.offset(station),
            il_span: 0,
            tier: Tier::Inlined,
        };
        let row = stations.iter().rev().map(frame).collect();
        self.rows().number(row)
    }

    /// The frames, innermost first, added to others.
    pub(crate) fn add_frames(&self, frames: InlinedFrames, to: &mut Vec<StackFrame>) {
        let index = (frames.0 as usize).checked_sub(1);
        to.extend(index.and_then(|index| self.rows().rows.get(index).cloned()).iter().flat_map(|row| row.iter()));
    }

    /// Number of such frames.
    pub(crate) fn len(&self, frames: InlinedFrames) -> usize {
        let index = (frames.0 as usize).checked_sub(1);
        index.and_then(|index| self.rows().rows.get(index).map(|row| row.len())).unwrap_or(0)
    }

    /// Copies the rows that the copies lack.
    pub(crate) fn copy_rows(&self, copies: &mut KnownRows) {
        let rows = self.rows();
        let known = copies.0.len();
        copies.0.extend(rows.rows.iter().skip(known).map(Arc::clone));
    }

    /// A module is gone: which methods were its own is not known, and their identifiers and
    /// addresses may be used again.
    pub(crate) fn module_unloaded(&self) {
        self.told.forget_bodies();
        self.facts.forget();
    }

    /// A dynamic method is gone; its identifier and addresses may be used again.
    pub(crate) fn dynamic_unloaded(&self, function: FunctionId) {
        self.told.forget_dynamic(function);
        self.facts.forget_one(function);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_rows_have_one_number_and_take_memory_once() {
        let mut rows = Rows::default();
        let row = |function| vec![StackFrame::method(function, Some(3)), StackFrame::method(9, None)];
        let numbers = [1, 2, 1, 1, 2].map(|function| rows.number(row(function)).number());
        assert_eq!((numbers, rows.rows.len()), ([1, 2, 1, 1, 2], 2));
        let copies = KnownRows(rows.rows.clone());
        assert_eq!(copies.get(InlinedFrames(2)), row(2));
        assert!(copies.get(InlinedFrames::default()).is_empty() && copies.get(InlinedFrames(3)).is_empty());
    }
}
