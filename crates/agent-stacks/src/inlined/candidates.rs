//! Candidates: methods that the compiler considered for inlining, as callbacks report them.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use clr_profiler::FunctionId;
use clr_profiler::il::{Flow, Opcode, raw_code};
use clrscope_agent_base::os::threads;

use super::exact::InlineMap;
use super::inline_paths::Candidate;

/// Most bytes of debug information of a body that are kept.
const MOST_BYTES: usize = 4 << 20;

/// What is known about the calls in the IL of a method that is compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum OwnCalls {
    /// The runtime gives the IL, and the module's metadata names the called methods.
    #[default]
    Readable,
    /// The method is dynamic, and makes this number of calls. Only the runtime can read their
    /// tokens.
    Counted(u32),
    /// The IL is not known.
    Unknown,
}

impl OwnCalls {
    /// The calls of a dynamic method. The given IL has no header.
    pub(crate) fn of_dynamic(il: &[u8]) -> Self {
        let mut calls = 0;
        for instruction in raw_code(il) {
            let Ok(instruction) = instruction else { return Self::Unknown };
            calls += u32::from(instruction.opcode.flow() == Flow::Call || instruction.opcode == Opcode::Jmp);
        }
        if il.is_empty() { Self::Unknown } else { Self::Counted(calls) }
    }
}

/// Candidates for inlining into a body, without duplicates, in the order in which the compiler
/// considered them. Empty by default.
#[derive(Debug, Clone)]
pub(crate) struct Candidates<Id = FunctionId> {
    pairs: Arc<[Candidate<Id>]>,
    own_calls: OwnCalls,
    /// The inlined candidates and their positions, if the runtime's debug information was
    /// requested.
    map: Option<Arc<InlineMap>>,
}

impl<Id> Default for Candidates<Id> {
    fn default() -> Self {
        Self { pairs: Arc::default(), own_calls: OwnCalls::default(), map: None }
    }
}

impl<Id> Candidates<Id> {
    /// Whether there are no candidates, so that nothing was inlined into the body.
    pub(crate) fn is_empty(&self) -> bool {
        self.pairs.is_empty() && self.map.is_none()
    }

    pub(super) fn pairs(&self) -> &[Candidate<Id>] {
        &self.pairs
    }

    pub(super) fn own_calls(&self) -> OwnCalls {
        self.own_calls
    }

    pub(super) fn map(&self) -> Option<&InlineMap> {
        self.map.as_deref()
    }
}

/// A compilation in progress.
struct Compilation<Id> {
    function: Id,
    own_calls: OwnCalls,
    candidates: Vec<Candidate<Id>>,
    /// Debug information received so far.
    debug: Vec<u8>,
}

impl<Id> Compilation<Id> {
    fn into_candidates(self) -> Candidates<Id> {
        let map = InlineMap::read(&self.debug);
        // A body without inlined methods needs neither a map nor candidates.
        let is_alone = map.as_ref().is_some_and(InlineMap::is_alone);
        let pairs = if is_alone { Vec::new() } else { self.candidates };
        let map = map.filter(|_| !is_alone).map(Arc::new);
        Candidates { pairs: pairs.into(), own_calls: self.own_calls, map }
    }
}

struct Tables<Id> {
    /// Compilations in progress on each thread. One may lead to another.
    compilations: HashMap<u32, Vec<Compilation<Id>>>,
    /// Candidates by the start addresses of bodies.
    bodies: HashMap<usize, Candidates<Id>>,
    /// Dynamic methods: the start address of each, and how often it was looked at.
    dynamic: HashMap<Id, (usize, u32)>,
}

/// Compilations that callbacks have reported.
pub(crate) struct Compilations<Id = FunctionId>(Mutex<Tables<Id>>);

impl<Id> Default for Compilations<Id> {
    fn default() -> Self {
        Self(Mutex::new(Tables { compilations: HashMap::new(), bodies: HashMap::new(), dynamic: HashMap::new() }))
    }
}

impl<Id: Copy + Eq + Hash> Compilations<Id> {
    fn tables(&self) -> MutexGuard<'_, Tables<Id>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Call it when a compilation begins on this thread.
    pub(crate) fn begins(&self, function: Id, own_calls: OwnCalls) {
        let compilation = Compilation { function, own_calls, candidates: Vec::new(), debug: Vec::new() };
        self.tables().compilations.entry(threads::thread_id()).or_default().push(compilation);
    }

    /// Call it when the compiler considers a candidate on this thread.
    pub(crate) fn candidate(&self, caller: Id, callee: Id) {
        let mut tables = self.tables();
        let compilation = tables.compilations.get_mut(&threads::thread_id()).and_then(|open| open.last_mut());
        // A method that is called at many places is one candidate.
        if let Some(open) = compilation.filter(|open| !open.candidates.contains(&(caller, callee))) {
            open.candidates.push((caller, callee));
        }
    }

