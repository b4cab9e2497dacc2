//! Checks that a busy machine can spoil.

/// Attempts of a check whose figures a busy machine can spoil.
const ATTEMPTS: usize = 5;

/// Makes a check again where it fails, up to five times in all. For figures that depend on when
/// threads get a processor, never for what is exact. `check` has the same limits each time.
///
/// # Errors
/// The fault of the last attempt.
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
