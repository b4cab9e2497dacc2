//! Records of one word: the most frequent records are encoded once and then only copied.

use super::{Kind, Tag};

/// Encoded fields: at most seven bytes, and their number in the topmost byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ShortFields(u64);

/// Bytes of a record before its fields: the number of bytes that follow, the kind, and a time
/// difference of 0.
const HEAD: usize = 3;

impl ShortFields {
    /// No fields: the kind is all the information.
    pub const NONE: Self = Self(0);

    /// An entity of the runtime, identified only by clrscope's number.
    #[must_use]
    pub fn numbered(tag: Tag, index: u32) -> Self {
        debug_assert!(tag.0 >= 128);
        // The identifier, 0, is between the tag and the number.
        let (mut bytes, mut length, mut rest) = (u64::from(tag.0), 2, index);
        while rest > 0x7F {
            bytes |= u64::from(rest as u8 | 0x80) << (8 * length);
            (length, rest) = (length + 1, rest >> 7);
        }
        bytes |= u64::from(rest) << (8 * length);
        Self(bytes | (length + 1) << 56)
    }

    /// The fields as a number, for storing in an atomic.
    #[must_use]
    #[inline]
    pub fn to_bits(self) -> u64 {
        self.0
    }

    /// The fields from a result of [`to_bits`](Self::to_bits).
    #[must_use]
    #[inline]
    pub fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// Length of the fields in bytes.
    #[must_use]
    #[inline]
    pub(super) fn length(self) -> usize {
        (self.0 >> 56) as usize
    }

    /// The bytes; those beyond [`length`](Self::length) are undefined.
    #[must_use]
    #[inline]
    pub(super) fn bytes(self) -> [u8; 8] {
        self.0.to_le_bytes()
    }
}

/// A record with [`ShortFields`] and the same time as the previous record of the chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShortRecord {
    /// Bytes of the record; those beyond `length` are undefined.
    pub word: [u8; 16],
    /// Length in bytes.
    pub length: usize,
}

impl ShortRecord {
    /// Encodes the record.
    #[must_use]
    #[inline]
    pub fn new(kind: Kind, fields: ShortFields) -> Self {
        let length = HEAD + fields.length();
        let head = (length - 1) as u64 | u64::from(kind.0) << 8;
        let word = u128::from(head) | u128::from(fields.0) << (8 * HEAD);
        Self { word: word.to_le_bytes(), length }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Encoder, EntityRef, Records};
    use super::*;

    #[test]
    fn short_records_say_what_long_ones_say() {
        for index in [0, 1, 127, 128, 70_000, u32::MAX] {
            let mut buffer = [0; 64];
            let mut encoder = Encoder::new(&mut buffer, Kind::EXCEPTION_UNWIND_FUNCTION_ENTER, 0);
            encoder.entity(Tag::FUNCTION, EntityRef { id: 0, index });
            let long = Records::new(encoder.finish().0).next();
            let fields = ShortFields::from_bits(ShortFields::numbered(Tag::FUNCTION, index).to_bits());
            let short = ShortRecord::new(Kind::EXCEPTION_UNWIND_FUNCTION_ENTER, fields);
            let mut records = Records::new(&short.word[..short.length]);
            assert_eq!((records.next(), records.was_cut()), (long, false), "{index}");

            let mut buffer = [0; 64];
            let mut encoder = Encoder::new(&mut buffer, Kind::EXCEPTION_CATCHER_ENTER, 9);
            encoder.short(fields).number(Tag::OBJECT, 5);
            let record = Records::new(encoder.finish().0).next().expect("a record");
            let (entity, object) = (record.entity(Tag::FUNCTION), record.number(Tag::OBJECT));
            assert_eq!((entity, object), (Some(EntityRef { id: 0, index }), Some(5)));
        }
        let nothing = ShortRecord::new(Kind::EXCEPTION_CATCHER_LEAVE, ShortFields::NONE);
        let record = Records::new(&nothing.word[..nothing.length]).next().expect("a record");
        assert_eq!((record.kind, record.fields().count()), (Kind::EXCEPTION_CATCHER_LEAVE, 0));
    }

    #[test]
    fn short_fields_that_find_no_room_are_left_out_whole() {
        let mut buffer = [0; 8];
        let mut encoder = Encoder::new(&mut buffer, Kind::EXCEPTION_CATCHER_ENTER, 9);
        encoder.short(ShortFields::numbered(Tag::FUNCTION, u32::MAX)).short(ShortFields::NONE);
        let (bytes, whole) = encoder.finish();
        assert_eq!((bytes.len(), whole), (4, false));
    }
}
