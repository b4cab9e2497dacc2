//! Parquet files: the part of the format that plain tables need. Columns are 64-bit numbers or
//! texts, and no value is ever null. Numbers are stored plain, texts as dictionary indices, and
//! pages are compressed with Zstandard.

use std::collections::HashMap;
use std::io::{self, Write};
use std::rc::Rc;

use clrscope_analysis::one_line;
use clrscope_recording::varint::put;

use super::thrift::{Structure, filled};

/// Greatest number of rows in a row group.
const MOST_ROWS: usize = 20_000;
/// Bytes of texts that end a row group: the greatest amount in memory at once.
const MOST_TEXT: usize = 1 << 20;
/// A file starts and ends with these bytes.
const MAGIC: &[u8] = b"PAR1";

/// The format's numbers for types, encodings and the like.
mod code {
    pub(super) const INT64: i32 = 2;
    pub(super) const BYTE_ARRAY: i32 = 6;
    pub(super) const REQUIRED: i32 = 0;
    pub(super) const UTF8: i32 = 0;
    pub(super) const PLAIN: i32 = 0;
    pub(super) const RLE: i32 = 3;
    pub(super) const RLE_DICTIONARY: i32 = 8;
    pub(super) const ZSTD: i32 = 6;
    pub(super) const DATA_PAGE: i32 = 0;
    pub(super) const DICTIONARY_PAGE: i32 = 2;
}

/// Kind of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A number.
    Number,
    /// A text.
    Text,
}

/// A value of a row.
#[derive(Debug, Clone, Copy)]
pub(super) enum Value<'v> {
    /// A number; values above the format's maximum are stored as the maximum.
    Number(u64),
    /// A text.
    Text(&'v str),
}

/// Values of one column in a row group.
enum Values {
    Numbers(Vec<u64>),
    Texts { numbers: Vec<u32>, known: HashMap<Rc<str>, u32>, all: Vec<Rc<str>> },
}

/// Writes a table.
pub(super) struct Table<'o> {
    out: &'o mut dyn Write,
    columns: Vec<(&'static str, Kind)>,
    values: Vec<Values>,
    rows: usize,
    /// Bytes of the texts in the current row group.
    text: usize,
    written: u64,
    groups: Vec<Vec<u8>>,
    all_rows: u64,
}

impl<'o> Table<'o> {
    /// A table with these columns.
    pub(super) fn begin(out: &'o mut dyn Write, columns: Vec<(&'static str, Kind)>) -> io::Result<Self> {
        out.write_all(MAGIC)?;
        let values = columns.iter().map(|(_, kind)| Values::new(*kind)).collect();
        Ok(Self {
            out,
            columns,
            values,
            rows: 0,
            text: 0,
            written: MAGIC.len() as u64,
            groups: Vec::new(),
            all_rows: 0,
        })
    }

    /// Adds a row: a value for each column.
    pub(super) fn row<'v>(&mut self, row: impl IntoIterator<Item = Value<'v>>) -> io::Result<()> {
        for (values, value) in self.values.iter_mut().zip(row) {
            self.text += values.push(value);
        }
        self.rows += 1;
        if self.rows >= MOST_ROWS || self.text >= MOST_TEXT { self.write_group() } else { Ok(()) }
    }

    /// Ends the file.
    pub(super) fn end(mut self) -> io::Result<()> {
        if self.rows > 0 {
            self.write_group()?;
        }
        let root = filled(|of| {
            of.text(4, "schema");
            of.i32(5, self.columns.len() as i32);
        });
        let column = |&(name, kind): &(&str, Kind)| {
            filled(|of| {
                of.i32(1, kind.code());
                of.i32(3, code::REQUIRED);
                of.text(4, name);
                if kind == Kind::Text {
                    of.i32(6, code::UTF8);
                }
            })
        };
        let schema: Vec<Vec<u8>> = std::iter::once(root).chain(self.columns.iter().map(column)).collect();
        let foot = filled(|of| {
            of.i32(1, 1);
            of.structures(2, schema.into_iter());
            of.i64(3, self.all_rows as i64);
            of.structures(4, std::mem::take(&mut self.groups).into_iter());
            of.text(6, concat!("clrscope version ", env!("CARGO_PKG_VERSION")));
        });
        self.out.write_all(&foot)?;
        self.out.write_all(&(foot.len() as u32).to_le_bytes())?;
        self.out.write_all(MAGIC)
    }

    fn write_group(&mut self) -> io::Result<()> {
        let (mut chunks, mut bytes) = (Vec::new(), 0_u64);
        for (at, values) in std::mem::take(&mut self.values).into_iter().enumerate() {
            let (name, kind) = self.columns[at];
            let chunk = self.write_chunk(name, kind, &values)?;
            bytes += chunk.1;
            chunks.push(chunk.0);
            self.values.push(Values::new(kind));
        }
        let rows = std::mem::take(&mut self.rows);
        self.all_rows += rows as u64;
        self.text = 0;
        self.groups.push(filled(|of| {
            of.structures(1, chunks.into_iter());
            of.i64(2, bytes as i64);
            of.i64(3, rows as i64);
        }));
        Ok(())
    }

    /// Writes the pages of a column. Returns its description, and its size in bytes before
    /// compression.
    fn write_chunk(&mut self, name: &str, kind: Kind, values: &Values) -> io::Result<(Vec<u8>, u64)> {
        let start = self.written;
        let mut raw = 0;
        if let Values::Texts { all, .. } = values {
            let mut page = Vec::new();
            for text in all {
                page.extend_from_slice(&(text.len() as u32).to_le_bytes());
                page.extend_from_slice(text.as_bytes());
            }
            raw += self.write_page(code::DICTIONARY_PAGE, &page, |head| {
                head.structure(7, |of| {
                    of.i32(1, all.len() as i32);
                    of.i32(2, code::PLAIN);
                });
            })?;
        }
        let data = self.written;
        let (encoding, page) = match values {
            Values::Numbers(numbers) => (code::PLAIN, numbers.iter().flat_map(|number| number.to_le_bytes()).collect()),
            Values::Texts { numbers, all, .. } => (code::RLE_DICTIONARY, packed(numbers, all.len())),
        };
        let rows = self.rows as i32;
        raw += self.write_page(code::DATA_PAGE, &page, |head| {
            head.structure(5, |of| {
                of.i32(1, rows);
                of.i32(2, encoding);
                of.i32(3, code::RLE);
                of.i32(4, code::RLE);
            });
        })?;
        let stored = self.written - start;
        let described = filled(|of| {
            of.i64(2, start as i64);
            of.structure(3, |of| {
                of.i32(1, kind.code());
                of.numbers(2, if kind == Kind::Text { &[code::PLAIN, code::RLE_DICTIONARY] } else { &[code::PLAIN] });
                of.texts(3, &[name]);
                of.i32(4, code::ZSTD);
                of.i64(5, rows.into());
                of.i64(6, raw as i64);
                of.i64(7, stored as i64);
                of.i64(9, data as i64);
                if kind == Kind::Text {
                    of.i64(11, start as i64);
                }
            });
        });
        Ok((described, raw))
    }

    /// Writes a page header and the page. Returns the size of both in bytes before compression.
    fn write_page(&mut self, kind: i32, page: &[u8], describe: impl FnOnce(&mut Structure)) -> io::Result<u64> {
        let stored = zstd::bulk::compress(page, 3)?;
        let head = filled(|head| {
            head.i32(1, kind);
            head.i32(2, page.len() as i32);
            head.i32(3, stored.len() as i32);
            describe(head);
        });
        self.out.write_all(&head)?;
        self.out.write_all(&stored)?;
        self.written += (head.len() + stored.len()) as u64;
        Ok((head.len() + page.len()) as u64)
    }
}

