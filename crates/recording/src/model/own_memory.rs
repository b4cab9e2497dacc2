//! Memory that instruments take for themselves.

use crate::codec::record;

record! {
    /// Memory that an instrument takes in the program for tables of its own, in addition to what is
    /// recorded.
    #[derive(Debug, Clone, Default, PartialEq, Eq)]
    pub struct OwnMemory {
        /// The instrument.
        pub instrument: String,
        /// The most bytes at a time, of the times at which the instrument looked.
        pub bytes: u64,
    }
}
