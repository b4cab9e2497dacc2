//! Options of `gc`.

use clrscope_contract::instruments::gc::{self, MAX, SURVIVORS};
use clrscope_contract::instruments::{CheckedInstrument, Spec};

/// The options in the form that this instrument uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GcOptions {
    /// Whether survivors are recorded, by class.
    pub(crate) survivors: bool,
    pub(crate) max_bytes: u64,
}

impl crate::instrument::InstrumentOptions for GcOptions {
    const SPEC: &Spec = gc::SPEC;

    fn from_request(request: &CheckedInstrument) -> Self {
        Self { survivors: request.is_on(SURVIVORS), max_bytes: request.number(MAX) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instrument::InstrumentOptions as _;
    use crate::instrument::tests::checked;

    #[test]
    fn every_option_arrives() {
        assert_eq!(GcOptions::from_request(&checked("gc")), GcOptions { survivors: false, max_bytes: 1 << 30 });
        let all = GcOptions { survivors: true, max_bytes: 64 << 20 };
        assert_eq!(GcOptions::from_request(&checked("gc:survivors,max=64MiB")), all);
    }
}
