//! Options of `calls`.

use clrscope_contract::instruments::calls::{self, CLOCK, HELPERS, MAX, NATIVE, NOINLINE, TRIVIAL};
use clrscope_contract::instruments::{CheckedInstrument, Spec};
use clrscope_recording::model::Clock;

/// The options in the form that this instrument uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CallsOptions {
    pub(crate) clock: Clock,
    pub(crate) noinline: bool,
    pub(crate) native: bool,
    pub(crate) helpers: bool,
    pub(crate) trivial: bool,
    pub(crate) max_bytes: u64,
}

impl crate::instrument::InstrumentOptions for CallsOptions {
    const SPEC: &Spec = calls::SPEC;

    fn from_request(request: &CheckedInstrument) -> Self {
        Self {
            clock: if request.word(CLOCK) == Some("tsc") { Clock::Tsc } else { Clock::Sampled },
            noinline: request.is_on(NOINLINE),
            native: request.is_on(NATIVE),
            helpers: request.is_on(HELPERS),
            trivial: request.is_on(TRIVIAL),
            max_bytes: request.number(MAX),
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
        let plain = CallsOptions::from_request(&checked("calls"));
        let expected = CallsOptions {
            clock: Clock::Sampled,
            noinline: false,
            native: false,
            helpers: false,
            trivial: true,
            max_bytes: 1 << 30,
        };
        assert_eq!(plain, expected);
        let all = CallsOptions::from_request(&checked("calls:clock=tsc,noinline,native,helpers=on,trivial=off,max=64MiB"));
        let expected = CallsOptions {
            clock: Clock::Tsc,
            noinline: true,
            native: true,
            helpers: true,
            trivial: false,
            max_bytes: 64 << 20,
        };
        assert_eq!(all, expected);
    }
}
