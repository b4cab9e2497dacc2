//! Completion of an `async` method: its code gives the result to the builder that stands behind the
//! task, by a call of `SetResult` or `SetException`. That call is read, because afterwards it may
//! be too late: the code may be replaced by it (a tail call), a pooled task may have served its
//! purpose and been given to the next, and a collection may have moved all of it.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::arch::ArgumentLocation;
use super::kinds::{Class, Kind};

/// The first words of exceptions by which a task is canceled instead of failed.
static CANCELING: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

/// Whether an exception that begins with this word cancels a task. For hooks.
pub fn cancels(class: usize) -> bool {
    CANCELING.iter().any(|known| known.load(Ordering::Relaxed) == class)
}

/// Sets the first words of exceptions that cancel a task.
pub(super) fn set_canceling(classes: [usize; 2]) {
    for (known, class) in CANCELING.iter().zip(classes) {
        known.store(class, Ordering::Relaxed);
    }
}

/// Meaning of a call of a method that ends an `async` method.
#[derive(Debug, Clone, Copy)]
pub struct Completion {
    /// How the method ends.
    pub outcome: Outcome,
    /// Whether the method is hooked for this alone, without an event of its own.
    pub is_silent: bool,
}

/// Outcome of the `async` method.
#[derive(Debug, Clone, Copy)]
pub enum Outcome {
    /// In order, with a result where it has one.
    Result(Option<(ArgumentLocation, Kind)>),
    /// By the exception in this place.
    Exception(ArgumentLocation),
}

/// Task that the code of an `async` method completes.
#[derive(Debug, Clone, Copy)]
pub struct AwaitedTask {
    /// Offset of its builder, behind `this`.
    pub builder: u32,
    /// The type of its task, as C# writes it.
    pub name: &'static str,
    /// Task as shown: state and result.
    pub class: &'static Class,
    /// The class of the states of tasks.
    pub status: &'static Class,
}

impl Completion {
    /// Outcome that a completing function reports, from the argument it is given behind `this`.
    pub(super) fn new(by_exception: bool, given: Option<(ArgumentLocation, Kind)>) -> Option<Self> {
        let outcome = match (by_exception, given) {
            (false, given) => Outcome::Result(given),
            (true, given) => Outcome::Exception(given?.0),
        };
        Some(Self { outcome, is_silent: false })
    }
}
