//! Changes of a picture, as rules about paths. Each rule keeps, merges or removes the functions of
//! a path, from the outermost function on.

use std::ops::Range;

use super::functions::PictureFunctions;

/// A requested change. Functions are given as numbers. A library's number means all its code
/// without symbols.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PictureChange {
    /// Keeps only paths through the function. They then begin with the function.
    Focus(u32),
    /// Keeps only this path and everything below it.
    FocusPath(Vec<u32>),
    /// Adds the function's own amount to its caller.
    Merge(u32),
    /// Like `Merge`, but only on this path.
    MergePath(Vec<u32>),
    /// Removes paths through the function.
    Drop(u32),
    /// Turns the time of everything that the function calls into the function's own time.
    Collapse(u32),
    /// Merges calls between functions of the function's assembly into one frame.
    CollapseLibrary(u32),
    /// Merges recursive calls of the function into one.
    Recursion(u32),
    /// Like `Merge`, for all code of these kinds, as in
    /// [`PictureFunction::code`](super::PictureFunction::code).
    MergeKinds(Vec<String>),
    /// Like `Drop`, for all code of these kinds.
    DropKinds(Vec<String>),
    /// Merges all code except the program's own into the callers; types of objects stay.
    OwnCode,
}

/// Stands for no function.
pub(super) const NONE: u32 = u32::MAX;

/// State of a rule at a place of a path.
#[derive(Debug, Clone, Copy)]
pub(super) struct State {
    /// The last function that the rule kept.
    pub(super) last: u32,
    /// Additional state of the rule.
    pub(super) known: u32,
}

impl State {
    pub(super) const BEGIN: Self = Self { last: NONE, known: 0 };
}

/// Outcome for functions that call one another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CycleOutcome {
    /// Some of them are passed to the next rule.
    Part(Range<usize>),
    /// All kept functions are passed on.
    Kept,
    /// The path is removed with everything below it.
    Gone,
}

/// A rule.
pub(super) enum Rule {
    /// Code without symbols becomes its library.
    Fold,
    /// Paths begin with one of the marked functions.
    Focus(Vec<bool>),
    FocusPath(Vec<u32>),
    /// The marked functions are merged.
    Merge(Vec<bool>),
    MergePath(Vec<u32>),
    Drop(Vec<bool>),
    Collapse(Vec<bool>),
    /// Adjacent calls among marked functions become one.
    Together(Vec<bool>),
    Recursion(Vec<bool>),
}

/// State within a focus, a collapsed function or a dropped path, and of rules whose given path was
/// followed completely.
const INSIDE: u32 = u32::MAX;
/// State of a path that has left the rule's given path.
const ELSEWHERE: u32 = u32::MAX - 1;

impl Rule {
    pub(super) fn from_change(change: &PictureChange, functions: &PictureFunctions<'_>) -> Self {
        let list = functions.list();
        let marked = |is: &dyn Fn(u32) -> bool| (0..list.len() as u32).map(is).collect::<Vec<bool>>();
        let same = |function: u32| marked(&|one| one == function || list[one as usize].library == Some(function));
        let of_kinds = |kinds: &[String]| marked(&|one| kinds.iter().any(|kind| *kind == list[one as usize].code));
        match change {
            PictureChange::Focus(function) => Self::Focus(same(*function)),
            PictureChange::FocusPath(path) => Self::FocusPath(path.clone()),
            PictureChange::Merge(function) => Self::Merge(same(*function)),
            PictureChange::MergePath(path) => Self::MergePath(path.clone()),
            PictureChange::Drop(function) => Self::Drop(same(*function)),
            PictureChange::Collapse(function) => Self::Collapse(same(*function)),
            PictureChange::CollapseLibrary(function) => {
                let module = list.get(*function as usize).map(|function| function.module);
                Self::Together(marked(&|one| Some(list[one as usize].module) == module))
            }
            PictureChange::Recursion(function) => Self::Recursion(same(*function)),
            PictureChange::MergeKinds(kinds) => Self::Merge(of_kinds(kinds)),
            PictureChange::DropKinds(kinds) => Self::Drop(of_kinds(kinds)),
            PictureChange::OwnCode => Self::Merge(marked(&|one| !["own", "type"].contains(&list[one as usize].code))),
        }
    }

    /// Whether paths may begin below their outermost functions.
    pub(super) fn is_focus(&self) -> bool {
        matches!(self, Self::Focus(_) | Self::FocusPath(_))
    }

