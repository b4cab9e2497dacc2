//! The protocol's encoding of numbers and texts: little endian; texts are UTF-16 with a length and
//! a final zero.

use crate::{Clsid, Error};

/// Writer of a request's bytes.
#[derive(Debug, Default)]
pub(crate) struct Writer(pub(crate) Vec<u8>);

impl Writer {
    pub(crate) fn u8(mut self, value: u8) -> Self {
        self.0.push(value);
        self
    }

    pub(crate) fn u32(mut self, value: u32) -> Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    pub(crate) fn u64(mut self, value: u64) -> Self {
        self.0.extend(value.to_le_bytes());
        self
    }

    /// Appends a class id in the memory layout of `GUID`.
    pub(crate) fn clsid(mut self, class: Clsid) -> Self {
        let number = class.0;
        self.0.extend(((number >> 96) as u32).to_le_bytes());
        self.0.extend(((number >> 80) as u16).to_le_bytes());
        self.0.extend(((number >> 64) as u16).to_le_bytes());
        self.0.extend((number as u64).to_be_bytes());
        self
    }

    /// Appends a text. An empty text is a length of zero.
    pub(crate) fn text(mut self, text: &str) -> Self {
        if text.is_empty() {
            return self.u32(0);
        }
        let units: Vec<u16> = text.encode_utf16().chain([0]).collect();
        self = self.u32(u32::try_from(units.len()).unwrap_or(u32::MAX));
        self.0.extend(units.iter().flat_map(|unit| unit.to_le_bytes()));
        self
    }

    pub(crate) fn bytes(self, bytes: &[u8]) -> Self {
        let mut this = self.u32(u32::try_from(bytes.len()).unwrap_or(u32::MAX));
        this.0.extend(bytes);
        this
    }
}

/// The unread rest of an answer. Reading past its end is an error, never a panic.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn read_bytes(&mut self, bytes: usize) -> Result<&'a [u8], Error> {
        let (taken, rest) = self.0.split_at_checked(bytes).ok_or(Error::nonsense("it ends too early"))?;
        self.0 = rest;
        Ok(taken)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let (taken, rest) = self.0.split_first_chunk().ok_or(Error::nonsense("it ends too early"))?;
        self.0 = rest;
        Ok(*taken)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Error> {
        Ok(self.array::<1>()?[0])
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Error> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Error> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Error> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// Reads a text after its length, which includes the final zero.
    pub(crate) fn text(&mut self) -> Result<String, Error> {
        let units = self.u32()? as usize;
        let bytes =
            self.read_bytes(units.checked_mul(2).ok_or(Error::nonsense("a text is longer than the answer"))?)?;
        Ok(utf16(bytes).trim_end_matches('\0').to_owned())
    }

    /// Reads a text that ends with a zero.
    pub(crate) fn zero_terminated(&mut self) -> Result<String, Error> {
        let is_end = |unit: &[u8]| unit == [0, 0];
        let units = self.0.chunks_exact(2).position(is_end).ok_or(Error::nonsense("a text has no end"))?;
        let text = utf16(&self.0[..units * 2]);
        self.0 = &self.0[units * 2 + 2..];
        Ok(text)
    }

    /// Reads a variable-length number in groups of seven bits, as used in event blocks.
    pub(crate) fn variable(&mut self) -> Result<u64, Error> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(Error::nonsense("a number has no end"))
    }
}

/// Decodes UTF-16. Invalid units become replacement characters: names are only displayed.
fn utf16(bytes: &[u8]) -> String {
    let units: Vec<u16> = bytes.as_chunks().0.iter().map(|unit| u16::from_le_bytes(*unit)).collect();
    String::from_utf16_lossy(&units)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_and_numbers_come_back() {
        let written = Writer::default().text("Größe").text("").u64(7).u8(1).bytes(b"ab").0;
        let mut reader = Reader(&written);
        assert_eq!(reader.text().expect("a text"), "Größe");
        assert_eq!(reader.text().expect("a text"), "");
        assert_eq!((reader.u64().expect("a number"), reader.u8().expect("a number")), (7, 1));
        assert_eq!(reader.u32().expect("a length"), 2);
        assert!(reader.u32().is_err() && reader.read_bytes(usize::MAX).is_err());
    }

    #[test]
    fn a_length_beyond_everything_is_an_error() {
        assert!(Reader(&[0xff; 8]).text().is_err());
        assert!(Reader(&[0xff; 16]).variable().is_err());
        assert!(Reader(&[1, 0, 2, 0]).zero_terminated().is_err());
        assert_eq!(Reader(&[0xe5, 0x8e, 0x26]).variable().expect("a number"), 624_485);
    }

    #[test]
    fn a_clsid_lies_as_in_memory() {
        let class: Clsid = "{C7E1A7D4-3B7B-4C2E-9B7F-0C15C09E5A11}".parse().expect("a class id");
        let written = Writer::default().clsid(class).0;
        assert_eq!(
            written,
            [0xd4, 0xa7, 0xe1, 0xc7, 0x7b, 0x3b, 0x2e, 0x4c, 0x9b, 0x7f, 0x0c, 0x15, 0xc0, 0x9e, 0x5a, 0x11]
        );
    }
}
