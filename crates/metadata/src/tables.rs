//! Metadata: streams, heaps and tables. Source: ECMA-335, II.24.

use crate::Damaged;
use crate::schema::{Column, TABLES, columns};

/// A metadata table, identified by its number in tokens.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Table(pub u8);

impl Table {
    /// Modules; the table has one row.
    pub const MODULE: Self = Self(0x00);
    /// References to types of other modules.
    pub const TYPE_REF: Self = Self(0x01);
    /// Types.
    pub const TYPE_DEF: Self = Self(0x02);
    /// Fields.
    pub const FIELD: Self = Self(0x04);
    /// Methods.
    pub const METHOD_DEF: Self = Self(0x06);
    /// Interfaces that types implement.
    pub const INTERFACE_IMPL: Self = Self(0x09);
    /// References to members of other types.
    pub const MEMBER_REF: Self = Self(0x0a);
    /// Custom attributes.
    pub const CUSTOM_ATTRIBUTE: Self = Self(0x0c);
    /// Stand-alone signatures: of local variables and of `calli` instructions.
    pub const SIGNATURE: Self = Self(0x11);
    /// Properties of types.
    pub const PROPERTY: Self = Self(0x17);
    /// Accessors: which methods belong to which properties and events.
    pub const METHOD_SEMANTICS: Self = Self(0x18);
    /// Constructed types.
    pub const TYPE_SPEC: Self = Self(0x1b);
    /// The assembly, if the module contains its manifest.
    pub const ASSEMBLY: Self = Self(0x20);
    /// References to other assemblies.
    pub const ASSEMBLY_REF: Self = Self(0x23);
    /// Types that this assembly forwards to another one.
    pub const EXPORTED_TYPE: Self = Self(0x27);
    /// Nested types.
    pub const NESTED_CLASS: Self = Self(0x29);
    /// Generic parameters.
    pub const GENERIC_PARAM: Self = Self(0x2a);
    /// Generic methods with type arguments.
    pub const METHOD_SPEC: Self = Self(0x2b);
    /// Source files.
    pub const DOCUMENT: Self = Self(0x30);
    /// Lines of methods.
    pub const METHOD_DEBUG_INFORMATION: Self = Self(0x31);
    /// Methods of state machines, each with its source method.
    pub const STATE_MACHINE_METHOD: Self = Self(0x36);
    /// Additional compiler information about documents, methods and others.
    pub const CUSTOM_DEBUG_INFORMATION: Self = Self(0x37);

    /// Token of a row.
    #[must_use]
    pub const fn token(self, row: u32) -> u32 {
        (self.0 as u32) << 24 | row
    }
}

/// A part of the bytes.
#[derive(Clone, Copy, Default, Debug)]
struct Part {
    start: usize,
    length: usize,
}

impl Part {
    fn slice<'d>(&self, data: &'d [u8]) -> &'d [u8] {
        data.get(self.start..).and_then(|rest| rest.get(..self.length)).unwrap_or_default()
    }
}

/// Position of the rows of one table.
#[derive(Clone, Debug, Default)]
struct Rows {
    start: usize,
    count: u32,
    /// Offset in the row and width of each column.
    columns: Vec<(usize, usize)>,
    length: usize,
}

/// Heaps and tables of metadata. The bytes themselves are passed to each query.
#[derive(Clone, Debug)]
pub struct Tables {
    strings: Part,
    guids: Part,
    blobs: Part,
    pdb: Option<Part>,
    tables: Vec<Rows>,
}

fn half(data: &[u8], at: usize) -> Option<u16> {
    data.get(at..)?.first_chunk().map(|bytes| u16::from_le_bytes(*bytes))
}

fn word(data: &[u8], at: usize) -> Option<u32> {
    data.get(at..)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes))
}

fn long(data: &[u8], at: usize) -> Option<u64> {
    data.get(at..)?.first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
}

/// Maximum number of streams to examine.
const MOST_STREAMS: u16 = 64;

impl Tables {
    /// Reads the metadata that begins at offset `start` of `data`.
    ///
    /// # Errors
    /// [`Damaged`].
    pub fn read(data: &[u8], start: usize) -> Result<Self, Damaged> {
        Self::parse(data, start).ok_or(Damaged)
    }

    fn parse(data: &[u8], start: usize) -> Option<Self> {
        if word(data, start)? != 0x424a_5342 {
            return None;
        }
        let version = word(data, start.checked_add(12)?)? as usize;
        let streams = start.checked_add(16)?.checked_add(version)?.checked_add(2)?;
        let mut at = streams.checked_add(2)?;
        let mut tables = Self {
            strings: Part::default(),
            guids: Part::default(),
            blobs: Part::default(),
            pdb: None,
            tables: vec![],
        };
        let mut rows = None;
        for _ in 0..half(data, streams)?.min(MOST_STREAMS) {
            let (offset, length) = (word(data, at)? as usize, word(data, at + 4)? as usize);
            let name = data.get(at + 8..)?;
            let name = name.get(..name.iter().take(32).position(|byte| *byte == 0)?)?;
            at = at + 8 + (name.len() + 1).next_multiple_of(4);
            let part = Part { start: start.checked_add(offset)?, length };
            match name {
                b"#Strings" => tables.strings = part,
                b"#GUID" => tables.guids = part,
                b"#Blob" => tables.blobs = part,
                b"#Pdb" => tables.pdb = Some(part),
                b"#~" => rows = Some(part),
                _ => {}
            }
        }
        tables.tables = read_rows(data, rows?, tables.pdb.and_then(|part| referenced_rows(part.slice(data))))?;
        Some(tables)
    }

    /// Number of rows of a table.
    #[must_use]
    pub fn count(&self, table: Table) -> u32 {
        self.tables.get(usize::from(table.0)).map_or(0, |rows| rows.count)
    }

