//! Options of `requests`.

use clrscope_contract::instruments::requests::{self, MAX};
use clrscope_contract::instruments::{CheckedInstrument, Spec};

/// The options as this instrument uses them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestsOptions {
    pub(crate) max_bytes: u64,
}

impl crate::instrument::InstrumentOptions for RequestsOptions {
    const SPEC: &Spec = requests::SPEC;

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
        assert_eq!(RequestsOptions::from_request(&checked("requests")).max_bytes, 1 << 30);
        assert_eq!(RequestsOptions::from_request(&checked("requests:max=64MiB")).max_bytes, 64 << 20);
    }
}
