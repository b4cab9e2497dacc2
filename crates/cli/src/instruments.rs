//! The instruments this version knows, so that a slip of the finger is seen before the program starts.

use clrscope_recording::request::{InstrumentRequest, parse_size};

/// One instrument and its options.
pub(crate) struct Instrument {
    /// As `-i` names it.
    pub(crate) name: &'static str,
    /// What it records, in one line.
    pub(crate) about: &'static str,
    options: &'static [OptionKind],
}

/// One option of an instrument.
struct OptionKind {
    name: &'static str,
    value: Value,
    about: &'static str,
}

/// What may stand behind the `=` of an option.
enum Value {
    /// One of these words.
    OneOf(&'static [&'static str]),
    /// Nothing: the bare word switches it on.
    None,
    /// A size such as `512MiB`.
    Size,
}

const ON_OFF: Value = Value::OneOf(&["on", "off"]);

/// Every instrument, in the order in which help lists them.
pub(crate) const ALL: &[Instrument] = &[CALLS, FLOW];

const CALLS: Instrument = Instrument {
    name: "calls",
    about: "the exact calling-context tree of each thread, with times",
    options: &[
        OptionKind {
            name: "clock",
            value: Value::OneOf(&["sampled", "tsc"]),
            about: "how time is measured: by a helper thread, or at every call (default sampled)",
        },
        OptionKind { name: "noinline", value: Value::None, about: "switch inlining off, so that every call is seen" },
        OptionKind { name: "native", value: ON_OFF, about: "calls to unmanaged code in the tree (default off)" },
        OptionKind { name: "helpers", value: ON_OFF, about: "the runtime's managed helpers in the tree (default off)" },
        OptionKind { name: "trivial", value: ON_OFF, about: "tiny methods that call nothing in the tree (default on)" },
        OptionKind { name: "max", value: Value::Size, about: "memory limit per process (default 1GiB)" },
    ],
};

const FLOW: Instrument = Instrument {
    name: "flow",
    about: "every enter, leave and tail call in order, with its time",
    options: &[
        OptionKind { name: "last", value: Value::Size, about: "memory for the last events (default 1GiB)" },
        OptionKind { name: "all", value: Value::None, about: "keep every event instead of the last ones" },
    ],
};

/// What `run` records when nothing is asked for.
pub(crate) const DEFAULT: &str = "calls";

/// Why an instrument request was refused: what is wrong and what is known instead.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// What is wrong.
    pub(crate) why: String,
    /// What could be written instead.
    pub(crate) known: String,
}

/// Checks names and values against the table.
pub(crate) fn check(request: &InstrumentRequest) -> Result<(), Refusal> {
    let Some(instrument) = ALL.iter().find(|i| i.name == request.name) else {
        return Err(Refusal {
            why: format!("there is no instrument '{}'", request.name),
            known: format!("known instruments: {}", list(ALL.iter().map(|i| i.name))),
        });
    };
    request.options.iter().try_for_each(|(name, value)| instrument.check_option(name, value.as_deref()))
}

impl Instrument {
    fn check_option(&self, name: &str, value: Option<&str>) -> Result<(), Refusal> {
        let Some(option) = self.options.iter().find(|o| o.name == name) else {
            return Err(Refusal {
                why: format!("instrument '{}' has no option '{name}'", self.name),
                known: format!("its options: {}", list(self.options.iter().map(|o| o.name))),
            });
        };
        match option.accepts(value) {
            true => Ok(()),
            false => Err(Refusal {
                why: match value {
                    Some(value) => format!("option '{name}' of '{}' does not take '{value}'", self.name),
                    None => format!("option '{name}' of '{}' needs a value", self.name),
                },
                known: format!("write {}", option.spelled()),
            }),
        }
    }

    /// One line per option, for help.
    pub(crate) fn option_lines(&self) -> impl Iterator<Item = (String, &'static str)> {
        self.options.iter().map(|o| (o.spelled(), o.about))
    }
}

impl OptionKind {
    fn accepts(&self, value: Option<&str>) -> bool {
        match (&self.value, value) {
            (Value::None, None) => true,
            (Value::OneOf(words), Some(value)) => words.contains(&value),
            (Value::Size, Some(value)) => parse_size(value).is_ok_and(|size| size > 0),
            _ => false,
        }
    }

    fn spelled(&self) -> String {
        match self.value {
            Value::None => self.name.to_owned(),
            Value::OneOf(words) => format!("{}={}", self.name, words.join("|")),
            Value::Size => format!("{}=SIZE", self.name),
        }
    }
}

fn list<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> Refusal {
        check(&InstrumentRequest::parse(text).expect("well formed")).expect_err("must be refused")
    }

    #[test]
    fn every_documented_option_is_accepted() {
        let all = "calls:clock=tsc,noinline,native=on,helpers=off,trivial=off,max=64MiB";
        assert_eq!(check(&InstrumentRequest::parse(all).expect("well formed")), Ok(()));
    }

    #[test]
    fn refusals_name_what_is_known() {
        assert!(refusal("call").known.contains("calls"));
        assert!(refusal("calls:clocks=tsc").known.contains("clock, noinline, native, helpers, trivial, max"));
        assert_eq!(refusal("calls:clock=sun").known, "write clock=sampled|tsc");
        assert_eq!(refusal("calls:clock").why, "option 'clock' of 'calls' needs a value");
        assert_eq!(refusal("calls:noinline=on").known, "write noinline");
        assert_eq!(refusal("calls:max=0").known, "write max=SIZE");
    }
}
