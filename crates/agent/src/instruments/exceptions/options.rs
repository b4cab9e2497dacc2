//! Options of `exceptions`.

use clrscope_contract::instruments::exceptions::{self, ARGS, FRAMES, MAX, STACKS};
use clrscope_contract::instruments::{CheckedInstrument, Spec};
use clrscope_agent_stacks::stacks::Walk;

/// The options in the form that this instrument uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ExceptionsOptions {
    /// Most innermost frames that are kept of the stack at the throw.
    pub(crate) frames: usize,
    /// Whether the arguments of named methods are kept.
    pub(crate) arguments: bool,
    /// How stacks are walked.
    pub(crate) walk: Walk,
    pub(crate) max_bytes: u64,
}

impl crate::instrument::InstrumentOptions for ExceptionsOptions {
    const SPEC: &Spec = exceptions::SPEC;

    fn from_request(request: &CheckedInstrument) -> Self {
        Self {
            frames: request.number(FRAMES) as usize,
            arguments: request.is_on(ARGS),
            walk: match request.word(STACKS) {
                Some("snapshot") => Walk::Snapshot,
                Some("check") => Walk::Check,
                _ => Walk::Frames,
            },
            max_bytes: request.number(MAX),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::instrument::tests::checked;
    use super::*;
    use crate::instrument::InstrumentOptions as _;

    #[test]
    fn every_option_arrives() {
        let plain = ExceptionsOptions { frames: 64, arguments: false, walk: Walk::Frames, max_bytes: 1 << 30 };
        assert_eq!(ExceptionsOptions::from_request(&checked("exceptions")), plain);
        let all = ExceptionsOptions { frames: 9, arguments: true, walk: Walk::Snapshot, max_bytes: 64 << 20 };
        assert_eq!(ExceptionsOptions::from_request(&checked("exceptions:frames=9,args,stacks=snapshot,max=64MiB")), all);
        assert_eq!(ExceptionsOptions::from_request(&checked("exceptions:stacks=check")).walk, Walk::Check);
    }
}
