//! Memory that instruments use for themselves.

use crate::codec::record;

record! {
    /// Memory in the program that an instrument uses for its own tables, in addition to the
    /// recorded data.
    #[derive(Debug, Clone, Default, PartialEq, Eq)]
    pub struct OwnMemory {
        /// The instrument.
        pub instrument: String,
        /// The largest number of bytes that the instrument measured.
        pub bytes: u64,
    }
}
