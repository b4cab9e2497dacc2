//! Iterates over the records of a log.

use crate::layout::u32_at;
use crate::payload::PayloadReader;

/// Iterates over the records of a log; ends at the first incomplete one.
pub(crate) struct LogRecords<'a> {
    bytes: &'a [u8],
    at: usize,
    cut: bool,
}

impl<'a> LogRecords<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, cut: false }
    }

    /// Whether the iteration ended in the middle of a record rather than at the end of the log. The
    /// answer holds for the moment when the iteration ended: the writer may have added a record
    /// since.
    pub(crate) fn was_cut(&self) -> bool {
        self.cut
    }
}

impl<'a> Iterator for LogRecords<'a> {
    type Item = (u16, PayloadReader<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let length = u32_at(self.bytes, self.at) as usize;
        if length == 0 {
            return None;
        }
        let from = self.at.checked_add(8)?;
        let Some(payload) = self.bytes.get(from..from.checked_add(length)?) else {
            self.cut = true;
            return None;
        };
        let kind = (u32_at(self.bytes, self.at + 4) & 0xFFFF) as u16;
        self.at = from + length.next_multiple_of(4);
        Some((kind, PayloadReader::new(payload)))
    }
}
