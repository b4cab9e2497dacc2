//! Messages of tests.

use std::env;
use std::io::{self, Write};

/// Environment variable; set to `1`, it makes tests fail where they can't check something on this
/// machine.
const ALL: &str = "CLRSCOPE_TEST_ALL";

/// Prints a line to stderr; the test harness shows it when the test fails.
#[expect(clippy::print_stderr, reason = "a test says what it ran on")]
pub fn say(line: &str) {
    eprintln!("{line}");
}

/// Prints what a test can't check on this machine, and why. The line is shown for passing tests,
/// too.
///
/// # Panics
/// When the variable `CLRSCOPE_TEST_ALL` is `1`.
pub fn not_run(what: &str) {
    assert!(env::var_os(ALL).is_none_or(|all| all != "1"), "{ALL} asks for what this machine can't do: {what}");
    // The harness hides the output of print macros of passing tests, but not direct writes to the
    // stream.
    let _ = io::stderr().lock().write_all(format!("NOT RUN: {what}\n").as_bytes());
}
