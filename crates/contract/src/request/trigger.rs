//! Conditions in a program that make the agent write out the kept events, as given to `--on`:
//! `request>2s`, `exception:TYPE`, `counter:NAME>X`.

use std::fmt;
use std::str::FromStr;

use super::error::RequestError;
use super::glob::Glob;
use super::time::parse_duration;

/// An occurrence that the agent watches for while the program runs.
#[derive(Debug, Clone, PartialEq)]
pub enum Trigger {
    /// A request that the program serves or makes took longer than this many milliseconds.
    Request(u64),
    /// The program throws an exception of this type, given by its full name or by its name without
    /// the namespace.
    Exception(Glob),
    /// A counter has a value above this number. The counter is given by its name alone, or by
    /// provider, name and labels.
    Counter(Glob, f64),
}

impl Trigger {
    /// The instrument that observes the trigger.
    #[must_use]
    pub fn instrument(&self) -> &'static str {
        match self {
            Self::Request(_) => "requests",
            Self::Exception(_) => "exceptions",
            Self::Counter(..) => "counters",
        }
    }

    /// Whether the trigger has the name that it needs.
    fn names_something(&self) -> bool {
        match self {
            Self::Request(_) => true,
            Self::Exception(glob) | Self::Counter(glob, _) => !glob.as_str().is_empty(),
        }
    }

    /// Whether the trigger is about the exception type with this full name.
    #[must_use]
    pub fn is_about_type(&self, name: &str) -> bool {
        let Self::Exception(glob) = self else { return false };
        glob.matches(name) || glob.matches(name.rsplit(['.', '+']).next().unwrap_or(name))
    }

    /// Whether the trigger is about this counter, given by its short or its full name, and `value`
    /// exceeds the trigger's limit.
    #[must_use]
    pub fn is_about_counter(&self, name: &str, full_name: &str, value: f64) -> bool {
        let Self::Counter(glob, most) = self else { return false };
        value > *most && (glob.matches(name) || glob.matches(full_name))
    }
}

/// Parses the trigger in `NAME>NUMBER`. Names may contain a `>`.
fn counter_above(text: &str) -> Option<Trigger> {
    let (name, most) = text.rsplit_once('>')?;
    let most = most.trim().parse().ok().filter(|most: &f64| most.is_finite())?;
    Some(Trigger::Counter(Glob::new(name), most))
}

impl FromStr for Trigger {
    type Err = RequestError;

    fn from_str(text: &str) -> Result<Self, RequestError> {
        let text = text.trim();
        if let Some(time) = text.strip_prefix("request>") {
            return Ok(Self::Request(parse_duration(time.trim())?));
        }
        let exception = text.strip_prefix("exception:").map(|name| Self::Exception(Glob::new(name)));
        let counter = text.strip_prefix("counter:").and_then(counter_above);
        exception.or(counter).filter(Self::names_something).ok_or_else(|| {
            RequestError(format!(
                "'{text}' is not request>TIME, such as request>2s, exception:TYPE, such as exception:IOException, or \
                 counter:NAME>NUMBER, such as counter:cpu-usage>90"
            ))
        })
    }
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Request(ms) => write!(f, "request>{ms}ms"),
            Self::Exception(glob) => write!(f, "exception:{glob}"),
            Self::Counter(glob, most) => write!(f, "counter:{glob}>{most}"),
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
        assert_eq!(read("counter: a>b > -1e3 "), Ok(Trigger::Counter(Glob::new("a>b"), -1_000.0)));
        for text in
            ["request>1500ms", "exception:System.IO.IOException", "counter:cpu-usage>90", "counter:Shop/*{a=b}>0.25"]
        {
            assert_eq!(read(text).expect("a trigger").to_string(), text);
        }
        let requests = ["", "request", "request > 2s", "request>", "request>soon", "request<2s"];
        let others = ["exception:", "gc", "counter:x", "counter:>1", "counter:x>", "counter:x>many", "counter:x>inf"];
        for bad in requests.into_iter().chain(others) {
            assert!(read(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn counters_are_meant_by_their_names_and_above_their_bound() {
        let met = |text: &str, value| {
            let trigger: Trigger = text.parse().expect("a trigger");
            trigger.is_about_counter("orders", "Shop/orders{kind=new}", value)
        };
        assert!(met("counter:orders>2", 2.5) && met("counter:Shop/*>2", 3.0) && met("counter:*{kind=new}>-1", 0.0));
        assert!(!met("counter:orders>2", 2.0) && !met("counter:order>2", 9.0) && !met("request>2s", 9.0));
        assert!(!met("counter:orders>2", f64::NAN));
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
