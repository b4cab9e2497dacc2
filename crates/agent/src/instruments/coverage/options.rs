//! Options of `coverage`.

use clrscope_contract::instruments::coverage::{HITS, SPEC};
use clrscope_contract::instruments::{CheckedInstrument, Spec};
use clrscope_coverage::PlanOptions;

use crate::instrument::InstrumentOptions;

/// The requested options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CoverageOptions {
    /// Whether hits are counted. If not, only whether there was a hit is recorded.
    pub(super) counts_hits: bool,
    /// The parts of methods that are left out on demand.
    pub(super) plans: PlanOptions,
}

impl InstrumentOptions for CoverageOptions {
    const SPEC: &'static Spec = SPEC;

    fn from_request(request: &CheckedInstrument) -> Self {
        Self { counts_hits: request.is_on(HITS), plans: PlanOptions::from_request(request) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instrument::tests::checked;

    #[test]
    fn every_option_arrives() {
        assert!(CoverageOptions::from_request(&checked("coverage")).counts_hits);
        assert!(!CoverageOptions::from_request(&checked("coverage:hits=off")).counts_hits);
        let plans = |text: &str| CoverageOptions::from_request(&checked(text)).plans;
        assert_eq!(plans("coverage"), PlanOptions::default());
        assert!(!plans("coverage:skip-auto-props").needs_framework());
        assert_ne!(plans("coverage:skip-auto-props"), PlanOptions::default());
        assert!(plans("coverage:does-not-return=DoesNotReturn").needs_framework());
    }
}
