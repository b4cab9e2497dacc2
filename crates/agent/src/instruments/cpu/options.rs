//! Options of `cpu`.

use clrscope_contract::instruments::cpu::{self, ENGINE, KERNEL};
use clrscope_contract::instruments::samples::{MAX, RATE};
use clrscope_contract::instruments::{CheckedInstrument, Spec};
use clrscope_agent_stacks::sampling::EngineRequest;

/// The options in the form that this instrument uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CpuOptions {
    /// Nanoseconds of CPU time between two samples of a thread.
    pub(crate) interval_ns: u64,
    pub(crate) engine: EngineRequest,
    /// Whether stacks include kernel frames, if the system allows that.
    pub(crate) kernel: bool,
    pub(crate) max_bytes: u64,
}

impl crate::instrument::InstrumentOptions for CpuOptions {
    const SPEC: &Spec = cpu::SPEC;

    fn from_request(request: &CheckedInstrument) -> Self {
        Self {
            interval_ns: 1_000_000_000 / request.number(RATE).max(1),
            engine: match request.word(ENGINE) {
                Some("perf") => EngineRequest::Perf,
                Some("timer") => EngineRequest::Timer,
                _ => EngineRequest::Auto,
            },
            kernel: request.is_on(KERNEL),
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
        let plain =
            CpuOptions { interval_ns: 1_000_000, engine: EngineRequest::Auto, kernel: true, max_bytes: 1 << 30 };
        assert_eq!(CpuOptions::from_request(&checked("cpu")), plain);
        let all = CpuOptions { interval_ns: 10_000_000, engine: EngineRequest::Timer, kernel: false, max_bytes: 64 << 20 };
        assert_eq!(CpuOptions::from_request(&checked("cpu:rate=100,engine=timer,kernel=off,max=64MiB")), all);
        assert_eq!(CpuOptions::from_request(&checked("cpu:engine=perf")).engine, EngineRequest::Perf);
    }
}
