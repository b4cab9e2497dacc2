//! Prints the results of soaks, and makes an error of what went wrong.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Prints the result of one check. Returns a description if the check failed.
#[expect(clippy::print_stdout, reason = "a command line tool")]
pub(crate) fn say((what, went): (String, Result<String, String>)) -> Option<String> {
    match went {
        Ok(said) => {
            println!("{what}: {said}");
            None
        }
        Err(why) => {
            println!("{what}: WRONG: {why}");
            Some(format!("{what}: {why}"))
        }
    }
}

/// Runs something that panics when it fails, and turns the panic into an error.
pub(crate) fn caught<T>(run: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| Err("it did not end, or not as it should".to_owned()))
}

/// Returns the result of a soak: an error that names everything that went wrong.
pub(crate) fn verdict(wrong: &[String]) -> Result<(), String> {
    if wrong.is_empty() { Ok(()) } else { Err(format!("went wrong:\n{}", wrong.join("\n"))) }
}

/// Text of a system error.
pub(crate) fn in_words(error: std::io::Error) -> String {
    error.to_string()
}
