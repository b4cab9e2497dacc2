//! Options of `requests`.

use clrscope_contract::instruments::requests::{self, MAX, URLS};
use clrscope_contract::instruments::{CheckedInstrument, Spec};

/// The options in the form that this instrument uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RequestsOptions {
    pub(crate) max_bytes: u64,
    /// Whether names contain whole URLs.
    pub(crate) has_urls: bool,
}

impl crate::instrument::InstrumentOptions for RequestsOptions {
    const SPEC: &Spec = requests::SPEC;

    fn from_request(request: &CheckedInstrument) -> Self {
        Self { max_bytes: request.number(MAX), has_urls: request.is_on(URLS) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instrument::InstrumentOptions as _;
    use crate::instrument::tests::checked;

    #[test]
    fn every_option_arrives() {
        let options = |request| RequestsOptions::from_request(&checked(request));
        assert_eq!(options("requests"), RequestsOptions { max_bytes: 1 << 30, has_urls: false });
        assert_eq!(options("requests:max=64MiB,urls=full"), RequestsOptions { max_bytes: 64 << 20, has_urls: true });
    }
}
