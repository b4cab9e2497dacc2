//! Reads the Protocol Buffers encoding field by field.

use std::fmt;

/// The bytes are not the expected message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed;

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("it is not a profile that clrscope has written")
    }
}

impl std::error::Error for Malformed {}

/// Value of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value<'a> {
    /// A number of variable length.
    Number(u64),
    /// Eight bytes.
    Fixed64(u64),
    /// A text, a nested message, or a list of numbers.
    Bytes(&'a [u8]),
}

impl<'a> Value<'a> {
    /// The number.
    ///
    /// # Errors
    /// If the value is not a number.
    pub fn number(self) -> Result<u64, Malformed> {
        match self {
            Self::Number(number) | Self::Fixed64(number) => Ok(number),
            Self::Bytes(_) => Err(Malformed),
        }
    }

    /// The bytes.
    ///
    /// # Errors
    /// If the value is a number.
    pub fn bytes(self) -> Result<&'a [u8], Malformed> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            _ => Err(Malformed),
        }
    }

    /// The fields of the nested message.
    pub(crate) fn fields(self) -> Result<Fields<'a>, Malformed> {
        self.bytes().map(Fields::new)
    }

    /// Appends the numbers of a list to `list`; the list is packed, or is a single number.
    pub(crate) fn append_to(self, list: &mut Vec<u64>) -> Result<(), Malformed> {
        match self {
            Self::Bytes(bytes) => {
                let mut rest = bytes;
                while !rest.is_empty() {
                    list.push(varint(&mut rest).ok_or(Malformed)?);
                }
            }
            other => list.push(other.number()?),
        }
        Ok(())
    }

    /// Appends the numbers of a list of numbers with eight bytes each.
    pub(crate) fn append_fixed64_to(self, list: &mut Vec<u64>) -> Result<(), Malformed> {
        match self {
            Self::Bytes(bytes) => {
                let (numbers, rest) = bytes.as_chunks::<8>();
                if !rest.is_empty() {
                    return Err(Malformed);
                }
                list.extend(numbers.iter().map(|bytes| u64::from_le_bytes(*bytes)));
            }
            other => list.push(other.number()?),
        }
        Ok(())
    }
}

/// The fields of a message: their numbers and values.
#[derive(Debug, Clone)]
pub struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    /// The fields of an encoded message.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    fn read(&mut self) -> Option<(u64, Value<'a>)> {
        let key = varint(&mut self.0)?;
        let value = match key & 7 {
            0 => Value::Number(varint(&mut self.0)?),
            1 => {
                let (bytes, rest) = self.0.split_first_chunk::<8>()?;
                self.0 = rest;
                Value::Fixed64(u64::from_le_bytes(*bytes))
            }
            2 => {
                let length = usize::try_from(varint(&mut self.0)?).ok()?;
                let (bytes, rest) = self.0.split_at_checked(length)?;
                self.0 = rest;
                Value::Bytes(bytes)
            }
            _ => return None,
        };
        Some((key >> 3, value))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, Value<'a>), Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let read = self.read();
        if read.is_none() {
            // Nothing behind it can be read.
            self.0 = &[];
        }
        Some(read.ok_or(Malformed))
    }
}

/// Reads a number of variable length from the front of the bytes.
pub(crate) fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7F) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protobuf::Message;

    #[test]
    fn what_is_written_is_read() {
        let mut message = Message::default();
        message.number(1, u64::MAX);
        message.bytes(2, b"text");
        message.fixed64(3, 7);
        message.packed(4, &[1, 300]);
        message.packed_fixed64(5, &[5, 6]);
        let fields: Result<Vec<_>, _> = Fields::new(message.encoded()).collect();
        let fields = fields.expect("a message");
        assert_eq!(fields[..3], [(1, Value::Number(u64::MAX)), (2, Value::Bytes(b"text")), (3, Value::Fixed64(7))]);
        let (mut packed, mut fixed) = (Vec::new(), Vec::new());
        fields[3].1.append_to(&mut packed).expect("numbers");
        fields[4].1.append_fixed64_to(&mut fixed).expect("numbers");
        assert_eq!((packed, fixed), (vec![1, 300], vec![5, 6]));
    }

    #[test]
    fn what_is_cut_is_malformed_and_ends() {
        let mut message = Message::default();
        message.bytes(2, b"text");
        for end in 1..message.encoded().len() {
            let fields: Vec<_> = Fields::new(&message.encoded()[..end]).collect();
            assert_eq!(fields, [Err(Malformed)], "{end}");
        }
        assert_eq!(Fields::new(&[0x08; 12]).filter(Result::is_err).count(), 0);
        assert_eq!(Fields::new(&[0xFF; 12]).collect::<Vec<_>>(), [Err(Malformed)]);
    }
}