impl Kind {
    const fn code(self) -> i32 {
        match self {
            Self::Number => code::INT64,
            Self::Text => code::BYTE_ARRAY,
        }
    }
}

impl Values {
    fn new(kind: Kind) -> Self {
        match kind {
            Kind::Number => Self::Numbers(Vec::new()),
            Kind::Text => Self::Texts { numbers: Vec::new(), known: HashMap::new(), all: Vec::new() },
        }
    }

    /// Adds a value. Returns the bytes of a text that is new to the dictionary.
    fn push(&mut self, value: Value<'_>) -> usize {
        match (self, value) {
            (Self::Numbers(numbers), Value::Number(number)) => {
                numbers.push(number.min(i64::MAX as u64));
                0
            }
            (Self::Texts { numbers, known, all }, Value::Text(text)) => {
                if let Some(&number) = known.get(text) {
                    numbers.push(number);
                    return 0;
                }
                let number = all.len() as u32;
                numbers.push(number);
                // Control characters are escaped, as in all text that a terminal may show.
                let stored: Rc<str> = one_line(text).into();
                let key = if *stored == *text { Rc::clone(&stored) } else { text.into() };
                all.push(stored);
                known.insert(key, number);
                text.len()
            }
            // The sibling modules give each column only values of its kind.
            (Self::Numbers(numbers), Value::Text(_)) => {
                debug_assert!(false, "a text among numbers");
                numbers.push(0);
                0
            }
            (texts @ Self::Texts { .. }, Value::Number(number)) => texts.push(Value::Text(&number.to_string())),
        }
    }
}

/// Indices into a dictionary of `texts` entries, as one bit-packed run after the bit width.
fn packed(numbers: &[u32], texts: usize) -> Vec<u8> {
    let width = (u32::BITS - (texts.saturating_sub(1) as u32).leading_zeros()).max(1);
    let mut bytes = vec![width as u8];
    let groups = numbers.len().div_ceil(8);
    put(&mut bytes, (groups as u64) << 1 | 1);
    let (mut bits, mut held) = (0_u64, 0);
    for number in numbers.iter().copied().chain(std::iter::repeat_n(0, groups * 8 - numbers.len())) {
        bits |= u64::from(number) << held;
        held += width;
        while held >= 8 {
            bytes.push(bits as u8);
            bits >>= 8;
            held -= 8;
        }
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_packed_from_the_lowest_bit_on() {
        // The example from the format's documentation: 0 to 7 with three bits each.
        assert_eq!(packed(&[0, 1, 2, 3, 4, 5, 6, 7], 8), [3, 3, 0x88, 0xC6, 0xFA]);
        assert_eq!(packed(&[0, 0], 1), [1, 3, 0]);
        assert_eq!(packed(&[1; 9], 2), [1, 5, 0xFF, 1]);
    }
}
