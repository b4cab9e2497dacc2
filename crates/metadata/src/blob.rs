//! Compressed numbers in blobs. Source: ECMA-335, II.23.2.

/// Reader of a blob, from its start.
#[derive(Clone, Copy, Debug)]
pub struct Blob<'d> {
    rest: &'d [u8],
}

impl<'d> Blob<'d> {
    /// Creates a reader of these bytes.
    #[must_use]
    pub const fn new(bytes: &'d [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Whether all bytes have been read.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next byte.
    pub fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    /// The next `count` bytes.
    pub fn bytes(&mut self, count: usize) -> Option<&'d [u8]> {
        let (bytes, rest) = self.rest.split_at_checked(count)?;
        self.rest = rest;
        Some(bytes)
    }

    /// The next unsigned number.
    pub fn unsigned(&mut self) -> Option<u32> {
        self.number().map(|(number, _)| number)
    }

    /// The next signed number. Its encoding is rotated by one bit, so that the sign is the lowest
    /// bit.
    pub fn signed(&mut self) -> Option<i32> {
        let (number, bits) = self.number()?;
        let magnitude = (number >> 1).cast_signed();
        Some(if number & 1 == 0 { magnitude } else { magnitude - (1 << (bits - 1)) })
    }

    /// A number, and the number of bits that its form can hold.
    fn number(&mut self) -> Option<(u32, u32)> {
        let first = u32::from(self.byte()?);
        if first & 0x80 == 0 {
            return Some((first, 7));
        }
        if first & 0x40 == 0 {
            return Some(((first & 0x3f) << 8 | u32::from(self.byte()?), 14));
        }
        if first & 0x20 != 0 {
            return None;
        }
        let rest = self.bytes(3)?;
        let low = rest.iter().fold(0, |number, byte| number << 8 | u32::from(*byte));
        Some(((first & 0x1f) << 24 | low, 29))
    }

    /// The next type token: its lower two bits select the table, the upper bits are the row.
    pub fn type_token(&mut self) -> Option<u32> {
        let coded = self.unsigned()?;
        let table = [0x02, 0x01, 0x1b].get(coded as usize & 3)?;
        Some(table << 24 | coded >> 2)
    }

    /// The next bytes that are preceded by their compressed length.
    pub fn counted(&mut self) -> Option<&'d [u8]> {
        let count = self.unsigned()?;
        self.bytes(count as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The examples of ECMA-335, II.23.2.
    #[test]
    fn numbers_are_those_of_the_standard() {
        let unsigned = |bytes: &[u8]| Blob::new(bytes).unsigned();
        assert_eq!(unsigned(&[0x03]), Some(3));
        assert_eq!(unsigned(&[0x7f]), Some(0x7f));
        assert_eq!(unsigned(&[0x80, 0x80]), Some(0x80));
        assert_eq!(unsigned(&[0xae, 0x57]), Some(0x2e57));
        assert_eq!(unsigned(&[0xbf, 0xff]), Some(0x3fff));
        assert_eq!(unsigned(&[0xc0, 0x00, 0x40, 0x00]), Some(0x4000));
        assert_eq!(unsigned(&[0xdf, 0xff, 0xff, 0xff]), Some(0x1fff_ffff));
        let signed = |bytes: &[u8]| Blob::new(bytes).signed();
        assert_eq!(signed(&[0x06]), Some(3));
        assert_eq!(signed(&[0x7b]), Some(-3));
        assert_eq!(signed(&[0x80, 0x80]), Some(64));
        assert_eq!(signed(&[0x01]), Some(-64));
        assert_eq!(signed(&[0xc0, 0x00, 0x40, 0x00]), Some(8192));
        assert_eq!(signed(&[0x80, 0x01]), Some(-8192));
        assert_eq!(signed(&[0xdf, 0xff, 0xff, 0xfe]), Some(268_435_455));
        assert_eq!(signed(&[0xc0, 0x00, 0x00, 0x01]), Some(-268_435_456));
    }

    #[test]
    fn what_is_cut_has_no_number() {
        for bytes in [&[][..], &[0x80], &[0xc0, 0, 0], &[0xff], &[0xe0, 0, 0, 0]] {
            assert_eq!(Blob::new(bytes).unsigned(), None, "{bytes:x?}");
        }
        assert_eq!(Blob::new(&[5, 1, 2]).counted(), None);
        assert_eq!(Blob::new(&[2, 1, 2]).counted(), Some(&[1, 2][..]));
    }
}
