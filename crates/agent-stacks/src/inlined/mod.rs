//! Methods that the compiler inlined into others, recognised at call instructions.
//!
//! | module | what it holds |
//! |---|---|
//! | `candidates` | the methods that the compiler considered for inlining, as callbacks report them |
//! | `called` | the method that a call instruction leads to |
//! | `facts` | calls in methods, and the names that methods are called by |
//! | `inline_paths` | the only path from a compiled method to a call in it |
//! | `debug_events` | the runtime's debug information, if it is requested |
//! | `exact` | the map of a body, from that debug information |
//!
//! A call instruction says where it leads: to a method's code, or to a stub of the runtime that
//! passes the call on. `inline_paths` finds out which method's IL contains the call. Nothing tells
//! the method of an interrupted instruction, or of a call through a table of methods: these get no
//! inlined frames here.
//!
//! All instruments use this module, and only for return addresses: samples through the map of code,
//! exceptions and collections in their callbacks. No lock is held while the runtime is asked.

pub mod called;
mod candidates;
mod debug_events;
mod exact;
mod facts;
mod inline_paths;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use clr_profiler::{FunctionId, ProfilerInfo};
use clrscope_agent_base::arch::{runs_on, shortest_call};
use clrscope_agent_base::functions::Functions;
use clrscope_agent_base::os::memory::copy_if_there;
use clrscope_recording::model::{StackFrame, Tier};

use called::CallTarget;
use candidates::Compilations;
pub(crate) use candidates::{Candidates, OwnCalls};
pub use debug_events::DebugEvents;
use exact::{PathOutcome, Places};
use facts::MethodFacts;
use inline_paths::{Callee, Candidate, IlCall, Jump, MethodName, Methods, PathMethod, only_path};

/// Number of looks at the code of a dynamic method after which its unknown calls are given up. The
/// looks that search the code become rarer: each comes after twice as many looks as the one before.
const MOST_TRIES: u32 = 1 << 16;

/// Most bytes between a statement and an instruction that are searched.
const MOST_CODE: usize = 4 << 10;

/// Refers to frames of methods inlined into another one; none by default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct InlinedFrames(u32);

impl InlinedFrames {
    /// A number that identifies these frames; 0 for none.
    pub(crate) fn number(self) -> u32 {
        self.0
    }
}

/// The inlined frames at an instruction. By default the instruction belongs to the method that owns
/// the code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct InlinedThere {
    /// Methods inlined into the method that owns the code.
    pub frames: InlinedFrames,
    /// IL offset of the call that leads to the inlined methods, in the method that owns the code;
    /// `None` if it is not certain.
    pub offset: Option<u32>,
    /// Whether the thread may be in a further method that is inlined into the innermost of
    /// `frames`.
    pub(crate) may_be_deeper: bool,
}

impl InlinedThere {
    /// The frame of the method that owns the code, with its IL offset set to
    /// [`offset`](Self::offset) if known.
    pub(crate) fn at_call(self, frame: StackFrame) -> StackFrame {
        match (frame, self.offset) {
            (StackFrame::Method { function, tier, .. }, Some(il_offset)) => {
                StackFrame::Method { function, il_offset: Some(il_offset), il_span: 0, tier }
            }
            (unchanged, _) => unchanged,
        }
    }
}

/// An instruction in a body's code.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CodeOffset {
    /// Address at which the body's code begins.
    pub start: usize,
    /// Offset from `start` of the instruction, or of a byte within the instruction.
    pub offset: u32,
    /// Whether `offset` points to the last byte of a call.
    pub is_call: bool,
}

impl CodeOffset {
    /// Whether the code certainly runs on from an offset to the instruction.
    fn runs_on_from(self, first: u32) -> bool {
        let bytes = (self.offset as usize + usize::from(self.is_call)).saturating_sub(first as usize);
        let mut code = vec![0; bytes.min(MOST_CODE)];
        if bytes > MOST_CODE || !copy_if_there(self.start + first as usize, &mut code) {
            return false;
        }
        let call = if self.is_call { shortest_call(&code) } else { Some(0) };
        call.is_some_and(|call| runs_on(&code[..bytes - call]))
    }
}

/// What is known about inlining in the process.
pub struct InlinedMethods {
    functions: Arc<Functions>,
    /// Whether methods may have changed code from the load of their module on.
    has_changed_code: Arc<AtomicBool>,
    told: Compilations,
    facts: MethodFacts,
    rows: Mutex<Rows>,
}

