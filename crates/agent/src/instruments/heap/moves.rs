//! Remembers the moves of a collection, to map addresses back to those before the collection.

use clr_profiler::callback_args::{MovedRange, MovedRanges};

/// Ranges of objects that a collection moved.
#[derive(Debug, Default)]
pub(super) struct Moves(Vec<MovedRange>);

impl Moves {
    /// Adds ranges that the runtime reports. Ranges that stay in place are left out.
    pub(super) fn add(&mut self, ranges: MovedRanges<'_>) {
        self.0.extend(ranges.iter().filter(|range| range.old_start != range.new_start));
    }

    /// Sorts the ranges. [`before`](Self::before) needs that.
    pub(super) fn sort(&mut self) {
        self.0.sort_unstable_by_key(|range| range.new_start);
    }

    /// The address that an object had before the collection, given its address after the
    /// collection.
    pub(super) fn before(&self, address: u64) -> u64 {
        let at = self.0.partition_point(|range| range.new_start as u64 <= address);
        let range = at.checked_sub(1).map(|at| &self.0[at]);
        let distance = range.map(|range| (range, address - range.new_start as u64));
        match distance.filter(|(range, distance)| *distance < range.bytes as u64) {
            Some((range, distance)) => range.old_start as u64 + distance,
            None => address,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_moved_is_found_where_it_lay_and_all_else_where_it_lies() {
        let mut moves = Moves(vec![MovedRange::new(0x9000, 0x2000, 0x100), MovedRange::new(0x2000, 0x1000, 0x40)]);
        moves.sort();
        let before = [0x1000, 0x1038, 0x1040, 0x2000, 0x20f8, 0x2100, 0x500].map(|at| moves.before(at));
        assert_eq!(before, [0x2000, 0x2038, 0x1040, 0x9000, 0x90f8, 0x2100, 0x500]);
        assert_eq!(Moves::default().before(7), 7);
    }
}