    /// Whether rows of a table are reached through another table, as never in released assemblies.
    #[must_use]
    pub fn is_indirect(&self) -> bool {
        [0x03, 0x05].iter().any(|table| self.count(Table(*table)) > 0)
    }

    /// A column's number in a row; rows are numbered from 1.
    #[must_use]
    pub fn get(&self, data: &[u8], table: Table, row: u32, column: usize) -> Option<u32> {
        let rows = self.tables.get(usize::from(table.0))?;
        let (offset, width) = *rows.columns.get(column)?;
        let number = row.checked_sub(1).filter(|number| *number < rows.count)?;
        let at = rows.start + number as usize * rows.length + offset;
        match width {
            2 => half(data, at).map(u32::from),
            _ => word(data, at),
        }
    }

    /// A column's coded row reference as a token; `None` for row 0.
    #[must_use]
    pub fn token(&self, data: &[u8], table: Table, row: u32, column: usize) -> Option<u32> {
        let Column::Coded(coding) = *columns(table.0)?.get(column)? else { return None };
        let coded = self.get(data, table, row, column)?;
        let target = *coding.tables.get((coded & ((1 << coding.bits) - 1)) as usize)?;
        let row = coded >> coding.bits;
        (row != 0 && target != 0xff).then(|| Table(target).token(row))
    }

    /// A column's text; empty if it is not UTF-8.
    #[must_use]
    pub fn text<'d>(&self, data: &'d [u8], table: Table, row: u32, column: usize) -> Option<&'d str> {
        let start = self.get(data, table, row, column)? as usize;
        let rest = self.strings.slice(data).get(start..)?;
        let length = rest.iter().position(|byte| *byte == 0)?;
        Some(std::str::from_utf8(&rest[..length]).unwrap_or_default())
    }

    /// A column's blob.
    #[must_use]
    pub fn blob<'d>(&self, data: &'d [u8], table: Table, row: u32, column: usize) -> Option<&'d [u8]> {
        self.blob_at(data, self.get(data, table, row, column)?)
    }

    /// The blob at an offset in the blob heap.
    #[must_use]
    pub fn blob_at<'d>(&self, data: &'d [u8], place: u32) -> Option<&'d [u8]> {
        crate::Blob::new(self.blobs.slice(data).get(place as usize..)?).counted()
    }

    /// A column's GUID.
    #[must_use]
    pub fn guid(&self, data: &[u8], table: Table, row: u32, column: usize) -> Option<[u8; 16]> {
        let number = (self.get(data, table, row, column)? as usize).checked_sub(1)?;
        self.guids.slice(data).get(number.checked_mul(16)?..)?.first_chunk().copied()
    }

    /// The id of a portable PDB.
    pub(crate) fn pdb_id(&self, data: &[u8]) -> Option<[u8; 16]> {
        self.pdb?.slice(data).first_chunk().copied()
    }

    /// Number of the first row whose column is at least `wanted`, or the number of rows plus 1. The
    /// table must be sorted by the column.
    #[must_use]
    pub fn lower_bound(&self, data: &[u8], table: Table, column: usize, wanted: u32) -> u32 {
        let (mut low, mut high) = (1, self.count(table) + 1);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.get(data, table, middle, column).is_some_and(|value| value < wanted) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        low
    }
}

/// Rows of the tables that a PDB does not hold but refers to.
fn referenced_rows(pdb: &[u8]) -> Option<[u32; TABLES]> {
    let present = long(pdb, 24)?;
    let mut counts = [0; TABLES];
    for (number, table) in (0..TABLES).filter(|table| present >> table & 1 != 0).enumerate() {
        counts[table] = word(pdb, 32 + number * 4)?;
    }
    Some(counts)
}

fn read_rows(data: &[u8], part: Part, referenced: Option<[u32; TABLES]>) -> Option<Vec<Rows>> {
    let stream = part.slice(data);
    let heaps = *stream.get(6)?;
    let present = long(stream, 8)?;
    let mut counts = [0; TABLES];
    let mut at = 24;
    for (_, count) in counts.iter_mut().enumerate().filter(|(table, _)| present >> table & 1 != 0) {
        *count = word(stream, at)?;
        at += 4;
    }
    // An extra number that no column describes.
    at += if heaps & 0x40 == 0 { 0 } else { 4 };
    let mut known = referenced.unwrap_or([0; TABLES]);
    known.iter_mut().zip(counts).for_each(|(known, count)| *known = (*known).max(count));
    let width = |column: &Column| {
        let large = match *column {
            Column::Half => false,
            Column::Word => true,
            Column::Text => heaps & 1 != 0,
            Column::Guid => heaps & 2 != 0,
            Column::Blob => heaps & 4 != 0,
            Column::Row(table) => known[usize::from(table)] > 0xffff,
            Column::Coded(coding) => {
                let counts = coding.tables.iter().filter_map(|table| known.get(usize::from(*table)));
                counts.max().is_some_and(|most| *most > 0xffff >> coding.bits)
            }
        };
        if large { 4 } else { 2 }
    };
    let mut tables = Vec::with_capacity(TABLES);
    for (table, count) in counts.into_iter().enumerate() {
        if count == 0 {
            tables.push(Rows::default());
            continue;
        }
        let mut rows = Rows { start: part.start + at, count, columns: Vec::new(), length: 0 };
        for width in columns(table as u8)?.iter().map(width) {
            rows.columns.push((rows.length, width));
            rows.length += width;
        }
        at = at.checked_add(rows.length.checked_mul(count as usize)?)?;
        if at > stream.len() {
            return None;
        }
        tables.push(rows);
    }
    Some(tables)
}