/// Rows of frames that were found, each stored once, innermost frame first. Rows name methods by
/// their indices in the recording, which do not change.
#[derive(Default)]
struct Rows {
    numbers: HashMap<Arc<[StackFrame]>, InlinedFrames>,
    /// Rows, by number less one.
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

/// A copy of the table's rows, for a thread that needs them all the time.
#[derive(Default)]
pub(crate) struct KnownRows(Vec<Arc<[StackFrame]>>);

impl KnownRows {
    /// The frames, innermost first; none if they were not [copied](InlinedMethods::copy_rows) yet.
    #[inline]
    pub(crate) fn get(&self, frames: InlinedFrames) -> &[StackFrame] {
        let index = (frames.0 as usize).checked_sub(1);
        index.and_then(|index| self.0.get(index)).map_or(&[], |row| row)
    }
}

/// The methods of one compilation, in the form that the search needs.
struct CompilationMethods<'a> {
    facts: &'a MethodFacts,
    root: FunctionId,
    /// The calls of a root whose IL can't be read.
    calls: Option<Arc<[IlCall]>>,
}

impl Methods for CompilationMethods<'_> {
    type Id = FunctionId;

    fn calls(&mut self, method: FunctionId) -> Option<Arc<[IlCall]>> {
        match &self.calls {
            Some(calls) if method == self.root => Some(Arc::clone(calls)),
            _ => self.facts.calls(method),
        }
    }

    fn jumps(&mut self, method: FunctionId) -> Option<Arc<[Jump]>> {
        self.facts.jumps(method)
    }

    fn names(&mut self, method: FunctionId) -> Option<Arc<[MethodName]>> {
        self.facts.names(method)
    }
}

impl InlinedMethods {
    /// Creates a table without methods. `has_changed_code`: instruments change the program's code.
    pub fn new(info: &ProfilerInfo, functions: &Arc<Functions>, has_changed_code: Arc<AtomicBool>) -> Self {
        Self {
            functions: Arc::clone(functions),
            has_changed_code,
            told: Compilations::default(),
            facts: MethodFacts::new(info, functions),
            rows: Mutex::default(),
        }
    }

    /// The compilations that callbacks have reported.
    pub(crate) fn told(&self) -> &Compilations {
        &self.told
    }

    fn rows(&self) -> MutexGuard<'_, Rows> {
        self.rows.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a piece of the runtime's debug information about the method that this thread compiles.
    /// `is_first`: earlier pieces belong to another body.
    pub(crate) fn debug_information(&self, method: u64, is_first: bool, bytes: &[u8]) {
        self.told.debug(|function| function.as_raw() as u64 == method, is_first, bytes);
    }

    /// Like [`there`](Self::there), with the runtime's debug information alone.
    fn at_instruction(&self, (root, candidates): (FunctionId, &Candidates), at: CodeOffset) -> Option<InlinedThere> {
        let mut methods = CompilationMethods { facts: &self.facts, root, calls: None };
        let runs_on_from = |first| at.runs_on_from(first);
        let found = Places { map: candidates.map()?, methods: &mut methods, runs_on_from: &runs_on_from }.at(at.offset);
        // The code before the first statement sets up the frame.
        let there = found.map(|(way, is_all)| InlinedThere { may_be_deeper: !is_all, ..self.on_way(&way) });
        Some(there.unwrap_or(InlinedThere { may_be_deeper: true, ..InlinedThere::default() }))
    }

    /// The frames of a path that begins with the method that owns the code.
    fn on_way(&self, way: &[PathMethod]) -> InlinedThere {
        match way {
            [root, others @ ..] if !others.is_empty() => {
                InlinedThere { frames: self.number(others), offset: self.offset(root), may_be_deeper: false }
            }
            _ => InlinedThere::default(),
        }
    }

    /// The methods inlined into `root`, whose body has these candidates, at an instruction of the
    /// body. The flag in the result says whether the answer stays the same. `called` is the target
    /// of the instruction if it is a call, and `None` otherwise. `calls` finds all methods that the
    /// body's code calls. Asks the runtime about new methods.
    pub(crate) fn there(
        &self,
        body: (FunctionId, &Candidates),
        (called, at): (Option<CallTarget>, CodeOffset),
        calls: impl FnOnce() -> Vec<FunctionId>,
    ) -> (Option<InlinedThere>, bool) {
        match called {
            Some(CallTarget::Method(callee)) => self.at_call(body, (callee, at), calls),
            Some(CallTarget::Unknown) => (self.at_instruction(body, at), false),
            Some(CallTarget::Nothing) | None => (self.at_instruction(body, at), true),
        }
    }

