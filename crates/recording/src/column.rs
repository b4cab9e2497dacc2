//! Columns of numbers: the closer the numbers are to each other, the fewer bytes each takes.

/// A list of numbers, stored as their minimum and each number's difference from it.
#[derive(Debug, Clone)]
pub struct Column {
    least: u64,
    more: More,
}

/// Differences, with as many bytes each as the largest needs.
#[derive(Debug, Clone)]
enum More {
    /// All differences are zero.
    Nothing,
    One(Vec<u8>),
    Two(Vec<u16>),
    Four(Vec<u32>),
    Eight(Vec<u64>),
}

impl Column {
    /// Creates a column of the numbers of `all`.
    #[must_use]
    pub fn from_numbers(all: impl Iterator<Item = u64> + Clone) -> Self {
        let (mut least, mut most) = (u64::MAX, 0);
        all.clone().for_each(|number| (least, most) = (least.min(number), most.max(number)));
        let more = all.map(|number| number - least);
        // The largest difference fits, so nothing is cut off.
        let more = match most.saturating_sub(least) {
            0 => More::Nothing,
            1..=0xff => More::One(more.map(|number| number as u8).collect()),
            0x100..=0xffff => More::Two(more.map(|number| number as u16).collect()),
            0x1_0000..=0xffff_ffff => More::Four(more.map(|number| number as u32).collect()),
            _ => More::Eight(more.collect()),
        };
        Self { least, more }
    }

    /// The number at an index.
    ///
    /// # Panics
    /// May panic if the index is out of range, as a slice does.
    #[inline]
    #[must_use]
    pub fn at(&self, at: usize) -> u64 {
        self.least
            + match &self.more {
                More::Nothing => 0,
                More::One(all) => all[at].into(),
                More::Two(all) => all[at].into(),
                More::Four(all) => all[at].into(),
                More::Eight(all) => all[at],
            }
    }
}

#[cfg(test)]
impl Column {
    /// Bytes of memory of all numbers.
    pub(crate) fn bytes(&self) -> usize {
        match &self.more {
            More::Nothing => 0,
            More::One(all) => all.len(),
            More::Two(all) => 2 * all.len(),
            More::Four(all) => 4 * all.len(),
            More::Eight(all) => 8 * all.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_however_far_apart_they_are() {
        for more in [0, 1, 0xff, 0x100, 0xffff, 0x1_0000, 0xffff_ffff, 0x1_0000_0000, u64::MAX - 9] {
            let all = [9, 9 + more / 2, 9 + more];
            let column = Column::from_numbers(all.into_iter());
            assert_eq!([0, 1, 2].map(|at| column.at(at)), all);
        }
        let bytes = |numbers: &[u64]| Column::from_numbers(numbers.iter().copied()).bytes();
        let base = 1 << 40;
        let found = [0, 0xff, 0x100, 0xffff, 0x1_0000, 0x1_0000_0000].map(|more| bytes(&[base + more, base]) / 2);
        assert_eq!(found, [0, 1, 2, 2, 4, 8]);
        assert_eq!(bytes(&[]), 0);
    }
}
