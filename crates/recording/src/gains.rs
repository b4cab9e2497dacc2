//! Gains of tree edges from one boundary between parts to the next: the records of `parts.log`.
//!
//! A record is a sequence of varints: the number of its boundary (from 1), then entries of its
//! kind. An entry begins with the edge, as the difference from the previous edge in the record
//! (zigzag: 0, -1, 1, -2, ... are 0, 1, 2, 3).
//!
//! | kind | entry |
//! |---|---|
//! | 1 calls | edge; difference of its 32-bit count from the previous boundary, zigzag: negative if the count passed 2^32 |
//! | 2 ticks | edge; ticks gained |
//! | 3 times | edge; wall and CPU nanoseconds gained |
//!
//! The records of a boundary are valid only if `process.log` contains the boundary: they are
//! written first.
//!
//! If the launcher writes the recording in periods, the log starts again after the end of each
//! period. `parts-before.log` has the records of the previous period, the last one that has ended.

use crate::varint::{Varints, put, unzigzag, zigzag};

/// Kinds of records.
pub(crate) mod kind {
    pub(crate) const CALLS: u16 = 1;
    pub(crate) const TICKS: u16 = 2;
    pub(crate) const TIMES: u16 = 3;
}

/// Maximum length of a record; longer records are split.
pub(crate) const RECORD_BYTES: usize = 64 << 10;

/// A record that is being written.
#[derive(Debug, Default)]
pub(crate) struct GainRecord {
    pub(crate) bytes: Vec<u8>,
    last: u32,
}

impl GainRecord {
    /// Adds an entry; the boundary's number precedes the first one.
    pub(crate) fn add(&mut self, boundary: u32, edge: u32, gained: &[u64]) {
        if self.bytes.is_empty() {
            put(&mut self.bytes, u64::from(boundary));
        }
        put(&mut self.bytes, zigzag(i64::from(edge) - i64::from(self.last)));
        gained.iter().for_each(|&value| put(&mut self.bytes, value));
        self.last = edge;
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
        self.last = 0;
    }
}

/// Passes the entries of a record with `N` numbers each to `take`: boundary, edge and numbers.
/// Stops at the end of the record or at invalid data.
pub(crate) fn read<const N: usize>(record: &[u8], mut take: impl FnMut(u32, u32, [u64; N])) -> Option<()> {
    let mut numbers = Varints::new(record);
    let boundary = numbers.next_u32()?;
    let mut edge = 0_u32;
    loop {
        edge = u32::try_from(i64::from(edge).checked_add(unzigzag(numbers.next()?))?).ok()?;
        let mut gained = [0; N];
        for value in &mut gained {
            *value = numbers.next()?;
        }
        take(boundary, edge, gained);
    }
}

/// The boundary that a record belongs to.
pub(crate) fn boundary(record: &[u8]) -> Option<u32> {
    Varints::new(record).next_u32()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_back_up_to_where_the_record_is_cut() {
        let entries = [(7, [1, 0]), (u32::MAX, [u64::MAX, 5]), (3, [300, zigzag(-300)])];
        let mut record = GainRecord::default();
        entries.iter().for_each(|(edge, gained)| record.add(9, *edge, gained));
        for cut in 0..=record.bytes.len() {
            let mut found = Vec::new();
            let _ = read::<2>(&record.bytes[..cut], |boundary, edge, gained| found.push((boundary, edge, gained)));
            let expected = entries.iter().map(|&(edge, gained)| (9, edge, gained));
            assert!(found.iter().copied().eq(expected.take(found.len())));
            assert!(cut < record.bytes.len() || found.len() == entries.len());
        }
    }
}