    /// Takes a piece of a method's debug information, on the thread that has just compiled the
    /// method.
    pub(super) fn debug(&self, is_of: impl Fn(Id) -> bool, is_first: bool, bytes: &[u8]) {
        let mut tables = self.tables();
        let compilation = tables.compilations.get_mut(&threads::thread_id()).and_then(|open| open.last_mut());
        if let Some(open) = compilation.filter(|open| is_of(open.function)) {
            if is_first {
                open.debug.clear();
            }
            if open.debug.len() + bytes.len() <= MOST_BYTES {
                open.debug.extend_from_slice(bytes);
            }
        }
    }

    /// Ends the compilation of a function on this thread, and nested compilations whose ends were
    /// not reported. Returns the candidates.
    pub(crate) fn ends(&self, function: Id) -> Candidates<Id> {
        let (thread, mut tables) = (threads::thread_id(), self.tables());
        let Some(open) = tables.compilations.get_mut(&thread) else { return Candidates::default() };
        let Some(index) = open.iter().rposition(|open| open.function == function) else { return Candidates::default() };
        let ended = open.drain(index..).next();
        if open.is_empty() {
            tables.compilations.remove(&thread);
        }
        drop(tables);
        ended.map(Compilation::into_candidates).unwrap_or_default()
    }

    /// Stores the candidates of bodies that begin at these addresses.
    pub(crate) fn keep(&self, starts: &[usize], candidates: &Candidates<Id>) {
        if !candidates.is_empty() {
            self.tables().bodies.extend(starts.iter().map(|start| (*start, candidates.clone())));
        }
    }

    /// Stores the candidates of a dynamic method that begins at an address, until the method is
    /// freed.
    pub(crate) fn keep_dynamic(&self, function: Id, start: usize, candidates: &Candidates<Id>) {
        if !candidates.is_empty() {
            let mut tables = self.tables();
            tables.bodies.insert(start, candidates.clone());
            tables.dynamic.insert(function, (start, 0));
        }
    }

    /// Candidates of the body that begins at an address, as far as reported.
    pub(crate) fn of_body(&self, start: usize) -> Candidates<Id> {
        self.tables().bodies.get(&start).cloned().unwrap_or_default()
    }

    /// Counts an attempt to find inlined methods in a dynamic method. Returns the number of
    /// attempts so far.
    pub(super) fn tries(&self, function: Id) -> u32 {
        let mut tables = self.tables();
        tables.dynamic.get_mut(&function).map_or(u32::MAX, |(_, tries)| {
            *tries = tries.saturating_add(1);
            *tries
        })
    }

    pub(super) fn forget_bodies(&self) {
        let mut tables = self.tables();
        let Tables { bodies, dynamic, .. } = &mut *tables;
        let stay: Vec<usize> = dynamic.values().map(|(start, _)| *start).collect();
        bodies.retain(|start, _| stay.contains(start));
    }

    pub(super) fn forget_dynamic(&self, function: Id) {
        let mut tables = self.tables();
        if let Some((start, _)) = tables.dynamic.remove(&function) {
            tables.bodies.remove(&start);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_a_dynamic_method_are_counted_in_il_without_a_header() {
        // ldarg.0, call, callvirt, newobj, castclass, ret
        let il = [0x02, 0x28, 1, 0, 0, 6, 0x6F, 2, 0, 0, 6, 0x73, 3, 0, 0, 6, 0x74, 4, 0, 0, 2, 0x2A];
        assert_eq!(OwnCalls::of_dynamic(&il), OwnCalls::Counted(3));
        assert_eq!(OwnCalls::of_dynamic(&[0x2A]), OwnCalls::Counted(0));
        assert_eq!(OwnCalls::of_dynamic(&il[..4]), OwnCalls::Unknown, "cut");
        assert_eq!(OwnCalls::of_dynamic(&[]), OwnCalls::Unknown);
    }

    #[test]
    fn candidates_of_a_dynamic_method_go_with_it_and_not_with_modules() {
        let told = Compilations::<u32>::default();
        let [one, other, candidate] = [1_u32, 2, 3];
        told.begins(one, OwnCalls::Counted(1));
        told.candidate(one, candidate);
        told.candidate(one, candidate);
        told.begins(other, OwnCalls::Readable);
        assert!(told.ends(other).is_empty(), "a compilation within another has candidates of its own");
        let found = told.ends(one);
        assert_eq!((found.pairs(), found.own_calls()), (&[(one, candidate)][..], OwnCalls::Counted(1)));
        told.keep_dynamic(one, 0x1000, &found);
        told.keep(&[0x2000], &found);
        assert_eq!([one, one, other].map(|function| told.tries(function)), [1, 2, u32::MAX]);
        told.forget_bodies();
        assert!(!told.of_body(0x1000).is_empty() && told.of_body(0x2000).is_empty());
        told.forget_dynamic(one);
        assert!(told.of_body(0x1000).is_empty());
    }
}
