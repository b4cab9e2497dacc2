//! Numbers of variable length: seven bits to a byte, lowest first, the top bit says that more follow.

/// Appends a number.
pub(super) fn put(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Reads numbers one after another.
#[derive(Debug, Clone, Copy)]
pub(super) struct Varints<'a> {
    bytes: &'a [u8],
}

impl<'a> Varints<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    /// Splits off the next `length` bytes as a column of their own.
    pub(super) fn column(&mut self, length: u64) -> Option<Varints<'a>> {
        let (head, tail) = self.bytes.split_at_checked(usize::try_from(length).ok()?)?;
        self.bytes = tail;
        Some(Self { bytes: head })
    }

    /// The next number; `None` at the end, and for a number of more than 64 bits.
    #[inline]
    pub(super) fn next(&mut self) -> Option<u64> {
        let (&first, rest) = self.bytes.split_first()?;
        if first < 0x80 {
            self.bytes = rest;
            return Some(u64::from(first));
        }
        self.long()
    }

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

    /// The next number if it fits 32 bits.
    #[inline]
    pub(super) fn next_u32(&mut self) -> Option<u32> {
        u32::try_from(self.next()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        let numbers = [0, 1, 127, 128, 300, u64::from(u32::MAX), 1 << 62, u64::MAX];
        let mut bytes = Vec::new();
        for number in numbers {
            put(&mut bytes, number);
        }
        let mut read = Varints::new(&bytes);
        assert_eq!(numbers.map(|_| read.next()), numbers.map(Some));
        assert_eq!(read.next(), None);
    }

    #[test]
    fn a_number_without_end_is_none() {
        assert_eq!(Varints::new(&[0xFF; 64]).next(), None);
        assert_eq!(Varints::new(&[0x80]).next(), None);
    }
}
