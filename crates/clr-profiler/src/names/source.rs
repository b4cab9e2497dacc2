//! Which source method the compiler's helper types and methods came from.

use std::fmt;

/// Which code of a source method a function is: the method itself, or something the compiler made of a part of it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct SourceKind {
    /// A lambda or local function inside the method.
    pub closure: Closure,
    /// A state machine that runs the method in pieces.
    pub state_machine: StateMachine,
}

/// A function inside a method.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub enum Closure {
    /// The method itself.
    #[default]
    None,
    /// A lambda or anonymous method.
    Lambda,
    /// A local function of that name.
    LocalFunction(String),
}

/// How the compiler cut a method into pieces.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum StateMachine {
    /// It did not.
    #[default]
    None,
    /// `async`.
    Async,
    /// `yield return`.
    Iterator,
    /// Both.
    AsyncIterator,
}

impl SourceKind {
    /// Whether the function is the source method as it stands.
    pub fn is_plain(&self) -> bool {
        self.closure == Closure::None && self.state_machine == StateMachine::None
    }
}

impl fmt::Display for SourceKind {
    /// The marker at the end of a signature, without the parentheses: `async`, `iterator`, `async iterator`, `lambda`,
    /// `async lambda`, `local function X`; nothing for a plain method.
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
