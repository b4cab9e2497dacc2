//! The panic boundary between the runtime and a profiler's code.
//!
//! A panic that leaves an `extern "C"` function ends the process. So each callback and each hook
//! runs inside [`guard`], which catches the panic, counts it and lets the program continue. The
//! standard panic hook would print to the program's stderr. The framework replaces it by a hook
//! that keeps the first message; this affects only the profiler library's own copy of the standard
//! library.

use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, Once, PoisonError};

static CAUGHT: AtomicU64 = AtomicU64::new(0);
static FIRST: Mutex<Option<String>> = Mutex::new(None);
static SILENCE: Once = Once::new();

/// Longest message kept, in bytes.
const MESSAGE_LIMIT: usize = 512;

/// Number of panics that the framework has caught in callbacks and hooks since the library was
/// loaded.
#[must_use]
pub fn panics_caught() -> u64 {
    CAUGHT.load(Ordering::Relaxed)
}

/// Message and location of the first panic, truncated to 512 bytes.
#[must_use]
pub fn first_panic() -> Option<String> {
    FIRST.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// Runs `body`. If it panics, counts the panic and returns `fallback`.
pub(crate) fn guard<R>(fallback: R, body: impl FnOnce() -> R) -> R {
    match panic::catch_unwind(AssertUnwindSafe(body)) {
        Ok(result) => result,
        Err(payload) => {
            CAUGHT.fetch_add(1, Ordering::Relaxed);
            // Dropping the payload runs foreign code, which may panic again.
            std::mem::forget(payload);
            fallback
        }
    }
}

/// Prevents panics from printing to stderr, which belongs to the program. Called once, when the
/// runtime requests the class factory.
pub(crate) fn silence_panics() {
    SILENCE.call_once(|| panic::set_hook(Box::new(keep_first)));
}

fn keep_first(info: &PanicHookInfo<'_>) {
    let mut first = FIRST.lock().unwrap_or_else(PoisonError::into_inner);
    if first.is_none() {
        let mut message = info.to_string();
        message.truncate(message.floor_char_boundary(MESSAGE_LIMIT));
        *first = Some(message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_counted_kept_and_replaced_by_the_fallback() {
        silence_panics();
        let before = panics_caught();
        assert_eq!(guard(7, || panic!("the answer is unknown: {}", "x".repeat(2000))), 7);
        assert_eq!(guard(7, || 8), 8);
        assert_eq!(panics_caught(), before + 1);
        let message = first_panic().unwrap();
        assert!(message.contains("the answer is unknown") && message.len() <= MESSAGE_LIMIT, "{message}");
    }
}
