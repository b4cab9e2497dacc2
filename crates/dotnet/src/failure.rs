//! The error type that users see: what failed, why, and a hint.

use std::fmt;

/// Reason why an operation on .NET failed: three short sentences for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The task that failed.
    pub what: String,
    /// Reason, in a sentence.
    pub why: String,
    /// What the user should do next.
    pub hint: String,
}

impl Failure {
    /// A failure with these three sentences. None of them may end in a full stop or contain a line
    /// break.
    pub fn new(what: impl Into<String>, why: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { what: one_line(what.into()), why: one_line(why.into()), hint: one_line(hint.into()) }
    }
}

fn one_line(text: String) -> String {
    if text.contains(['\n', '\r']) { text.split_whitespace().collect::<Vec<_>>().join(" ") } else { text }
}

/// Three lines: what failed, why, and `hint:` with the next step.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n{}\nhint: {}", self.what, self.why, self.hint)
    }
}

impl std::error::Error for Failure {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_three_lines_whatever_is_put_in() {
        let failure = Failure::new("cannot fetch .NET", "pip said:\n  no\r\n", "install it");
        assert_eq!(failure.to_string(), "cannot fetch .NET\npip said: no\nhint: install it");
    }
}
