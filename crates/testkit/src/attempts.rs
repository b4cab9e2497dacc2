//! Repeats checks that a busy machine can make fail.

use std::fmt::Debug;

use crate::say::say;

/// Maximum attempts of a check that a busy machine can make fail.
const ATTEMPTS: usize = 5;

/// Repeats a failing check, up to five times in all. For figures that depend on when threads get a
/// processor, never for exact figures. `check` uses the same limits each time. What a failed
/// attempt said is printed, so that a test that ends in time out of them says why.
///
/// # Errors
/// The error of the last attempt.
pub fn attempted<E: Debug>(mut check: impl FnMut() -> Result<(), E>) -> Result<(), E> {
    let mut outcome = check();
    for attempt in 1..ATTEMPTS {
        let Err(error) = &outcome else { break };
        say(&format!("attempt {attempt} failed: {error:?}"));
        outcome = check();
    }
    outcome
}
