//! The instruments this version knows, so that a slip of the finger is seen before the program starts.

use clrscope_contract::request::{InstrumentRequest, parse_limit, parse_size};
use clrscope_recording::events::Group;

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
    /// Nothing, or one of these words.
    NoneOr(&'static [&'static str]),
    /// A size such as `512MiB`, at least 64 KiB.
    Size,
    /// The same, at least 1 MiB.
    RingSize,
    /// Groups of events joined by `+`.
    Groups,
    /// A number from 0 to the given one.
    UpTo(u32),
}

const ON_OFF: Value = Value::OneOf(&["on", "off"]);

/// Every instrument, in the order in which help lists them.
pub(crate) const ALL: &[Instrument] = &[CALLS, FLOW, EVENTS, EXCEPTIONS];

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
        OptionKind {
            name: "max",
            value: Value::Size,
            about: "memory limit per process (default 1GiB, at least 64KiB, 4GiB at most)",
        },
    ],
};

const FLOW: Instrument = Instrument {
    name: "flow",
    about: "every enter, leave and tail call in order, with its time",
    options: &[
        OptionKind {
            name: "last",
            value: Value::RingSize,
            about: "memory for the last events (default 1GiB, at least 1MiB)",
        },
        OptionKind { name: "all", value: Value::None, about: "keep every event instead of the last ones" },
        OptionKind {
            name: "args",
            value: Value::NoneOr(&["values", "types"]),
            about: "arguments, this, fields and results of the functions that --include names, or their types",
        },
        OptionKind {
            name: "depth",
            value: Value::UpTo(5),
            about: "how deep objects among them are opened (default 1; 0 shows addresses)",
        },
    ],
};

const EVENTS: Instrument = Instrument {
    name: "events",
    about: "what the runtime tells: loads, compilation, threads, collections, exceptions and more",
    options: &[
        OptionKind { name: "groups", value: Value::Groups, about: "groups of events (default all that are cheap)" },
        OptionKind {
            name: "allocations",
            value: ON_OFF,
            about: "each allocated object; needs the group objects (default off)",
        },
        OptionKind {
            name: "max",
            value: Value::Size,
            about: "memory limit per process (default 1GiB, at least 64KiB)",
        },
        group("runtime", "start and end of the runtime"),
        group("loads", "application domains, assemblies, modules and classes"),
        group("jit", "compilation, inlining, searches for precompiled code"),
        group("threads", "managed threads"),
        group("transitions", "calls between managed and native code; slows cheap ones 40 to 70 times"),
        group("suspend", "suspensions, with their reason"),
        group("gc", "begin and end of collections"),
        group("objects", "objects by class after each collection; collections are no longer concurrent"),
        group("heap", "roots, references, moved and surviving objects; as objects, and much data"),
        group("handles", "GC handles; collections are no longer concurrent"),
        group("exceptions", "throw, search, filters, unwind, catch"),
        group("com", "COM and remoting, which never come outside Windows"),
        group("pipe", "EventPipe providers"),
        group("all", "all of them"),
    ],
};

const EXCEPTIONS: Instrument = Instrument {
    name: "exceptions",
    about: "each exception: what it says, where it was thrown, who was asked, who caught it",
    options: &[
        OptionKind {
            name: "frames",
            value: Value::UpTo(256),
            about: "frames kept of the stack at the throw (default 64)",
        },
        OptionKind {
            name: "args",
            value: Value::None,
            about: "arguments of the methods on the stack that --include names, as they were when called",
        },
        OptionKind {
            name: "stacks",
            value: Value::OneOf(&["frames", "snapshot", "check"]),
            about: "how stacks are walked: quickly, by the runtime, or both ways and compared (default frames)",
        },
        OptionKind {
            name: "max",
            value: Value::Size,
            about: "memory limit per process (default 1GiB, at least 64KiB)",
        },
    ],
};

const fn group(name: &'static str, about: &'static str) -> OptionKind {
    OptionKind { name, value: Value::None, about }
}

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
                known: option.wanted(),
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
            (Value::None | Value::NoneOr(_), None) => true,
            (Value::NoneOr(words), Some(value)) => words.contains(&value),
            (Value::OneOf(words), Some(value)) => words.contains(&value),
            (Value::Groups, Some(value)) => value.split('+').all(|name| name == "all" || Group::parse(name).is_some()),
            (Value::UpTo(most), Some(value)) => value.parse().is_ok_and(|number: u32| number <= *most),
            (Value::Size, Some(value)) => parse_limit(value).is_ok(),
            (Value::RingSize, Some(value)) => parse_size(value).is_ok_and(|size| size >= 1 << 20),
            _ => false,
        }
    }

    /// What could be written instead of a value that is not accepted.
    fn wanted(&self) -> String {
        match self.value {
            Value::Groups => {
                let names = Group::ALL.iter().map(|(name, _)| *name);
                format!("write {} with groups out of: {}", self.spelled(), list(names))
            }
            Value::UpTo(most) => format!("write {} with a number from 0 to {most}", self.spelled()),
            Value::Size => format!("write {} with at least 64KiB, for instance 512MiB", self.spelled()),
            Value::RingSize => format!("write {} with at least 1MiB, for instance 64MiB", self.spelled()),
            _ => format!("write {}", self.spelled()),
        }
    }

    fn spelled(&self) -> String {
        match self.value {
            Value::None => self.name.to_owned(),
            Value::OneOf(words) => format!("{}={}", self.name, words.join("|")),
            Value::NoneOr(words) => format!("{}[={}]", self.name, words.join("|")),
            Value::Size | Value::RingSize => format!("{}=SIZE", self.name),
            Value::UpTo(_) => format!("{}=N", self.name),
            Value::Groups => format!("{}=GROUP+GROUP", self.name),
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
        for events in [
            "exceptions:frames=9,stacks=snapshot,args,max=1MiB",
            "events:jit,gc",
            "events:groups=jit+all,max=1GiB",
            "events:objects,allocations=on",
            "flow:args=values,depth=2,last=1MiB",
            "flow:all",
        ] {
            assert_eq!(check(&InstrumentRequest::parse(events).expect("well formed")), Ok(()));
        }
    }

    #[test]
    fn every_group_can_be_named_alone() {
        for (name, _) in Group::ALL {
            assert_eq!(check(&InstrumentRequest::parse(&format!("events:{name}")).expect("well formed")), Ok(()));
        }
        assert!(refusal("events:jitter").known.contains("suspend, gc, objects"));
        assert!(refusal("events:groups=gc+sun").known.contains("heap"));
    }

    #[test]
    fn refusals_name_what_is_known() {
        assert!(refusal("call").known.contains("calls"));
        assert!(refusal("calls:clocks=tsc").known.contains("clock, noinline, native, helpers, trivial, max"));
        assert_eq!(refusal("calls:clock=sun").known, "write clock=sampled|tsc");
        assert_eq!(refusal("calls:clock").why, "option 'clock' of 'calls' needs a value");
        assert_eq!(refusal("calls:noinline=on").known, "write noinline");
        assert_eq!(refusal("flow:args,depth=abc").known, "write depth=N with a number from 0 to 5");
        assert!(refusal("flow:last=1k").known.contains("at least 1MiB"));
        let least = "write max=SIZE with at least 64KiB, for instance 512MiB";
        for text in ["calls:max=0", "calls:max=1", "events:max=63KiB", "exceptions:max=lots"] {
            assert_eq!(refusal(text).known, least);
        }
    }
}