    /// Like [`there`](Self::there), at a call of a method.
    fn at_call(
        &self,
        (root, candidates): (FunctionId, &Candidates),
        (callee, at): (FunctionId, CodeOffset),
        called: impl FnOnce() -> Vec<FunctionId>,
    ) -> (Option<InlinedThere>, bool) {
        let (there, lasts) = self.inferred((root, candidates), callee, called);
        if there.is_some() {
            return (there, lasts);
        }
        let Some(map) = candidates.map() else { return (None, lasts) };
        if self.facts.is_called_by_compilers(callee) {
            return (self.at_instruction((root, candidates), at), true);
        }
        let mut methods = CompilationMethods { facts: &self.facts, root, calls: None };
        let runs_on_from = |first| at.runs_on_from(first);
        let mut places = Places { map, methods: &mut methods, runs_on_from: &runs_on_from };
        let way = self.facts.names(callee).map(|names| places.way_to_call(at.offset, &names));
        match way {
            Some(PathOutcome::Only(way)) => (Some(self.on_way(&way)), true),
            _ => (None, lasts),
        }
    }

    /// Like [`at_call`](Self::at_call), inferred from the calls in the candidates' IL.
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
        let mut methods = CompilationMethods { facts: &self.facts, root, calls };
        let way = self.facts.names(callee).and_then(|names| only_path(root, candidates.pairs(), &names, &mut methods));
        let there = way.as_deref().map(|way| self.on_way(way));
        (there, lasts || there.is_some_and(|there| there.frames.number() != 0))
    }

    /// The calls of a dynamic method, and whether the answer is final. The IL has `calls` of them,
    /// by tokens that only the runtime can read. Each candidate of the method is one of them. So is
    /// each method that the code calls and that no candidate calls. If these are as many as
    /// `calls`, there are no other calls; otherwise any method may be called.
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
            // A method that was not called yet can't be distinguished from the runtime's own code.
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
        // Whether the method itself calls these is unknown.
        own.extend(
            candidates.iter().filter(|candidate| candidate.0 == root && !is_own(candidate)).map(|(_, callee)| *callee),
        );
        let mut found = Vec::new();
        for callee in own {
            let call = |name: &MethodName| IlCall { offset: None, callee: Callee::Named(name.clone()) };
            found.extend(self.facts.names(callee)?.iter().map(call));
        }
        found.extend(is_any.then_some(IlCall { offset: None, callee: Callee::Any }));
        Some((found.into(), lasts || !is_any))
    }

    /// Whether no candidate has a call that may be one of `callee`. From .NET 10 on, a candidate
    /// that the compiler considers late, after inlining others, is reported as one of the root.
    fn is_of_no_candidate(&self, callee: FunctionId, candidates: &[Candidate]) -> bool {
        let Some(names) = self.facts.names(callee) else { return false };
        let has_none = |calls: Arc<[IlCall]>| !calls.iter().any(|call| call.may_be_of(&names));
        candidates.iter().all(|(_, candidate)| self.facts.calls(*candidate).is_some_and(has_none))
    }

    /// Offset of a call. For methods with changed code, it is an offset in the changed code.
    fn offset(&self, station: &PathMethod) -> Option<u32> {
        station.offset.filter(|_| !self.has_changed_code.load(Ordering::Acquire))
    }

    fn number(&self, stations: &[PathMethod]) -> InlinedFrames {
        let frame = |station: &PathMethod| StackFrame::Method {
            function: self.functions.noted(station.method).index,
            il_offset: self.offset(station),
            il_span: 0,
            tier: Tier::Inlined,
        };
        let row = stations.iter().rev().map(frame).collect();
        self.rows().number(row)
    }

    /// Appends these frames to `to`, innermost first.
    pub(crate) fn add_frames(&self, frames: InlinedFrames, to: &mut Vec<StackFrame>) {
        let index = (frames.0 as usize).checked_sub(1);
        to.extend(index.and_then(|index| self.rows().rows.get(index).cloned()).iter().flat_map(|row| row.iter()));
    }

    /// Number of the frames that `frames` refers to.
    pub(crate) fn len(&self, frames: InlinedFrames) -> usize {
        let index = (frames.0 as usize).checked_sub(1);
        index.and_then(|index| self.rows().rows.get(index).map(|row| row.len())).unwrap_or(0)
    }

    /// Adds to `copies` all rows that it lacks.
    pub(crate) fn copy_rows(&self, copies: &mut KnownRows) {
        let rows = self.rows();
        let known = copies.0.len();
        copies.0.extend(rows.rows.iter().skip(known).map(Arc::clone));
    }

    /// Call it when a module was unloaded. It is not known which methods belonged to it, and their
    /// identifiers and addresses may be reused.
    pub fn module_unloaded(&self) {
        self.told.forget_bodies();
        self.facts.forget();
    }

    /// Call it when a dynamic method was freed, as its identifier and addresses may be reused.
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
