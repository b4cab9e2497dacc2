//! Options of `coverage`.

use clrscope_contract::instruments::coverage::{HITS, SPEC};
use clrscope_contract::instruments::{Checked, Spec};

use crate::instrument::InstrumentOptions;

/// Options that were asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CoverageOptions {
    /// Whether hits are counted, and not only whether there was one.
    pub(super) counts_hits: bool,
}

impl InstrumentOptions for CoverageOptions {
    const SPEC: &'static Spec = SPEC;

    fn of(request: &Checked) -> Self {
        Self { counts_hits: request.is_on(HITS) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instrument::tests::checked;

    #[test]
    fn every_option_arrives() {
        assert!(CoverageOptions::of(&checked("coverage")).counts_hits);
        assert!(!CoverageOptions::of(&checked("coverage:hits=off")).counts_hits);
    }
}
