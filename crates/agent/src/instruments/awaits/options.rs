//! Options of `awaits`.

use clrscope_contract::instruments::awaits::{self, EXACT, MAX};
use clrscope_contract::instruments::{CheckedInstrument, Spec};

/// The options in the form that this instrument uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AwaitsOptions {
    /// Whether the call path of each await is recorded.
    pub(crate) exact: bool,
    pub(crate) max_bytes: u64,
}

impl crate::instrument::InstrumentOptions for AwaitsOptions {
    const SPEC: &Spec = awaits::SPEC;

    fn from_request(request: &CheckedInstrument) -> Self {
        Self { exact: request.is_on(EXACT), max_bytes: request.number(MAX) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instrument::InstrumentOptions as _;
    use crate::instrument::tests::checked;

    #[test]
    fn every_option_arrives() {
        assert_eq!(AwaitsOptions::from_request(&checked("awaits")), AwaitsOptions { exact: false, max_bytes: 1 << 30 });
        let all = AwaitsOptions { exact: true, max_bytes: 64 << 20 };
        assert_eq!(AwaitsOptions::from_request(&checked("awaits:exact,max=64MiB")), all);
    }
}
