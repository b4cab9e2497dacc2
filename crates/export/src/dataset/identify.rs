//! Numbers that are computed from names, so that the same function or stack has the same number
//! wherever and whenever it is written.

use crate::fnv::{EMPTY, fnv1a};

/// Hash of texts and numbers, one after another: FNV-1a with a final mix. Numbers have 63 bits,
/// because all databases have such numbers as signed integers. Among a million stacks, two have the
/// same number in one of ten million data sets.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hash(u64);

impl Hash {
    pub(super) const fn new() -> Self {
        Self(EMPTY)
    }

    pub(super) fn text(self, text: &str) -> Self {
        // The length keeps neighbouring texts apart.
        Self(fnv1a(self.number(text.len() as u64).0, text.as_bytes()))
    }

    pub(super) fn number(self, number: u64) -> Self {
        Self(fnv1a(self.0, &number.to_le_bytes()))
    }

    /// The number, never 0.
    pub(super) const fn finish(self) -> u64 {
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 33).wrapping_mul(0xFF51_AFD7_ED55_8CCD);
        mixed = (mixed ^ mixed >> 33).wrapping_mul(0xC4CE_B9FE_1A85_EC53);
        mixed ^= mixed >> 33;
        let number = mixed >> 1;
        if number == 0 { 1 } else { number }
    }
}

/// Name of a file with these processes: the same processes always give the same name.
pub(super) fn name_of(processes: impl Iterator<Item = (String, u32)>) -> String {
    let mut all: Vec<(String, u32)> = processes.collect();
    all.sort();
    let hash = all.iter().fold(Hash::new(), |hash, (id, pid)| hash.text(id).number(u64::from(*pid)));
    format!("{:016x}", hash.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_the_same_from_version_to_version() {
        assert_eq!(Hash::new().text("Shop.Cart::Total").finish(), Hash::new().text("Shop.Cart::Total").finish());
        assert_ne!(Hash::new().text("ab").text("c").finish(), Hash::new().text("a").text("bc").finish());
        assert!((0..1_000).all(|number| Hash::new().number(number).finish() <= i64::MAX as u64));
    }
}
