//! Options of `counters`.

use clrscope_contract::instruments::counters::{self, MAX};
use clrscope_contract::instruments::{CheckedInstrument, Spec};

/// The options as this instrument uses them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CountersOptions {
    pub(crate) max_bytes: u64,
}

impl crate::instrument::InstrumentOptions for CountersOptions {
    const SPEC: &Spec = counters::SPEC;

    fn from_request(request: &CheckedInstrument) -> Self {
        Self { max_bytes: request.number(MAX) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instrument::InstrumentOptions as _;
    use crate::instrument::tests::checked;

    #[test]
    fn every_option_arrives() {
        assert_eq!(CountersOptions::from_request(&checked("counters")).max_bytes, 1 << 30);
        assert_eq!(CountersOptions::from_request(&checked("counters:max=64MiB")).max_bytes, 64 << 20);
    }
}
