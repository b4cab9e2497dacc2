//! Structures in Thrift's compact protocol, as used in Parquet headers and footers: writer and
//! reader.

use clrscope_recording::varint::{put, zigzag};

use crate::fields;

/// Types of fields and of elements of lists.
pub(super) mod kind {
    pub(in super::super) const I32: u8 = 5;
    pub(in super::super) const BINARY: u8 = 8;
    pub(in super::super) const STRUCT: u8 = 12;
    pub(super) const I64: u8 = 6;
    pub(super) const LIST: u8 = 9;
}

/// Writes one structure.
#[derive(Debug, Default)]
pub(super) struct Structure {
    bytes: Vec<u8>,
    /// Number of the previous field.
    before: u8,
}

impl Structure {
    /// The bytes of the structure.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }

    pub(super) fn i32(&mut self, field: u8, value: i32) {
        self.field(field, kind::I32);
        self.zigzag(value.into());
    }

    pub(super) fn i64(&mut self, field: u8, value: i64) {
        self.field(field, kind::I64);
        self.zigzag(value);
    }

    pub(super) fn text(&mut self, field: u8, text: &str) {
        self.field(field, kind::BINARY);
        self.binary(text);
    }

    pub(super) fn structure(&mut self, field: u8, fill: impl FnOnce(&mut Self)) {
        self.field(field, kind::STRUCT);
        self.bytes.extend(filled(fill));
    }

    pub(super) fn structures(&mut self, field: u8, each: impl ExactSizeIterator<Item = Vec<u8>>) {
        self.list(field, kind::STRUCT, each.len());
        each.for_each(|structure| self.bytes.extend(structure));
    }

    pub(super) fn numbers(&mut self, field: u8, numbers: &[i32]) {
        self.list(field, kind::I32, numbers.len());
        numbers.iter().for_each(|number| self.zigzag((*number).into()));
    }

    pub(super) fn texts(&mut self, field: u8, texts: &[&str]) {
        self.list(field, kind::BINARY, texts.len());
        texts.iter().for_each(|text| self.binary(text));
    }

    /// Writes a field header. Fields come in ascending order, and there are fewer than sixteen.
    fn field(&mut self, field: u8, kind: u8) {
        self.bytes.push((field - self.before) << 4 | kind);
        self.before = field;
    }

    fn list(&mut self, field: u8, kind: u8, length: usize) {
        self.field(field, kind::LIST);
        match length {
            0..15 => self.bytes.push((length as u8) << 4 | kind),
            _ => {
                self.bytes.push(0xF0 | kind);
                put(&mut self.bytes, length as u64);
            }
        }
    }

    fn binary(&mut self, text: &str) {
        put(&mut self.bytes, text.len() as u64);
        self.bytes.extend_from_slice(text.as_bytes());
    }

    fn zigzag(&mut self, value: i64) {
        put(&mut self.bytes, zigzag(value));
    }
}

/// Deepest nesting of structures that is read.
const DEEPEST: usize = 8;

/// A structure that was read.
#[derive(Debug, Default)]
pub(super) struct Fields<'b>(Vec<(u8, Item<'b>)>);

