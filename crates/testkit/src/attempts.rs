//! Repeats checks that a busy machine can make fail.

/// Maximum attempts of a check that a busy machine can make fail.
const ATTEMPTS: usize = 5;

/// Repeats a failing check, up to five times in all. For figures that depend on when threads get a
/// processor, never for exact figures. `check` uses the same limits each time.
///
/// # Errors
/// The error of the last attempt.
pub fn attempted<E>(mut check: impl FnMut() -> Result<(), E>) -> Result<(), E> {
    let mut outcome = check();
    for _ in 1..ATTEMPTS {
        if outcome.is_ok() {
            break;
        }
        outcome = check();
    }
    outcome
}
