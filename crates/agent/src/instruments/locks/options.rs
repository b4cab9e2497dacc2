//! Options of `locks`.

use clrscope_contract::instruments::locks::{self, EXACT, MAX};
use clrscope_contract::instruments::{CheckedInstrument, Spec};

/// The options in the form that this instrument uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LocksOptions {
    /// Whether the stack of each waiting thread is recorded.
    pub(crate) exact: bool,
    pub(crate) max_bytes: u64,
}

impl crate::instrument::InstrumentOptions for LocksOptions {
    const SPEC: &Spec = locks::SPEC;

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
        assert_eq!(LocksOptions::from_request(&checked("locks")), LocksOptions { exact: false, max_bytes: 1 << 30 });
        let all = LocksOptions { exact: true, max_bytes: 64 << 20 };
        assert_eq!(LocksOptions::from_request(&checked("locks:exact,max=64MiB")), all);
    }
}
