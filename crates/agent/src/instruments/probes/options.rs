//! Options of `probes`; the request itself has the methods.

use clrscope_contract::instruments::flow::TYPES;
use clrscope_contract::instruments::probes::{ARGS, CALLERS, DEPTH, EACH, FRAMES, LAST, SPEC};
use clrscope_contract::instruments::{CheckedInstrument, Spec};

use crate::instrument::InstrumentOptions;

/// The requested options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProbesOptions {
    /// How each call is recorded; `None` if calls are only counted.
    pub(super) each: Option<Each>,
    /// Number of callers kept per call; `None` if calls are not counted by callers.
    pub(super) callers: Option<u32>,
}

/// What is recorded of each call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Each {
    /// How arguments and results are recorded; `None` if they are not.
    pub(super) values: Option<Values>,
    /// How many levels deep objects among the values are opened.
    pub(super) depth: u32,
    /// Size in bytes of the ring for the last calls.
    pub(super) last: u64,
}

/// What is recorded of arguments and results.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Values {
    /// Whether only types are recorded, and no values.
    pub(super) types_only: bool,
}

impl InstrumentOptions for ProbesOptions {
    const SPEC: &'static Spec = SPEC;

    fn from_request(request: &CheckedInstrument) -> Self {
        let values = request.word(ARGS).map(|word| Values { types_only: word == TYPES });
        let is_wanted = values.is_some() || request.is_on(EACH);
        let each = Each { values, depth: request.number(DEPTH) as u32, last: request.number(LAST) };
        let callers = request.is_on(CALLERS).then(|| request.number(FRAMES) as u32);
        Self { each: is_wanted.then_some(each), callers }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instrument::tests::checked;

    #[test]
    fn every_option_arrives() {
        let each = |values: Option<bool>, depth, last| {
            let values = values.map(|types_only| Values { types_only });
            Some(Each { values, depth, last })
        };
        for (text, wanted) in [
            ("probes", None),
            ("probes:each", each(None, 1, 1 << 30)),
            ("probes:args", each(Some(false), 1, 1 << 30)),
            ("probes:each,args=types", each(Some(true), 1, 1 << 30)),
            ("probes:args,depth=0,last=4MiB", each(Some(false), 0, 4 << 20)),
        ] {
            let options = ProbesOptions::from_request(&checked(text));
            assert_eq!(options, ProbesOptions { each: wanted, callers: None }, "{text}");
        }
        for (text, wanted) in [("probes:callers", 8), ("probes:callers,frames=1,args", 1)] {
            assert_eq!(ProbesOptions::from_request(&checked(text)).callers, Some(wanted), "{text}");
        }
    }
}
