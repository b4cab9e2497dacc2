//! What in a program is to have the kept events written out, as `--on` says it: `request>2s`,
//! `exception:TYPE`.

use std::fmt;
use std::str::FromStr;

use super::error::RequestError;
use super::glob::Glob;
use super::time::parse_duration;

/// Condition that is looked at while the program runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trigger {
    /// A request that the program serves or makes took longer than so many milliseconds.
    Request(u64),
    /// An exception of this type is thrown: its whole name, or the name without its namespace.
    Exception(Glob),
}

impl Trigger {
    /// The instrument that sees what it is about.
    #[must_use]
    pub fn instrument(&self) -> &'static str {
        match self {
            Self::Request(_) => "requests",
            Self::Exception(_) => "exceptions",
        }
    }

    /// Whether a type is meant, by its whole name.
    #[must_use]
    pub fn is_about_type(&self, name: &str) -> bool {
        let Self::Exception(glob) = self else { return false };
        glob.matches(name) || glob.matches(name.rsplit(['.', '+']).next().unwrap_or(name))
    }
}

impl FromStr for Trigger {
    type Err = RequestError;

    fn from_str(text: &str) -> Result<Self, RequestError> {
        let text = text.trim();
        if let Some(time) = text.strip_prefix("request>") {
            return Ok(Self::Request(parse_duration(time.trim())?));
        }
        match text.strip_prefix("exception:").map(Glob::new) {
            Some(glob) if !glob.as_str().is_empty() => Ok(Self::Exception(glob)),
            _ => Err(RequestError(format!(
                "'{text}' is neither request>TIME, such as request>2s, nor exception:TYPE, such as exception:IOException"
            ))),
        }
    }
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Request(ms) => write!(f, "request>{ms}ms"),
            Self::Exception(glob) => write!(f, "exception:{glob}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn triggers_come_back_from_their_texts_and_others_are_refused() {
        let read = |text: &str| text.parse::<Trigger>();
        assert_eq!(read("request>2s"), Ok(Trigger::Request(2_000)));
        assert_eq!(read(" exception: Shop.* "), Ok(Trigger::Exception(Glob::new("Shop.*"))));
        for text in ["request>1500ms", "exception:System.IO.IOException"] {
            assert_eq!(read(text).expect("a trigger").to_string(), text);
        }
        for bad in
            ["", "request", "request > 2s", "request>", "request>soon", "request<2s", "exception:", "gc", "counter:x>1"]
        {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn types_are_meant_by_their_whole_names_and_by_their_own() {
        let trigger: Trigger = "exception:IOException".parse().expect("a trigger");
        let met = ["System.IO.IOException", "IOException", "Shop.Store+IOException", "System.IO.IOExceptions"];
        assert_eq!(met.map(|name| trigger.is_about_type(name)), [true, true, true, false]);
        let whole: Trigger = "exception:System.*Exception".parse().expect("a trigger");
        assert!(whole.is_about_type("System.IO.IOException") && !whole.is_about_type("Shop.IOException"));
    }
}
