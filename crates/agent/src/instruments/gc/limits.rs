//! Limits of the instrument's own tables, which may take a fixed part of the instrument's limit.

use clrscope_agent_stacks::stacks::{BYTES_OF_A_STACK, REMEMBERED};

/// Tables outside the recording may take one part in this many of the limit.
const PART: u64 = 4;
/// Entries of each table at least.
const LEAST: usize = 16;

/// Bytes of memory for a noted range of objects.
pub(super) const BYTES_OF_A_RANGE: usize = 24;
/// Bytes of memory for a class in the tables of one collection: its young objects, and the sums of
/// its generations.
pub(super) const BYTES_OF_A_CLASS: usize = 256;

/// Limits of the instrument's tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limits {
    /// Most ranges that are noted during one collection.
    pub(super) ranges: usize,
    /// Most classes in one collection. A class counts once in every generation in which it occurs.
    pub(super) classes: usize,
    /// Most stacks that are remembered.
    pub(super) stacks: usize,
}

impl Limits {
    /// Returns the limits of the tables for an instrument whose limit is `max_bytes`.
    pub(super) fn from_max_bytes(max_bytes: u64) -> Self {
        let all = max_bytes / PART;
        let items = |part: u64, bytes: usize, most: usize| ((part / bytes as u64) as usize).clamp(LEAST, most);
        Self {
            ranges: items(all / 2, BYTES_OF_A_RANGE, 4 << 20),
            classes: items(all / 4, BYTES_OF_A_CLASS, 1 << 20),
            stacks: items(all / 4, BYTES_OF_A_STACK, REMEMBERED),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A hundred megabytes of ranges used to be noted, whatever `max=` said.
    #[test]
    fn tables_stay_within_their_part_of_the_limit() {
        for max in [64_u64 << 10, 1 << 20, 1 << 30] {
            let Limits { ranges, classes, stacks } = Limits::from_max_bytes(max);
            let bytes = ranges * BYTES_OF_A_RANGE + classes * BYTES_OF_A_CLASS + stacks * BYTES_OF_A_STACK;
            assert!(bytes as u64 <= max / PART, "{max}: {bytes}");
        }
        assert_eq!(Limits::from_max_bytes(1 << 30).ranges, 4 << 20);
    }
}
