//! Parquet files: the part of the format that plain tables need. Columns are 64-bit numbers, texts
//! or maps from texts to texts, and no value is ever null. Texts, and numbers that repeat, are
//! stored as dictionary indices, other numbers as they are. Pages are compressed with Zstandard.

use std::collections::HashMap;
use std::io::{self, Write};
use std::rc::Rc;

use clrscope_analysis::one_line;
use clrscope_recording::varint::put;

use super::thrift::{Structure, filled};

/// Maximum number of rows in a row group.
const MOST_ROWS: usize = 20_000;
/// Bytes of texts that end a row group: the largest amount in memory at once.
const MOST_TEXT: usize = 1 << 20;
/// A file starts and ends with these bytes.
pub(super) const MAGIC: &[u8] = b"PAR1";

/// The numbers that the format uses for types, encodings and the like.
pub(super) mod code {
    pub(in super::super) const INT64: i32 = 2;
    pub(in super::super) const BYTE_ARRAY: i32 = 6;
    pub(in super::super) const REQUIRED: i32 = 0;
    pub(in super::super) const REPEATED: i32 = 2;
    pub(in super::super) const UTF8: i32 = 0;
    pub(in super::super) const MAP: i32 = 1;
    pub(in super::super) const PLAIN: i32 = 0;
    pub(in super::super) const RLE: i32 = 3;
    pub(in super::super) const RLE_DICTIONARY: i32 = 8;
    pub(in super::super) const ZSTD: i32 = 6;
    pub(in super::super) const DATA_PAGE: i32 = 0;
    pub(in super::super) const DICTIONARY_PAGE: i32 = 2;
}

/// Kind of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A number.
    Number,
    /// A text.
    Text,
    /// A map from texts to texts.
    Map,
}

/// A value of a row.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Value<'v> {
    /// A number; one above the format's maximum is stored as the maximum.
    Number(u64),
    /// A text.
    Text(&'v str),
    /// A map: keys with their values.
    Map(&'v [(String, String)]),
}

/// Values of one column in a row group.
enum Values {
    Numbers(Vec<u64>),
    Texts(Texts),
    /// The number of entries of each row, and all keys and values.
    Maps {
        entries: Vec<usize>,
        keys: Texts,
        values: Texts,
    },
}

/// Texts as indices into a dictionary.
#[derive(Default)]
struct Texts {
    numbers: Vec<u32>,
    known: HashMap<Rc<str>, u32>,
    all: Vec<Rc<str>>,
}

/// A column of the format, ready to be written.
struct Leaf<'n> {
    path: &'n [&'n str],
    kind: i32,
    /// Number of values; an empty map counts as one.
    entries: usize,
    /// Number of entries of the dictionary, and its page.
    dictionary: Option<(usize, Vec<u8>)>,
    page: Vec<u8>,
}

