//! Numbers of variable length: seven bits per byte, lowest bits first; the top bit says that more
//! bytes follow. Trees of packed files and records of events consist of such numbers, and other
//! programs' formats use them, too.

/// Passes the bytes of a number to `push`, one by one.
#[inline]
pub(crate) fn each_byte(mut value: u64, mut push: impl FnMut(u8)) {
    while value >= 0x80 {
        push(value as u8 | 0x80);
        value >>= 7;
    }
    push(value as u8);
}

/// Appends a number.
pub fn put(bytes: &mut Vec<u8>, value: u64) {
    each_byte(value, |byte| bytes.push(byte));
}

/// Reads numbers one after another, and the bytes between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Varints<'a> {
    bytes: &'a [u8],
}

impl<'a> Varints<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// Number of bytes left, which also bounds the count of numbers left.
    pub(crate) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The bytes that are left.
    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The next byte; `None` at the end.
    #[inline]
    pub(crate) fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(byte)
    }

    /// Splits off the next `length` bytes, to be read on their own.
    pub(crate) fn split_off(&mut self, length: u64) -> Option<Varints<'a>> {
        let (head, tail) = self.bytes.split_at_checked(usize::try_from(length).ok()?)?;
        self.bytes = tail;
        Some(Self { bytes: head })
    }

    /// The next number; `None` at the end, or if the number has more than 64 bits.
    #[inline]
    pub(crate) fn next(&mut self) -> Option<u64> {
        let (&first, rest) = self.bytes.split_first()?;
        if first < 0x80 {
            self.bytes = rest;
            return Some(u64::from(first));
        }
        match self.bytes.first_chunk::<8>() {
            Some(word) => self.short(u64::from_le_bytes(*word)),
            None => self.long(),
        }
    }

    /// The number at the start of the next eight bytes. Uses no branch per byte, because lengths
    /// vary from number to number.
    #[inline]
    fn short(&mut self, word: u64) -> Option<u64> {
        let ends = !word & 0x8080_8080_8080_8080;
        if ends == 0 {
            return self.long();
        }
        let length = ends.trailing_zeros() / 8 + 1;
        self.bytes = &self.bytes[length as usize..];
        let bits = word & (u64::MAX >> (64 - 8 * length)) & 0x7F7F_7F7F_7F7F_7F7F;
        // Seven bits of each byte, then fourteen of each two, then twenty-eight of each four, moved
        // together.
        let bits = (bits & 0x007F_007F_007F_007F) | (bits & 0x7F00_7F00_7F00_7F00) >> 1;
        let bits = (bits & 0x0000_3FFF_0000_3FFF) | (bits & 0x3FFF_0000_3FFF_0000) >> 2;
        Some((bits & 0x0FFF_FFFF) | (bits & 0x0FFF_FFFF_0000_0000) >> 4)
    }

    #[cold]
    fn long(&mut self) -> Option<u64> {
        let mut value = 0;
        for (at, &byte) in self.bytes.iter().enumerate().take(10) {
            let bits = u64::from(byte & 0x7F);
            if at == 9 && bits > 1 {
                return None;
            }
            value |= bits << (7 * at);
            if byte < 0x80 {
                self.bytes = &self.bytes[at + 1..];
                return Some(value);
            }
        }
        None
    }

    /// The next number, if it fits into 32 bits.
    #[inline]
    pub(crate) fn next_u32(&mut self) -> Option<u32> {
        u32::try_from(self.next()?).ok()
    }
}

/// Encodes a signed number as an unsigned one: numbers near zero give small results.
#[inline]
#[must_use]
pub const fn zigzag(number: i64) -> u64 {
    (number << 1 ^ number >> 63) as u64
}

/// Decodes the signed number.
#[inline]
pub(crate) const fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        let numbers: [u64; 64] = std::array::from_fn(|bits| (0xF0E1_D2C3_B4A5_9687 >> bits) | 1 << (63 - bits));
        let mut bytes = Vec::new();
        for number in numbers {
            put(&mut bytes, number);
        }
        let mut read = Varints::new(&bytes);
        assert_eq!(numbers.map(|_| read.next()), numbers.map(Some));
        assert_eq!(read.next(), None);
        // Again with nothing behind, where no eight bytes can be looked at together.
        for number in numbers.into_iter().chain([0, 127, 128, u64::from(u32::MAX), u64::MAX]) {
            bytes.clear();
            put(&mut bytes, number);
            assert_eq!(Varints::new(&bytes).next(), Some(number));
        }
    }

    #[test]
    fn numbers_with_a_sign_come_back() {
        for number in [0, 1, -1, i64::MAX, i64::MIN] {
            assert_eq!(unzigzag(zigzag(number)), number);
        }
        assert_eq!([0, -1, 1, -2].map(zigzag), [0, 1, 2, 3]);
    }

    #[test]
    fn a_number_without_end_is_none() {
        assert_eq!(Varints::new(&[0xFF; 64]).next(), None);
        assert_eq!(Varints::new(&[0x80]).next(), None);
    }
}
