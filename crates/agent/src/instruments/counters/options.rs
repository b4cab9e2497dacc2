//! Options of `counters`.

use clrscope_contract::instruments::counters::{self, MAX, METERS};
use clrscope_contract::instruments::{CheckedInstrument, Spec};

/// The options in the form that this instrument uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CountersOptions {
    pub(crate) max_bytes: u64,
    /// Names of the meters that are recorded; empty for all meters.
    pub(crate) meters: Vec<String>,
}

impl crate::instrument::InstrumentOptions for CountersOptions {
    const SPEC: &Spec = counters::SPEC;

    fn from_request(request: &CheckedInstrument) -> Self {
        Self { max_bytes: request.number(MAX), meters: request.names(METERS).to_vec() }
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
        let all = CountersOptions::from_request(&checked("counters:max=64MiB,meters=Shop+my-meter"));
        assert_eq!(all, CountersOptions { max_bytes: 64 << 20, meters: vec!["Shop".into(), "my-meter".into()] });
    }
}