    /// Whether the state means that the path is within the rule's scope.
    pub(super) fn is_inside(&self, state: State) -> bool {
        !self.is_focus() || state.known == INSIDE
    }

    /// Outcome for functions of a path, given the rule's `state`; `kept` receives the functions
    /// that are kept. Not for recursions, which move one part of a path below another.
    pub(super) fn pass(
        &self,
        state: &mut State,
        functions: &[u32],
        libraries: &[u32],
        kept: &mut Vec<u32>,
    ) -> CycleOutcome {
        let (all, none) = (0..functions.len(), 0..0);
        let first = |marked: &[bool]| functions.iter().position(|function| is_in(marked, *function));
        match self {
            Self::Fold => {
                let library = |function: u32| libraries.get(function as usize).copied().unwrap_or(NONE);
                kept_behind(
                    state,
                    functions,
                    kept,
                    |function| library(function) != NONE,
                    |last, function| {
                        let library = library(function);
                        (library != last).then_some(library)
                    },
                )
            }
            Self::Together(marked) => kept_behind(
                state,
                functions,
                kept,
                |function| is_in(marked, function),
                |last, function| (last == NONE || !is_in(marked, last)).then_some(function),
            ),
            Self::Focus(_) | Self::FocusPath(_) if state.known == INSIDE => CycleOutcome::Part(all),
            Self::Focus(marked) => CycleOutcome::Part(first(marked).map_or(none, |begin| {
                state.known = INSIDE;
                begin..all.end
            })),
            Self::FocusPath(path) => {
                CycleOutcome::Part(followed(state, path, functions).map_or(none, |end| end..all.end))
            }
            Self::Merge(marked) => {
                let Some(begin) = first(marked) else { return CycleOutcome::Part(all) };
                kept.extend_from_slice(&functions[..begin]);
                kept.extend(functions[begin..].iter().filter(|function| !is_in(marked, **function)));
                CycleOutcome::Kept
            }
            Self::MergePath(path) => {
                let Some(end) = followed(state, path, functions) else { return CycleOutcome::Part(all) };
                kept.extend(functions[..end].iter().chain(&functions[end + 1..]));
                CycleOutcome::Kept
            }
            Self::Drop(_) if state.known == INSIDE => CycleOutcome::Gone,
            Self::Drop(marked) if first(marked).is_some() => {
                state.known = INSIDE;
                CycleOutcome::Gone
            }
            Self::Collapse(_) if state.known == INSIDE => CycleOutcome::Part(none),
            Self::Collapse(marked) => CycleOutcome::Part(first(marked).map_or(all, |end| {
                state.known = INSIDE;
                0..end + 1
            })),
            Self::Drop(_) | Self::Recursion(_) => CycleOutcome::Part(all),
        }
    }
}

#[inline]
fn is_in(marked: &[bool], function: u32) -> bool {
    marked.get(function as usize) == Some(&true)
}

/// Keeps functions. The outcome for functions within the rule's scope depends on the function that
/// was kept last.
fn kept_behind(
    state: &mut State,
    functions: &[u32],
    kept: &mut Vec<u32>,
    is_meant: impl Fn(u32) -> bool,
    shown: impl Fn(u32, u32) -> Option<u32>,
) -> CycleOutcome {
    let Some(begin) = functions.iter().position(|function| is_meant(*function)) else {
        state.last = functions.last().copied().unwrap_or(state.last);
        return CycleOutcome::Part(0..functions.len());
    };
    kept.extend_from_slice(&functions[..begin]);
    let mut last = kept.last().copied().unwrap_or(state.last);
    for function in &functions[begin..] {
        let shown = if is_meant(*function) { shown(last, *function) } else { Some(*function) };
        if let Some(shown) = shown {
            kept.push(shown);
            last = shown;
        }
    }
    state.last = last;
    CycleOutcome::Kept
}

/// Follows the rule's given path; `state` has the number of its functions that have been matched.
/// Returns the index of the function that completes it.
fn followed(state: &mut State, path: &[u32], functions: &[u32]) -> Option<usize> {
    for (at, function) in functions.iter().enumerate() {
        if matches!(state.known, INSIDE | ELSEWHERE) {
            return None;
        }
        let known = state.known as usize;
        state.known = match path.get(known) == Some(function) {
            true if known + 1 == path.len() => INSIDE,
            true => state.known + 1,
            false => ELSEWHERE,
        };
        if state.known == INSIDE {
            return Some(at);
        }
    }
    None
}
