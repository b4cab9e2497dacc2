//! Writes records without allocating.

use super::field::{EntityRef, Field, Tag, Value};
use super::kinds::Kind;
use super::short::ShortFields;
use crate::varint::each_byte;

/// Writes one record into the caller's memory; does not allocate. A field that does not fit is left
/// out completely, and [`finish`](Self::finish) reports that.
#[derive(Debug)]
pub struct Encoder<'a> {
    buffer: &'a mut [u8],
    used: usize,
    full: bool,
}

/// Bytes reserved at the front for the record's length: records are shorter than 2^14 bytes.
const LENGTH: usize = 2;

impl<'a> Encoder<'a> {
    /// Maximum number of bytes in a record.
    pub const MOST: usize = 1 << 14;

    /// Begins a record. `delta_ns` is the time since the record before it.
    #[inline]
    pub fn new(buffer: &'a mut [u8], kind: Kind, delta_ns: u64) -> Self {
        let end = buffer.len().min(Self::MOST);
        let mut encoder = Self { buffer: &mut buffer[..end], used: LENGTH.min(end), full: end < LENGTH };
        encoder.byte(kind.0);
        encoder.varint(delta_ns);
        encoder
    }

    fn bytes(&mut self, bytes: &[u8]) {
        match self.buffer.get_mut(self.used..self.used + bytes.len()) {
            Some(place) if !self.full => {
                place.copy_from_slice(bytes);
                self.used += bytes.len();
            }
            _ => self.full = true,
        }
    }

    /// Writes byte by byte: a copy of so few bytes would cost a call.
    #[inline]
    fn byte(&mut self, byte: u8) {
        match self.buffer.get_mut(self.used) {
            Some(place) => {
                *place = byte;
                self.used += 1;
            }
            None => self.full = true,
        }
    }

    #[inline]
    fn varint(&mut self, value: u64) {
        each_byte(value, |byte| self.byte(byte));
    }

    /// Adds a whole field or nothing.
    #[inline]
    fn field(&mut self, tag: Tag, write: impl FnOnce(&mut Self)) -> &mut Self {
        let before = self.used;
        self.byte(tag.0);
        write(self);
        if self.full {
            self.used = before;
        }
        self
    }

    /// Adds a number.
    #[inline]
    pub fn number(&mut self, tag: Tag, value: u64) -> &mut Self {
        debug_assert!(tag.0 < 64);
        self.field(tag, |encoder| encoder.varint(value))
    }

    /// Adds a text.
    pub fn text(&mut self, tag: Tag, value: &str) -> &mut Self {
        debug_assert!((64..112).contains(&tag.0));
        self.field(tag, |encoder| {
            encoder.varint(value.len() as u64);
            encoder.bytes(value.as_bytes());
        })
    }

    /// Adds bytes whose meaning is defined elsewhere.
    pub fn opaque(&mut self, tag: Tag, value: &[u8]) -> &mut Self {
        debug_assert!((112..128).contains(&tag.0));
        self.field(tag, |encoder| {
            encoder.varint(value.len() as u64);
            encoder.bytes(value);
        })
    }

    /// Adds a text of UTF-16 units; an unpaired surrogate becomes U+FFFD.
    pub fn utf16(&mut self, tag: Tag, units: &[u16]) -> &mut Self {
        debug_assert!((64..112).contains(&tag.0));
        let characters = || char::decode_utf16(units.iter().copied()).map(|c| c.unwrap_or(char::REPLACEMENT_CHARACTER));
        self.field(tag, |encoder| {
            if units.iter().all(|&unit| unit < 0x80) {
                encoder.varint(units.len() as u64);
                units.iter().for_each(|&unit| encoder.byte(unit as u8));
                return;
            }
            encoder.varint(characters().map(char::len_utf8).sum::<usize>() as u64);
            for character in characters() {
                encoder.bytes(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
        })
    }

    /// Adds a reference to an entity of the runtime.
    #[inline]
    pub fn entity(&mut self, tag: Tag, value: EntityRef) -> &mut Self {
        debug_assert!(tag.0 >= 128);
        self.field(tag, |encoder| {
            encoder.varint(value.id);
            encoder.varint(value.index.into());
        })
    }

    /// Adds pre-encoded fields, all or none.
    #[inline]
    pub fn short(&mut self, fields: ShortFields) -> &mut Self {
        let (bytes, length) = (fields.bytes(), fields.length().min(size_of::<u64>()));
        // Write all eight bytes if there is room: a copy of variable length would cost a call.
        match self.buffer.get_mut(self.used..self.used + bytes.len()) {
            Some(place) => {
                place.copy_from_slice(&bytes);
                self.used += length;
            }
            None => self.bytes(&bytes[..length]),
        }
        self
    }

    /// Adds a field unless it is empty: an empty text, or an entity without identifier.
    pub fn put(&mut self, field: Field<'_>) -> &mut Self {
        match field.value {
            Value::Number(number) => self.number(field.tag, number),
            Value::Text("") => self,
            Value::Text(text) => self.text(field.tag, text),
            Value::Bytes(bytes) => self.opaque(field.tag, bytes),
            Value::Entity(EntityRef { id: 0, index: 0 }) => self,
            Value::Entity(entity) => self.entity(field.tag, entity),
        }
    }

    /// The record's bytes, and `true` if all fields fitted.
    #[inline]
    pub fn finish(self) -> (&'a [u8], bool) {
        let length = self.used.saturating_sub(LENGTH);
        if let [low, high, ..] = &mut *self.buffer {
            *low = (length & 0x7F) as u8 | 0x80;
            *high = (length >> 7) as u8;
        }
        (&self.buffer[..self.used], !self.full)
    }
}
