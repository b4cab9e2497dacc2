//! Errors of requests.

use std::fmt;

use super::pattern::PatternError;

/// Reason why a text is not a valid request: one line for the user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestError(pub String);

impl fmt::Display for RequestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for RequestError {}

impl From<PatternError> for RequestError {
    fn from(error: PatternError) -> Self {
        Self(error.to_string())
    }
}
