//! Lines that a test writes besides its outcome.

use std::env;
use std::io::{self, Write};

/// Set to `1`, it makes a failure of everything that a test can't check on this machine.
const ALL: &str = "CLRSCOPE_TEST_ALL";

/// Says a line on stderr; the test harness shows it when the test fails.
#[expect(clippy::print_stderr, reason = "a test says what it ran on")]
pub fn say(line: &str) {
    eprintln!("{line}");
}

/// Says what a test can't check on this machine, and why. The line is shown where tests pass, too.
///
/// # Panics
/// When the variable `CLRSCOPE_TEST_ALL` is `1`.
pub fn not_run(what: &str) {
    assert!(env::var_os(ALL).is_none_or(|all| all != "1"), "{ALL} asks for what this machine can't do: {what}");
    // The harness keeps what macros print by tests that pass, and not what is written straight to
    // the stream.
    let _ = io::stderr().lock().write_all(format!("NOT RUN: {what}\n").as_bytes());
}
