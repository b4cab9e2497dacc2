//! Sets of nodes of a stack table.

/// A set of places in a stack table. It numbers its members.
#[derive(Clone, Default, PartialEq)]
pub(crate) struct NodeSet {
    bits: Vec<u64>,
    /// Number of members before each word.
    before: Vec<u32>,
}

impl NodeSet {
    pub(crate) fn for_places(places: usize) -> Self {
        Self { bits: vec![0; places.div_ceil(64)], before: Vec::new() }
    }

    #[inline]
    pub(crate) fn add(&mut self, place: u32) {
        self.bits[place as usize / 64] |= 1 << (place % 64);
    }

    #[inline]
    pub(crate) fn has(&self, place: u32) -> bool {
        self.bits[place as usize / 64] >> (place % 64) & 1 != 0
    }

    pub(crate) fn join(&mut self, other: &Self) {
        self.bits.iter_mut().zip(&other.bits).for_each(|(all, more)| *all |= more);
    }

    pub(crate) fn count(&mut self) {
        let mut all = 0;
        let before = |word: &u64| {
            all += word.count_ones();
            all - word.count_ones()
        };
        self.before = self.bits.iter().map(before).collect();
    }

    /// Number of a member, from 1. For a place that is not a member: the number of members before
    /// it, plus one.
    #[inline]
    pub(crate) fn number(&self, place: u32) -> u32 {
        let (word, bit) = (place as usize / 64, place % 64);
        1 + self.before[word] + (self.bits[word] & ((1 << bit) - 1)).count_ones()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = u32> {
        (0..).zip(&self.bits).flat_map(|(at, &word)| {
            let mut left = word;
            std::iter::from_fn(move || {
                let bit = (left != 0).then(|| left.trailing_zeros())?;
                left &= left - 1;
                Some(at * 64 + bit)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_have_their_numbers_in_order() {
        let mut set = NodeSet::for_places(300);
        let all = [0, 1, 63, 64, 130, 299];
        all.iter().for_each(|&place| set.add(place));
        set.count();
        assert_eq!(set.iter().collect::<Vec<_>>(), all);
        assert_eq!(all.map(|place| set.number(place)), [1, 2, 3, 4, 5, 6]);
        assert!(set.has(299) && !set.has(298));
    }
}
