//! Options of `wall`.

use clrscope_contract::instruments::samples::{MAX, RATE};
use clrscope_contract::instruments::wall;
use clrscope_contract::instruments::{CheckedInstrument, Spec};

/// The options as this instrument uses them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WallOptions {
    /// Nanoseconds between two samples of a thread.
    pub(crate) interval_ns: u64,
    pub(crate) max_bytes: u64,
}

impl crate::instrument::InstrumentOptions for WallOptions {
    const SPEC: &Spec = wall::SPEC;

    fn from_request(request: &CheckedInstrument) -> Self {
        Self { interval_ns: 1_000_000_000 / request.number(RATE).max(1), max_bytes: request.number(MAX) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instrument::InstrumentOptions as _;
    use crate::instrument::tests::checked;

    #[test]
    fn every_option_arrives() {
        assert_eq!(WallOptions::from_request(&checked("wall")), WallOptions { interval_ns: 10_000_000, max_bytes: 1 << 30 });
        let all = WallOptions { interval_ns: 2_000_000, max_bytes: 64 << 20 };
        assert_eq!(WallOptions::from_request(&checked("wall:rate=500,max=64MiB")), all);
    }
}