/// A value that was read.
#[derive(Debug)]
enum Item<'b> {
    Number(i64),
    Binary(&'b [u8]),
    Structure(Fields<'b>),
    List(Vec<Item<'b>>),
}

/// The number at the start of `bytes`, and the bytes after the number; `None` if it is cut off or
/// too large.
pub(super) fn varint(mut bytes: &[u8]) -> Option<(u64, &[u8])> {
    let number = fields::varint(&mut bytes)?;
    Some((number, bytes))
}

impl<'b> Fields<'b> {
    /// The structure at the start of `bytes`, and its length in bytes; `None` if there is no valid
    /// structure.
    pub(super) fn read(bytes: &'b [u8]) -> Option<(Self, usize)> {
        let (fields, rest) = Self::parsed(bytes, DEEPEST)?;
        Some((fields, bytes.len() - rest.len()))
    }

    fn parsed(mut bytes: &'b [u8], deepest: usize) -> Option<(Self, &'b [u8])> {
        let (mut fields, mut number) = (Self::default(), 0_u8);
        loop {
            let (&head, rest) = bytes.split_first()?;
            bytes = rest;
            if head == 0 {
                return Some((fields, bytes));
            }
            // Field numbers above 15 and booleans are in no file that the writer makes.
            number = number.checked_add(head >> 4).filter(|_| head >> 4 > 0)?;
            let (item, rest) = Item::parsed(bytes, head & 0xF, deepest)?;
            fields.0.push((number, item));
            bytes = rest;
        }
    }

    fn item(&self, field: u8) -> Option<&Item<'b>> {
        self.0.iter().find(|(number, _)| *number == field).map(|(_, item)| item)
    }

    /// The value of a field that is a non-negative number; `None` if there is no such value.
    pub(super) fn number(&self, field: u8) -> Option<u64> {
        match self.item(field)? {
            Item::Number(number) => u64::try_from(*number).ok(),
            _ => None,
        }
    }

    pub(super) fn structure(&self, field: u8) -> Option<&Self> {
        match self.item(field)? {
            Item::Structure(fields) => Some(fields),
            _ => None,
        }
    }

    pub(super) fn structures(&self, field: u8) -> impl Iterator<Item = &Self> {
        self.list(field).iter().filter_map(|item| match item {
            Item::Structure(fields) => Some(fields),
            _ => None,
        })
    }

    pub(super) fn texts(&self, field: u8) -> impl Iterator<Item = &'b [u8]> {
        self.list(field).iter().filter_map(|item| match item {
            Item::Binary(bytes) => Some(*bytes),
            _ => None,
        })
    }

    fn list(&self, field: u8) -> &[Item<'b>] {
        match self.item(field) {
            Some(Item::List(items)) => items,
            _ => &[],
        }
    }
}

impl<'b> Item<'b> {
    fn parsed(bytes: &'b [u8], kind: u8, deepest: usize) -> Option<(Self, &'b [u8])> {
        let deeper = deepest.checked_sub(1)?;
        match kind {
            kind::I32 | kind::I64 => {
                let (number, rest) = varint(bytes)?;
                Some((Self::Number((number >> 1) as i64 ^ -((number & 1) as i64)), rest))
            }
            kind::BINARY => {
                let (length, rest) = varint(bytes)?;
                let (text, rest) = rest.split_at_checked(usize::try_from(length).ok()?)?;
                Some((Self::Binary(text), rest))
            }
            kind::STRUCT => {
                let (fields, rest) = Fields::parsed(bytes, deeper)?;
                Some((Self::Structure(fields), rest))
            }
            kind::LIST => {
                let (&head, mut rest) = bytes.split_first()?;
                let mut number = u64::from(head >> 4);
                if number == 15 {
                    (number, rest) = varint(rest)?;
                }
                let mut items = Vec::new();
                // Each item has a byte at least.
                for _ in 0..number {
                    let (item, after) = Self::parsed(rest, head & 0xF, deeper)?;
                    items.push(item);
                    rest = after;
                }
                Some((Self::List(items), rest))
            }
            _ => None,
        }
    }
}

/// The bytes of a structure that `fill` writes.
pub(super) fn filled(fill: impl FnOnce(&mut Structure)) -> Vec<u8> {
    let mut structure = Structure::default();
    fill(&mut structure);
    structure.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_are_those_of_the_compact_protocol() {
        let bytes = filled(|of| {
            of.i32(1, -1);
            of.text(4, "ab");
            of.structure(5, |inner| inner.i64(2, 300));
            of.numbers(6, &[0; 16]);
        });
        let expected = [&[0x15, 1, 0x38, 2, b'a', b'b', 0x1C, 0x26, 0xD8, 0x04, 0, 0x19, 0xF5, 16][..], &[0; 16], &[0]];
        assert_eq!(bytes, expected.concat());
    }
}
