//! One flag for each of many numbers. Flags are stored as bits, so that random access stays in the
//! processor's cache.

/// Flags for numbers. All are clear at first.
#[derive(Debug)]
pub(crate) struct Bits(Vec<u64>);

impl Bits {
    /// Flags for the numbers below `count`.
    pub(crate) fn new(count: usize) -> Self {
        Self(vec![0; count.div_ceil(u64::BITS as usize)])
    }

    /// Whether the flag of a number is set.
    pub(crate) fn has(&self, number: u32) -> bool {
        self.0[(number / u64::BITS) as usize] >> (number % u64::BITS) & 1 == 1
    }

    /// Sets the flag of a number. Returns whether it was clear before.
    pub(crate) fn set(&mut self, number: u32) -> bool {
        let (word, flag) = (&mut self.0[(number / u64::BITS) as usize], 1 << (number % u64::BITS));
        let is_new = *word & flag == 0;
        *word |= flag;
        is_new
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_is_set_once_and_touches_no_other() {
        let mut bits = Bits::new(130);
        assert!(bits.set(129) && bits.set(64) && !bits.set(129));
        assert_eq!((0..130).filter(|&number| bits.has(number)).collect::<Vec<_>>(), [64, 129]);
    }
}
