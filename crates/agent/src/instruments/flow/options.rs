//! Options of `flow`.

use clrscope_contract::instruments::flow::{self, ALL, ARGS, CHECK, DEPTH, LAST, VALUES};
use clrscope_contract::instruments::{CheckedInstrument, Spec};

/// Which events are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Retention {
    /// The last events, in a ring of this many bytes.
    Last(u64),
    /// All events.
    All,
}

/// What is recorded of arguments and results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Args {
    Nothing,
    /// Only the types.
    Types,
    /// Types and values.
    Values,
    /// Nothing, and no events either. Plans are only compared with the runtime's own information.
    Check,
}

/// The options in the form that this instrument uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FlowOptions {
    pub(crate) kept: Retention,
    pub(crate) args: Args,
    /// How many levels deep objects are opened.
    pub(crate) depth: u32,
}

impl crate::instrument::InstrumentOptions for FlowOptions {
    const SPEC: &Spec = flow::SPEC;

    fn from_request(request: &CheckedInstrument) -> Self {
        Self {
            kept: if request.is_on(ALL) { Retention::All } else { Retention::Last(request.number(LAST)) },
            args: match request.word(ARGS) {
                None => Args::Nothing,
                Some(VALUES) => Args::Values,
                Some(CHECK) => Args::Check,
                Some(_) => Args::Types,
            },
            depth: request.number(DEPTH) as u32,
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::instrument::tests::checked;
    use super::*;
    use crate::instrument::InstrumentOptions as _;

    #[test]
    fn every_option_arrives() {
        for (text, kept, args, depth) in [
            ("flow", Retention::Last(1 << 30), Args::Nothing, 1),
            ("flow:all", Retention::All, Args::Nothing, 1),
            ("flow:last=64MiB", Retention::Last(64 << 20), Args::Nothing, 1),
            ("flow:args", Retention::Last(1 << 30), Args::Values, 1),
            ("flow:all,args=types", Retention::All, Args::Types, 1),
            ("flow:args=check", Retention::Last(1 << 30), Args::Check, 1),
            ("flow:depth=0,args", Retention::Last(1 << 30), Args::Values, 0),
            ("flow:args=values,depth=5", Retention::Last(1 << 30), Args::Values, 5),
        ] {
            assert_eq!(FlowOptions::from_request(&checked(text)), FlowOptions { kept, args, depth }, "{text}");
        }
    }
}
