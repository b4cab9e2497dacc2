//! Options of `probes`: there are none; the methods are the request's.

use clrscope_contract::instruments::probes::SPEC;
use clrscope_contract::instruments::{Checked, Spec};

use crate::instrument::InstrumentOptions;

/// Options that were asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProbesOptions;

impl InstrumentOptions for ProbesOptions {
    const SPEC: &'static Spec = SPEC;

    fn of(_request: &Checked) -> Self {
        Self
    }
}
