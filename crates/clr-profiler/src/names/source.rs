//! Finds the source methods of compiler-generated types and methods.

use std::fmt;

/// Kind of a function by its source: the method itself, or code that the compiler generated from a
/// part of the method.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub struct SourceKind {
    /// A lambda or local function inside the method.
    pub closure: Closure,
    /// A state machine that runs the method in pieces.
    pub state_machine: StateMachine,
}

/// A function inside a method.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum Closure {
    /// The method itself.
    #[default]
    None,
    /// A lambda or anonymous method.
    Lambda,
    /// A local function with this name.
    LocalFunction(String),
}

/// Kind of the state machine that the compiler generated from a method.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum StateMachine {
    /// No state machine: the method itself.
    #[default]
    None,
    /// An `async` method.
    Async,
    /// A method with `yield return`.
    Iterator,
    /// An `async` method with `yield return`.
    AsyncIterator,
}

impl SourceKind {
    /// Whether the function is the source method itself.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.closure == Closure::None && self.state_machine == StateMachine::None
    }
}

impl fmt::Display for SourceKind {
    /// The marker at the end of a signature, without the parentheses: `async`, `iterator`, `async
    /// iterator`, `lambda`, `async lambda`, `local function X`; nothing for a plain method.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let machine = match self.state_machine {
            StateMachine::None => "",
            StateMachine::Async => "async",
            StateMachine::Iterator => "iterator",
            StateMachine::AsyncIterator => "async iterator",
        };
        let space = if machine.is_empty() || self.closure == Closure::None { "" } else { " " };
        match &self.closure {
            Closure::None => f.write_str(machine),
            Closure::Lambda => write!(f, "{machine}{space}lambda"),
            Closure::LocalFunction(name) => write!(f, "{machine}{space}local function {name}"),
        }
    }
}

/// Origin of a compiler-generated name.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Origin {
    /// The source method.
    pub(super) method: String,
    /// The lambda or local function in it.
    pub(super) closure: Closure,
    /// Whether the name is the type name of a state machine.
    pub(super) is_state_machine: bool,
}

/// Reads names like `<Pay>b__0_1` (a lambda in `Pay`), `<Pay>g__Local|0_0` (a local function),
/// `<Pay>d__5` (a state machine) and `<<Pay>b__0_1>d` (an async lambda), and Visual Basic's
/// `VB$StateMachine_5_Pay` and `_Lambda$__0-1`, whose name does not contain the method. `None` for
/// all other names, generated or not.
pub(super) fn origin(name: &str) -> Option<Origin> {
    if let Some(method) = visual_basic_state_machine(name) {
        let closure = if is_visual_basic_lambda(method) { Closure::Lambda } else { Closure::None };
        return Some(Origin { method: method.to_owned(), closure, is_state_machine: true });
    }
    if is_visual_basic_lambda(name) {
        return Some(Origin { method: name.to_owned(), closure: Closure::Lambda, is_state_machine: false });
    }
    let (inner, kind) = split_generated(name)?;
    if inner.is_empty() {
        return None;
    }
    if let Some(rest) = kind.strip_prefix('d') {
        let is_numbered = rest.is_empty() || rest.starts_with("__") || rest.starts_with('`');
        return is_numbered.then(|| state_machine(inner));
    }
    if kind.starts_with("b__") {
        return Some(Origin { method: inner.to_owned(), closure: Closure::Lambda, is_state_machine: false });
    }
    let local = kind.strip_prefix("g__")?.split('|').next()?;
    Some(Origin {
        method: inner.to_owned(),
        closure: Closure::LocalFunction(local.to_owned()),
        is_state_machine: false,
    })
}

/// Whether a type's own name is a compiler-generated name of a type for closures or a state
/// machine.
pub(super) fn is_helper_type(name: &str) -> bool {
    name.starts_with("<>c")
        || name.starts_with("_Closure$__")
        || origin(name).is_some_and(|origin| origin.is_state_machine)
}

/// The name of the state machine's type contains the name of the method, which may be the name of a
/// lambda or local function. The compiler has replaced dots by dashes.
fn state_machine(inner: &str) -> Origin {
    let inner = inner.replace('-', ".");
    match origin(&inner) {
        Some(closure) => Origin { is_state_machine: true, ..closure },
        None => Origin { method: inner, closure: Closure::None, is_state_machine: true },
    }
}

