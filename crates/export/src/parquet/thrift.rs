//! Structures in Thrift's compact protocol, as used in Parquet headers and footers.

use clrscope_recording::varint::{put, zigzag};

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
