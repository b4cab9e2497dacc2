//! Memory that instruments take for themselves.

use super::Process;
use crate::codec::record;

record! {
    /// Memory that an instrument takes in the program for tables of its own, beside what is recorded.
    #[derive(Debug, Clone, Default, PartialEq, Eq)]
    pub struct OwnMemory {
        /// The instrument.
        pub instrument: String,
        /// The most bytes at a time, of the times at which the instrument looked.
        pub bytes: u64,
    }
}

impl Process {
    /// Memory of each instrument that says what it took for itself.
    pub fn memory_of_instruments(&self) -> impl Iterator<Item = (&str, u64)> {
        let said = self.own_memory.iter().map(|own| (own.instrument.as_str(), own.bytes));
        // Earlier versions noted the memory of one instrument alone, there.
        let earlier =
            self.allocation_sampling.as_ref().map(|sampling| (crate::layout::instrument::ALLOC, sampling.own_bytes));
        said.chain(earlier).filter(|(_, bytes)| *bytes > 0)
    }
}
