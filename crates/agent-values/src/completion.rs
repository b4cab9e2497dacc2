//! Completion of an `async` method. Its code passes the result to the builder of the task, by a
//! call of `SetResult` or `SetException`. This call is read, because afterwards may be too late:
//! the call may be a tail call that replaces the code, a pooled task may have been reused, and a
//! collection may have moved everything.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::arch::ArgumentLocation;
use super::kinds::{Class, Kind};

/// The first words of exceptions that cancel a task instead of failing it.
static CANCELING: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

/// Whether an exception whose object begins with the word `class` cancels a task. For hooks.
pub fn cancels(class: usize) -> bool {
    CANCELING.iter().any(|known| known.load(Ordering::Relaxed) == class)
}

/// Sets the classes of the exceptions that cancel a task, as the first words of their objects.
pub(super) fn set_canceling(classes: [usize; 2]) {
    for (known, class) in CANCELING.iter().zip(classes) {
        known.store(class, Ordering::Relaxed);
    }
}

/// The meaning of a call that ends an `async` method.
#[derive(Debug, Clone, Copy)]
pub struct Completion {
    /// How the method ends.
    pub outcome: Outcome,
    /// Whether the method is hooked only to see this call, and records no event of its own.
    pub is_silent: bool,
}

/// Outcome of the `async` method.
#[derive(Debug, Clone, Copy)]
pub enum Outcome {
    /// Success, with a result if the method has one.
    Result(Option<(ArgumentLocation, Kind)>),
    /// An exception, at this location.
    Exception(ArgumentLocation),
}

/// The task that the code of an `async` method completes.
#[derive(Debug, Clone, Copy)]
pub struct AwaitedTask {
    /// Offset of its builder from `this`.
    pub builder: u32,
    /// The type of the task in C# notation.
    pub name: &'static str,
    /// The form in which the task is shown: its state and its result.
    pub class: &'static Class,
    /// The class of task states.
    pub status: &'static Class,
}

impl Completion {
    /// The outcome that a completing function reports. `given` is the argument that follows `this`.
    pub(super) fn new(by_exception: bool, given: Option<(ArgumentLocation, Kind)>) -> Option<Self> {
        let outcome = match (by_exception, given) {
            (false, given) => Outcome::Result(given),
            (true, given) => Outcome::Exception(given?.0),
        };
        Some(Self { outcome, is_silent: false })
    }
}
