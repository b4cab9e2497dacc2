//! Repeats checks that a busy machine can make fail.

use std::fmt::Debug;

use crate::say::say;

/// Maximum attempts of a check that a busy machine can make fail.
const ATTEMPTS: usize = 5;

/// Repeats a failing check, up to five times in all. For figures that depend on when threads get a
/// processor, never for exact figures. `check` uses the same limits each time. The error of each
/// failed attempt is printed, so that the output shows why a test ran out of time.
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