/// Writes a table.
pub(crate) struct Table<'o> {
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
    /// Begins a table with these columns.
    pub(crate) fn begin(out: &'o mut dyn Write, columns: Vec<(&'static str, Kind)>) -> io::Result<Self> {
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
    pub(crate) fn row<'v>(&mut self, row: impl IntoIterator<Item = Value<'v>>) -> io::Result<()> {
        for (values, value) in self.values.iter_mut().zip(row) {
            self.text += values.push(value);
        }
        self.rows += 1;
        if self.rows >= MOST_ROWS || self.text >= MOST_TEXT { self.write_group() } else { Ok(()) }
    }

    /// Ends the file.
    pub(crate) fn end(mut self) -> io::Result<()> {
        if self.rows > 0 {
            self.write_group()?;
        }
        let root = filled(|of| {
            of.text(4, "schema");
            of.i32(5, self.columns.len() as i32);
        });
        let columns = self.columns.iter().flat_map(|(name, kind)| elements(name, *kind));
        let schema: Vec<Vec<u8>> = std::iter::once(root).chain(columns).collect();
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
            let (flat, key, value) = ([name], [name, ENTRY, KEY], [name, ENTRY, VALUE]);
            for leaf in leaves([&flat, &key, &value], &values) {
                let chunk = self.write_chunk(&leaf)?;
                bytes += chunk.1;
                chunks.push(chunk.0);
            }
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
    fn write_chunk(&mut self, leaf: &Leaf<'_>) -> io::Result<(Vec<u8>, u64)> {
        let start = self.written;
        let mut raw = 0;
        if let Some((number, page)) = &leaf.dictionary {
            raw += self.write_page(code::DICTIONARY_PAGE, page, |head| {
                head.structure(7, |of| {
                    of.i32(1, *number as i32);
                    of.i32(2, code::PLAIN);
                });
            })?;
        }
        let data = self.written;
        let is_indexed = leaf.dictionary.is_some();
        raw += self.write_page(code::DATA_PAGE, &leaf.page, |head| {
            head.structure(5, |of| {
                of.i32(1, leaf.entries as i32);
                of.i32(2, if is_indexed { code::RLE_DICTIONARY } else { code::PLAIN });
                of.i32(3, code::RLE);
                of.i32(4, code::RLE);
            });
        })?;
        let stored = self.written - start;
        let described = filled(|of| {
            of.i64(2, start as i64);
            of.structure(3, |of| {
                of.i32(1, leaf.kind);
                let is_nested = leaf.path.len() > 1;
                of.numbers(
                    2,
                    match (is_indexed, is_nested) {
                        (true, _) => &[code::PLAIN, code::RLE, code::RLE_DICTIONARY],
                        (false, true) => &[code::PLAIN, code::RLE],
                        (false, false) => &[code::PLAIN],
                    },
                );
                of.texts(3, leaf.path);
                of.i32(4, code::ZSTD);
                of.i64(5, leaf.entries as i64);
                of.i64(6, raw as i64);
                of.i64(7, stored as i64);
                of.i64(9, data as i64);
                if is_indexed {
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

/// Names of the parts of a map.
pub(super) const ENTRY: &str = "key_value";
pub(super) const KEY: &str = "key";
pub(super) const VALUE: &str = "value";

/// The elements of the schema for a column.
fn elements(name: &str, kind: Kind) -> Vec<Vec<u8>> {
    let leaf = |name: &str, kind: i32| {
        filled(|of| {
            of.i32(1, kind);
            of.i32(3, code::REQUIRED);
            of.text(4, name);
            if kind == code::BYTE_ARRAY {
                of.i32(6, code::UTF8);
            }
        })
    };
    let group = |name: &str, repetition: i32, children: i32, meaning: Option<i32>| {
        filled(|of| {
            of.i32(3, repetition);
            of.text(4, name);
            of.i32(5, children);
            if let Some(meaning) = meaning {
                of.i32(6, meaning);
            }
        })
    };
    match kind {
        Kind::Number => vec![leaf(name, code::INT64)],
        Kind::Text => vec![leaf(name, code::BYTE_ARRAY)],
        Kind::Map => vec![
            group(name, code::REQUIRED, 1, Some(code::MAP)),
            group(ENTRY, code::REPEATED, 2, None),
            leaf(KEY, code::BYTE_ARRAY),
            leaf(VALUE, code::BYTE_ARRAY),
        ],
    }
}

/// The columns of the format for the values of a column: one, or the keys and the values of a map.
fn leaves<'n>([path, key, value]: [&'n [&'n str]; 3], values: &Values) -> Vec<Leaf<'n>> {
    match values {
        Values::Numbers(numbers) => vec![of_numbers(path, numbers)],
        Values::Texts(texts) => vec![texts.leaf(path, Vec::new(), texts.numbers.len())],
        Values::Maps { entries, keys, values } => {
            let levels = levels(entries);
            let number = entries.iter().map(|of| (*of).max(1)).sum();
            vec![keys.leaf(key, levels.clone(), number), values.leaf(value, levels, number)]
        }
    }
}

fn of_numbers<'n>(path: &'n [&'n str], numbers: &[u64]) -> Leaf<'n> {
    let plain = |numbers: &[u64]| numbers.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>();
    let (mut known, mut all) = (HashMap::new(), Vec::new());
    let index = |number: &u64| {
        *known.entry(*number).or_insert_with(|| {
            all.push(*number);
            all.len() as u32 - 1
        })
    };
    let indices: Vec<u32> = numbers.iter().map(index).collect();
    let repeats = all.len() <= numbers.len() / 2;
    let (dictionary, page) = match repeats {
        true => (Some((all.len(), plain(&all))), packed(&indices, all.len())),
        false => (None, plain(numbers)),
    };
    Leaf { path, kind: code::INT64, entries: numbers.len(), dictionary, page }
}

/// Repetition and definition levels of maps: whether an entry goes on with the map before it, and
/// whether there is an entry at all.
fn levels(entries: &[usize]) -> Vec<u8> {
    let (mut repeats, mut defined) = (Vec::new(), Vec::new());
    for number in entries {
        for at in 0..(*number).max(1) {
            repeats.push(u32::from(at > 0));
            defined.push(u32::from(*number > 0));
        }
    }
    let mut bytes = Vec::new();
    for levels in [repeats, defined] {
        let run = bit_packed(&levels, 1);
        bytes.extend((run.len() as u32).to_le_bytes());
        bytes.extend(run);
    }
    bytes
}

impl Texts {
    /// Adds a text. Returns its bytes if it is new to the dictionary.
    fn push(&mut self, text: &str) -> usize {
        let Self { numbers, known, all } = self;
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

    /// The column, with levels in front of its values.
    fn leaf<'n>(&self, path: &'n [&'n str], levels: Vec<u8>, entries: usize) -> Leaf<'n> {
        let mut leaf = Leaf { path, kind: code::BYTE_ARRAY, entries, dictionary: None, page: levels };
        // A dictionary has entries: readers differ about empty ones.
        if !self.all.is_empty() {
            let mut page = Vec::new();
            for text in &self.all {
                page.extend_from_slice(&(text.len() as u32).to_le_bytes());
                page.extend_from_slice(text.as_bytes());
            }
            leaf.dictionary = Some((self.all.len(), page));
            leaf.page.extend(packed(&self.numbers, self.all.len()));
        }
        leaf
    }
}

impl Values {
    fn new(kind: Kind) -> Self {
        match kind {
            Kind::Number => Self::Numbers(Vec::new()),
            Kind::Text => Self::Texts(Texts::default()),
            Kind::Map => Self::Maps { entries: Vec::new(), keys: Texts::default(), values: Texts::default() },
        }
    }

    /// Adds a value. Returns the bytes of texts that are new to the dictionary.
    fn push(&mut self, value: Value<'_>) -> usize {
        match (self, value) {
            (Self::Numbers(numbers), Value::Number(number)) => {
                numbers.push(number.min(i64::MAX as u64));
                0
            }
            (Self::Texts(texts), Value::Text(text)) => texts.push(text),
            (Self::Maps { entries, keys, values }, Value::Map(map)) => {
                entries.push(map.len());
                map.iter().map(|(key, value)| keys.push(key) + values.push(value)).sum()
            }
            // The modules that fill tables give each column only values of its kind.
            (other, _) => {
                debug_assert!(false, "a value of another kind");
                match other {
                    Self::Numbers(numbers) => numbers.push(0),
                    Self::Texts(texts) => _ = texts.push(""),
                    Self::Maps { entries, .. } => entries.push(0),
                }
                0
            }
        }
    }
}

/// Indices into a dictionary of `texts` entries, as one bit-packed run after the bit width.
fn packed(numbers: &[u32], texts: usize) -> Vec<u8> {
    let width = (u32::BITS - (texts.saturating_sub(1) as u32).leading_zeros()).max(1);
    let mut bytes = vec![width as u8];
    bytes.extend(bit_packed(numbers, width));
    bytes
}

/// Numbers of `width` bits as one bit-packed run.
fn bit_packed(numbers: &[u32], width: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
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

    #[test]
    fn levels_say_where_maps_begin_and_which_are_empty() {
        // Two entries, none, one: four levels each, after their length.
        assert_eq!(levels(&[2, 0, 1]), [2, 0, 0, 0, 3, 0b0010, 2, 0, 0, 0, 3, 0b1011]);
    }
}
