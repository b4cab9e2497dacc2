//! Runs queries and writes their results as lines.

use std::fmt::{Debug, Write as _};
use std::sync::{Mutex, OnceLock, PoisonError};

use clr_profiler::{Error, Result};

#[derive(Default)]
pub(crate) struct Checks {
    lines: Mutex<String>,
    in_collection: OnceLock<()>,
}

impl Checks {
    pub(crate) fn line(&self, line: &str) {
        let _ = writeln!(self.lines.lock().unwrap_or_else(PoisonError::into_inner), "{line}");
    }

    pub(crate) fn same<T: PartialEq + Debug>(&self, what: &str, saw: T, expected: T) {
        if saw == expected {
            self.line(&format!("ok {what}"));
        } else {
            self.line(&format!("WRONG {what}: saw {saw:?}, expected {expected:?}"));
        }
    }

    pub(crate) fn holds(&self, what: &str, saw: impl Debug, holds: bool) {
        self.line(&if holds { format!("ok {what}") } else { format!("WRONG {what}: saw {saw:?}") });
    }

    pub(crate) fn outcome(&self, what: &str, outcome: Result<()>) {
        self.same(what, outcome, Ok(()));
    }

    /// Records that a debug build refused a query about types in a callback about objects during a
    /// collection. Only the first result is recorded.
    pub(crate) fn refused_during_collection(&self, error: Option<Error>) {
        if self.in_collection.set(()).is_ok() {
            let refused = error.is_some_and(|error| error.reason().is_some_and(|reason| reason.contains("collection")));
            self.same("refused during a collection", refused, cfg!(debug_assertions));
        }
    }

    pub(crate) fn write(&self) {
        if let Some(path) = std::env::var_os("QUESTIONS_OUTPUT") {
            drop(std::fs::write(path, &*self.lines.lock().unwrap_or_else(PoisonError::into_inner)));
        }
    }
}
