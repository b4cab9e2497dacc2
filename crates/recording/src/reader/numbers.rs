//! What the numbers in a recording mean; a number from the future becomes the default.

use crate::model::{FunctionKind, SourceKind, ThreadRole};

/// A kind of function.
pub(crate) fn function_kind(number: u32) -> FunctionKind {
    match number {
        1 => FunctionKind::Native,
        2 => FunctionKind::Runtime,
        3 => FunctionKind::Suspended,
        _ => FunctionKind::Managed,
    }
}

/// How the compiler made a method.
pub(crate) fn source_kind(number: u32) -> SourceKind {
    match number {
        1 => SourceKind::Async,
        2 => SourceKind::Iterator,
        3 => SourceKind::Lambda,
        4 => SourceKind::LocalFunction,
        _ => SourceKind::Plain,
    }
}

/// What a thread is for, if that is known.
pub(crate) fn thread_role(number: u32) -> Option<ThreadRole> {
    [ThreadRole::User, ThreadRole::Main, ThreadRole::Finalizer, ThreadRole::Gc, ThreadRole::Tiering, ThreadRole::Pool]
        .into_iter()
        .find(|role| *role as u32 == number)
}
