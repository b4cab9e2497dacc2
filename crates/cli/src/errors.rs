//! Failures: each prints three lines, with the failed task, the reason, and a hint.

use std::fmt;
use std::io;
use std::path::Path;

pub(crate) use clrscope_report::one_line;

/// Exit code when the command failed.
pub(crate) const EXIT_FAILED: u8 = 1;
/// Exit code of an invalid command line.
pub(crate) const EXIT_USAGE: u8 = 2;
/// Exit code when a gate of `diff` failed: a value exceeds the limit of `--fail-on`.
pub(crate) const EXIT_GATE: u8 = 3;
/// Exit code of `push` when profiles wait in the spool.
pub(crate) const EXIT_WAITS: u8 = 4;
/// Exit code of `push` when profiles were refused or lost.
pub(crate) const EXIT_REFUSED: u8 = 5;
/// Exit code of `watch` when another watch runs.
pub(crate) const EXIT_TAKEN: u8 = 6;
/// Under `run`: clrscope itself failed.
pub(crate) const EXIT_RUN_FAILED: u8 = 125;
/// Under `run`: the program was found but could not be executed.
pub(crate) const EXIT_NOT_EXECUTABLE: u8 = 126;
/// Under `run`: the program was not found.
pub(crate) const EXIT_NOT_FOUND: u8 = 127;

/// A failed command, as sentences for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    what: String,
    why: String,
    hint: String,
    code: u8,
}

impl Failure {
    /// A failure with exit code 1. Each text is one line without a full stop.
    pub(crate) fn new(what: impl Into<String>, why: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { what: one_line(what), why: one_line(why), hint: one_line(hint), code: EXIT_FAILED }
    }

    /// The failure for an invalid command line.
    pub(crate) fn usage(what: impl Into<String>, why: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(what, why, hint).with_code(EXIT_USAGE)
    }

    /// A copy of the failure with another exit code.
    #[must_use]
    pub(crate) fn with_code(mut self, code: u8) -> Self {
        self.code = code;
        self
    }

    /// Under `run` our own failures and wrong command lines exit with 125, so that the code can't
    /// be mistaken for the program's exit code.
    #[must_use]
    pub(crate) fn under_run(mut self) -> Self {
        if matches!(self.code, EXIT_FAILED | EXIT_USAGE) {
            self.code = EXIT_RUN_FAILED;
        }
        self
    }

    /// Task that failed.
    pub(crate) fn what(&self) -> &str {
        &self.what
    }

    /// Reason: one line.
    pub(crate) fn why(&self) -> &str {
        &self.why
    }

    /// Advice: one line.
    pub(crate) fn hint(&self) -> &str {
        &self.hint
    }

    /// The process's exit code.
    pub(crate) fn code(&self) -> u8 {
        self.code
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "error: {}", self.what)?;
        writeln!(f, "why: {}", self.why)?;
        writeln!(f, "hint: {}", self.hint)
    }
}

/// The operating system's text for an error, without its number.
pub(crate) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or(&text);
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => first.to_lowercase().chain(letters).collect(),
        None => "an unknown error".to_owned(),
    }
}

/// A path for messages: quoted, and on one line whatever it contains.
pub(crate) fn shown(path: &Path) -> String {
    quoted(&path.to_string_lossy())
}

/// A text for messages: quoted, and on one line whatever it contains.
pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", one_line(text))
}

/// Quotes a word for a POSIX shell: in single quotes, inside which only the quote itself is
/// special. A plain word stays as it is.
pub(crate) fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "/._-+:@%,=".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', "'\\''"))
}

/// The failure to print a result.
pub(crate) fn cannot_print(error: &io::Error) -> Failure {
    Failure::new("cannot write the result", reason(error), "check where stdout leads")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_is_three_lines_whatever_is_in_it() {
        let failure =
            Failure::new(format!("cannot open {}", shown(Path::new("a\nb"))), "because\tof\r\nthis", "do that");
        assert_eq!(failure.to_string(), "error: cannot open 'a\\nb'\nwhy: because\\tof\\r\\nthis\nhint: do that\n");
    }

    #[test]
    fn system_errors_lose_their_number() {
        assert_eq!(reason(&io::Error::from_raw_os_error(2)), "no such file or directory");
        assert_eq!(reason(&io::Error::other("Disk on fire")), "disk on fire");
    }

    #[test]
    fn only_our_own_failures_become_125_under_run() {
        let failure = Failure::new("a", "b", "c");
        assert_eq!(failure.clone().under_run().code(), EXIT_RUN_FAILED);
        assert_eq!(failure.clone().with_code(EXIT_NOT_FOUND).under_run().code(), EXIT_NOT_FOUND);
        assert_eq!(Failure::usage("a", "b", "c").under_run().code(), EXIT_RUN_FAILED);
    }
}
