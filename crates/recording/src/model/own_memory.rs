//! Memory that instruments use for themselves.

use crate::codec::record;

record! {
    /// Memory in the program that an instrument uses for its own tables, in addition to the
    /// recorded data.
    #[derive(Debug, Clone, Default, PartialEq, Eq)]
    pub struct OwnMemory {
        /// The instrument.
        pub instrument: String,
        /// The maximum number of bytes, over the times at which the instrument measured.
        pub bytes: u64,
    }
}