/// Splits `<inner>kind`; `inner` may contain angle brackets itself.
fn split_generated(name: &str) -> Option<(&str, &str)> {
    let rest = name.strip_prefix('<')?;
    let mut depth = 1_usize;
    for (at, character) in rest.char_indices() {
        match character {
            '<' => depth += 1,
            '>' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some((&rest[..at], &rest[at + 1..]));
        }
    }
    None
}

/// Whether a method's own name is the name of a Visual Basic lambda: `_Lambda$__0-1`.
pub(super) fn is_visual_basic_lambda(name: &str) -> bool {
    name.starts_with("_Lambda$__")
}

/// Returns the method name in `VB$StateMachine_5_Pay`. `VB$StateMachine___Lambda$__0-1` belongs to
/// a lambda.
pub(super) fn visual_basic_state_machine(name: &str) -> Option<&str> {
    let (number, method) = name.strip_prefix("VB$StateMachine_")?.split_once('_')?;
    (number.bytes().all(|digit| digit.is_ascii_digit()) && !method.is_empty()).then_some(method)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str) -> Option<(String, Closure, bool)> {
        origin(name).map(|origin| (origin.method, origin.closure, origin.is_state_machine))
    }

    #[test]
    fn generated_names_tell_their_source() {
        let local = |name: &str| Closure::LocalFunction(name.to_owned());
        assert_eq!(read("<Pay>d__5"), Some(("Pay".into(), Closure::None, true)));
        assert_eq!(read("<Pay>d__5`1"), Some(("Pay".into(), Closure::None, true)));
        assert_eq!(read("<Pay>b__0_1"), Some(("Pay".into(), Closure::Lambda, false)));
        assert_eq!(read("<.ctor>b__3"), Some((".ctor".into(), Closure::Lambda, false)));
        assert_eq!(read("<Pay>g__Round|0_0"), Some(("Pay".into(), local("Round"), false)));
        assert_eq!(read("<<Pay>b__0>d"), Some(("Pay".into(), Closure::Lambda, true)));
        assert_eq!(read("<<Pay>g__Round|0_0>d"), Some(("Pay".into(), local("Round"), true)));
        assert_eq!(read("<<Main>$>d__0"), Some(("<Main>$".into(), Closure::None, true)));
        assert_eq!(read("<<Main>$>b__0_0"), Some(("<Main>$".into(), Closure::Lambda, false)));
        assert_eq!(read("<<Main>$>g__Load|0_0"), Some(("<Main>$".into(), local("Load"), false)));
        assert_eq!(
            read("<System-Collections-Generic-IEnumerable<T>-GetEnumerator>d__2"),
            Some(("System.Collections.Generic.IEnumerable<T>.GetEnumerator".into(), Closure::None, true))
        );
        assert_eq!(read("VB$StateMachine_12_Pay"), Some(("Pay".into(), Closure::None, true)));
        assert_eq!(read("_Lambda$__0-1"), Some(("_Lambda$__0-1".into(), Closure::Lambda, false)));
        assert_eq!(read("VB$StateMachine___Lambda$__0-1"), Some(("_Lambda$__0-1".into(), Closure::Lambda, true)));
    }

    #[test]
    fn other_names_stay_as_they_are() {
        for name in
            ["Pay", "", "<", "<>", "<Main>$", "<Clone>$", "<>m__Finally1", "<>c", "<Pay", "<Pay>k__BackingField", "<>d"]
        {
            assert_eq!(read(name), None, "{name}");
        }
    }

    #[test]
    fn helper_types_are_recognised() {
        for name in
            ["<>c", "<>c__DisplayClass1_0", "<>c__0`1", "<Pay>d__5", "<<Pay>b__0>d", "_Closure$__", "_Closure$__0-0"]
        {
            assert!(is_helper_type(name), "{name}");
        }
        for name in ["Checkout", "<PrivateImplementationDetails>", "<>f__AnonymousType0`2", "<Module>"] {
            assert!(!is_helper_type(name), "{name}");
        }
    }

    #[test]
    fn markers_read_like_words() {
        let marker = |closure, state_machine| SourceKind { closure, state_machine }.to_string();
        assert_eq!(marker(Closure::None, StateMachine::None), "");
        assert_eq!(marker(Closure::None, StateMachine::AsyncIterator), "async iterator");
        assert_eq!(marker(Closure::Lambda, StateMachine::None), "lambda");
        assert_eq!(marker(Closure::Lambda, StateMachine::Async), "async lambda");
        let local = Closure::LocalFunction("Round".into());
        assert_eq!(marker(local, StateMachine::Iterator), "iterator local function Round");
    }
}
