//! Options of `memory`.

use clrscope_contract::instruments::memory::{self, MAX};
use clrscope_contract::instruments::{CheckedInstrument, Spec};

/// The options in the form that this instrument uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MemoryOptions {
    pub(crate) max_bytes: u64,
}

impl crate::instrument::InstrumentOptions for MemoryOptions {
    const SPEC: &Spec = memory::SPEC;

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
        assert_eq!(MemoryOptions::from_request(&checked("memory")).max_bytes, 1 << 30);
        assert_eq!(MemoryOptions::from_request(&checked("memory:max=64MiB")).max_bytes, 64 << 20);
    }
}
