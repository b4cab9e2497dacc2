//! Options of `alloc`.

use clrscope_contract::instruments::alloc::{self, EXACT, FRAMES, LIVE, MAX};
use clrscope_contract::instruments::{CheckedInstrument, Spec};

/// The options in the form that this instrument uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AllocOptions {
    /// Record each object instead of samples.
    pub(crate) exact: bool,
    /// Follow objects until they are collected.
    pub(crate) live: bool,
    /// Most innermost frames that are kept of a stack.
    pub(crate) frames: usize,
    pub(crate) max_bytes: u64,
}

impl crate::instrument::InstrumentOptions for AllocOptions {
    const SPEC: &Spec = alloc::SPEC;

    fn from_request(request: &CheckedInstrument) -> Self {
        Self {
            exact: request.is_on(EXACT),
            live: request.is_on(LIVE),
            frames: request.number(FRAMES) as usize,
            max_bytes: request.number(MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instrument::InstrumentOptions as _;
    use crate::instrument::tests::checked;

    #[test]
    fn every_option_arrives() {
        let plain = AllocOptions { exact: false, live: false, frames: 64, max_bytes: 1 << 30 };
        assert_eq!(AllocOptions::from_request(&checked("alloc")), plain);
        let all = AllocOptions { exact: true, live: true, frames: 0, max_bytes: 64 << 20 };
        assert_eq!(AllocOptions::from_request(&checked("alloc:exact,live,frames=0,max=64MiB")), all);
    }
}
