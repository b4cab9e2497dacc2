//! Changes as rules about paths: what becomes of a function behind others, from the outermost on.

use super::functions::PictureFunctions;

/// A change that somebody asks for. Functions are numbers; one that stands for a library is all nameless code of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum PictureChange {
    /// Only paths through the function, which begin with it.
    Focus(u32),
    /// Only what lies below this one path.
    FocusPath(Vec<u32>),
    /// The function's own amount goes to whoever called it.
    Merge(u32),
    /// As `Merge`, on this one path.
    MergePath(Vec<u32>),
    /// Paths through the function are left out.
    Drop(u32),
    /// Calls of the function become its own time.
    Collapse(u32),
    /// Calls within the function's assembly become one frame.
    CollapseLibrary(u32),
    /// Calls of itself become one.
    Recursion(u32),
    /// As `Merge`, with all code of these kinds.
    MergeKinds(Vec<String>),
    /// As `Drop`, with all code of these kinds.
    DropKinds(Vec<String>),
    /// All that is not the program's own code is merged.
    OwnCode,
}

/// No function.
pub(super) const NONE: u32 = u32::MAX;

/// Knowledge of a rule at a place of a path.
#[derive(Debug, Clone, Copy)]
pub(super) struct State {
    /// The function that the rule let through last.
    pub(super) last: u32,
    /// More that the rule has to know.
    pub(super) known: u32,
}

impl State {
    pub(super) const BEGIN: Self = Self { last: NONE, known: 0 };
}

/// Outcome for a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// The function goes on to the next rule, as this function.
    Shown(u32),
    /// Part of what called it.
    Folded,
    /// The path is left out, as far as the rule has seen of it.
    Outside,
    /// The function is left out with all that it calls.
    Gone,
    /// A repetition of what stands at that depth of the path.
    Again(u32),
}

/// A rule.
pub(super) enum Rule {
    /// Nameless code becomes its library.
    Fold,
    /// Paths begin with one of the functions that are marked.
    Focus(Vec<bool>),
    FocusPath(Vec<u32>),
    /// The functions that are marked are merged.
    Merge(Vec<bool>),
    MergePath(Vec<u32>),
    Drop(Vec<bool>),
    Collapse(Vec<bool>),
    /// Marked functions that call each other are one.
    Together(Vec<bool>),
    Recursion(Vec<bool>),
}

/// State of a focus from its begin on, and of rules that a path goes along whole.
const INSIDE: u32 = u32::MAX;

impl Rule {
    pub(super) fn of(change: &PictureChange, functions: &PictureFunctions<'_>) -> Self {
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
            PictureChange::OwnCode => Self::Merge(marked(&|one| list[one as usize].code != "own")),
        }
    }

    /// Whether paths may begin below their outermost functions.
    pub(super) fn is_focus(&self) -> bool {
        matches!(self, Self::Focus(_) | Self::FocusPath(_))
    }

    /// Whether the state is that of a path that the rule is about.
    pub(super) fn is_inside(&self, state: State) -> bool {
        !self.is_focus() || state.known == INSIDE
    }

    /// Outcome for a function of a path, of which the rule knows `state`. `depth` is the place that it will have on the path.
    #[inline]
    pub(super) fn step(&self, state: &mut State, function: u32, depth: u32, libraries: &[u32]) -> Fate {
        let is = |marked: &[bool]| marked.get(function as usize) == Some(&true);
        let fate = match self {
            Self::Fold => match libraries.get(function as usize) {
                Some(&library) if library != NONE => {
                    if library == state.last {
                        Fate::Folded
                    } else {
                        Fate::Shown(library)
                    }
                }
                _ => Fate::Shown(function),
            },
            Self::Focus(marked) => {
                if state.known != INSIDE && is(marked) {
                    state.known = INSIDE;
                }
                if state.known == INSIDE { Fate::Shown(function) } else { Fate::Outside }
            }
            Self::FocusPath(path) => {
                if state.known != INSIDE {
                    follow(state, path, function);
                }
                if state.known == INSIDE { Fate::Shown(function) } else { Fate::Outside }
            }
            Self::Merge(marked) if is(marked) => Fate::Folded,
            Self::MergePath(path) => {
                let was_inside = state.known == INSIDE;
                if !was_inside {
                    follow(state, path, function);
                }
                if !was_inside && state.known == INSIDE { Fate::Folded } else { Fate::Shown(function) }
            }
            Self::Drop(marked) if is(marked) => Fate::Gone,
            Self::Collapse(_) if state.known == INSIDE => Fate::Folded,
            Self::Collapse(marked) => {
                if is(marked) {
                    state.known = INSIDE;
                }
                Fate::Shown(function)
            }
            Self::Together(marked) => {
                let is_within = state.last != NONE && marked.get(state.last as usize) == Some(&true);
                if is(marked) && is_within { Fate::Folded } else { Fate::Shown(function) }
            }
            Self::Recursion(marked) if is(marked) => match state.known {
                0 => {
                    state.known = depth + 1;
                    Fate::Shown(function)
                }
                outermost => Fate::Again(outermost - 1),
            },
            Self::Merge(_) | Self::Drop(_) | Self::Recursion(_) => Fate::Shown(function),
        };
        if let Fate::Shown(shown) = fate {
            state.last = shown;
        }
        fate
    }
}

/// Follows a path by one more function: its length so far is known, beginning from 1; 0 is no more of a beginning, behind the first step.
fn follow(state: &mut State, path: &[u32], function: u32) {
    /// State of a path that went another way.
    const ELSEWHERE: u32 = u32::MAX - 1;
    if state.known == ELSEWHERE {
        return;
    }
    let at = state.known as usize;
    state.known = match path.get(at) == Some(&function) {
        true if at + 1 == path.len() => INSIDE,
        true => state.known + 1,
        false => ELSEWHERE,
    };
}
