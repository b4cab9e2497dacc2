//! As much of an assembly's file as leads to its methods. Source: ECMA-335, II.24 and II.25.

/// Tables that are asked for, by their numbers.
pub(crate) const METHOD_DEF: usize = 0x06;
pub(crate) const MEMBER_REF: usize = 0x0a;
pub(crate) const STAND_ALONE_SIG: usize = 0x11;
pub(crate) const METHOD_SPEC: usize = 0x2b;

/// A column of a table.
#[derive(Clone, Copy)]
enum Column {
    /// Bytes of a plain number.
    Fixed(usize),
    Strings,
    Guids,
    Blobs,
    /// A row of a table.
    Row(usize),
    /// A row of one of several tables, told apart by so many bits.
    Coded(u32, &'static [usize]),
}

use Column::{Blobs, Coded, Fixed, Guids, Row, Strings};

const TYPE_DEF_OR_REF: Column = Coded(2, &[0x02, 0x01, 0x1b]);
const HAS_CONSTANT: Column = Coded(2, &[0x04, 0x08, 0x17]);
const HAS_ATTRIBUTE: Column = Coded(
    5,
    &[
        0x06, 0x04, 0x01, 0x02, 0x08, 0x09, 0x0a, 0x00, 0x0e, 0x17, 0x14, 0x11, 0x1a, 0x1b, 0x20, 0x23, 0x26, 0x27,
        0x28, 0x2a, 0x2c, 0x2b,
    ],
);
const HAS_MARSHAL: Column = Coded(1, &[0x04, 0x08]);
const HAS_SECURITY: Column = Coded(2, &[0x02, 0x06, 0x20]);
const MEMBER_PARENT: Column = Coded(3, &[0x02, 0x01, 0x1a, 0x06, 0x1b]);
const HAS_SEMANTICS: Column = Coded(1, &[0x14, 0x17]);
const METHOD: Column = Coded(1, &[0x06, 0x0a]);
const FORWARDED: Column = Coded(1, &[0x04, 0x06]);
const IMPLEMENTATION: Column = Coded(2, &[0x26, 0x23, 0x27]);
const ATTRIBUTE_TYPE: Column = Coded(3, &[0x06, 0x0a]);
const SCOPE: Column = Coded(2, &[0x00, 0x1a, 0x23, 0x01]);
const OWNER: Column = Coded(1, &[0x02, 0x06]);

/// Columns of the tables up to the last that is asked for.
const TABLES: [&[Column]; 0x2c] = [
    &[Fixed(2), Strings, Guids, Guids, Guids],
    &[SCOPE, Strings, Strings],
    &[Fixed(4), Strings, Strings, TYPE_DEF_OR_REF, Row(0x04), Row(0x06)],
    &[Row(0x04)],
    &[Fixed(2), Strings, Blobs],
    &[Row(0x06)],
    &[Fixed(4), Fixed(2), Fixed(2), Strings, Blobs, Row(0x08)],
    &[Row(0x08)],
    &[Fixed(2), Fixed(2), Strings],
    &[Row(0x02), TYPE_DEF_OR_REF],
    &[MEMBER_PARENT, Strings, Blobs],
    &[Fixed(2), HAS_CONSTANT, Blobs],
    &[HAS_ATTRIBUTE, ATTRIBUTE_TYPE, Blobs],
    &[HAS_MARSHAL, Blobs],
    &[Fixed(2), HAS_SECURITY, Blobs],
    &[Fixed(2), Fixed(4), Row(0x02)],
    &[Fixed(4), Row(0x04)],
    &[Blobs],
    &[Row(0x02), Row(0x14)],
    &[Row(0x14)],
    &[Fixed(2), Strings, TYPE_DEF_OR_REF],
    &[Row(0x02), Row(0x17)],
    &[Row(0x17)],
    &[Fixed(2), Strings, Blobs],
    &[Fixed(2), Row(0x06), HAS_SEMANTICS],
    &[Row(0x02), METHOD, METHOD],
    &[Strings],
    &[Blobs],
    &[Fixed(2), FORWARDED, Strings, Row(0x1a)],
    &[Fixed(4), Row(0x04)],
    &[Fixed(4), Fixed(4)],
    &[Fixed(4)],
    &[Fixed(4), Fixed(2), Fixed(2), Fixed(2), Fixed(2), Fixed(4), Blobs, Strings, Strings],
    &[Fixed(4)],
    &[Fixed(4), Fixed(4), Fixed(4)],
    &[Fixed(2), Fixed(2), Fixed(2), Fixed(2), Fixed(4), Blobs, Strings, Strings, Blobs],
    &[Fixed(4), Row(0x23)],
    &[Fixed(4), Fixed(4), Fixed(4), Row(0x23)],
    &[Fixed(4), Strings, Blobs],
    &[Fixed(4), Fixed(4), Strings, Strings, IMPLEMENTATION],
    &[Fixed(4), Fixed(4), Strings, IMPLEMENTATION],
    &[Row(0x02), Row(0x02)],
    &[Fixed(2), Fixed(2), OWNER, Strings],
    &[METHOD, Blobs],
];

/// An assembly.
pub(crate) struct Image<'f> {
    file: &'f [u8],
    /// Address, length and place in the file of each section.
    sections: Vec<(usize, usize, usize)>,
    blobs: &'f [u8],
    tables: &'f [u8],
    rows: [usize; 64],
    /// Bytes of indices into strings, guids and blobs.
    heaps: [usize; 3],
    /// Beginnings of the tables.
    starts: [usize; 64],
}

fn number(bytes: &[u8], at: usize, size: usize) -> usize {
    bytes[at..at + size].iter().rev().fold(0, |number, byte| number << 8 | usize::from(*byte))
}

impl<'f> Image<'f> {
    /// Reads the head of a file; panics where it is none of an assembly.
    pub(crate) fn new(file: &'f [u8]) -> Self {
        let head = number(file, 0x3c, 4);
        assert_eq!(&file[head..head + 4], b"PE\0\0");
        let optional = head + 24;
        let directories = optional + if number(file, optional, 2) == 0x20b { 112 } else { 96 };
        let first = optional + number(file, head + 20, 2);
        let sections = (0..number(file, head + 6, 2)).map(|section| {
            let at = first + section * 40;
            (number(file, at + 12, 4), number(file, at + 16, 4), number(file, at + 20, 4))
        });
        let none = [0; 64];
        let sections = sections.collect();
        let mut image = Self { file, sections, blobs: &[], tables: &[], rows: none, heaps: [2; 3], starts: none };
        let clr = image.at(number(file, directories + 14 * 8, 4));
        image.read_metadata(image.at(number(clr, 8, 4)));
        image
    }

    /// The bytes from an address on, to the end of its section.
    pub(crate) fn at(&self, address: usize) -> &'f [u8] {
        let holds = |(start, size, _): &&(usize, usize, usize)| (*start..start + size).contains(&address);
        let (start, size, place) = self.sections.iter().find(holds).expect("an address of the file");
        &self.file[place + address - start..place + size]
    }

    fn read_metadata(&mut self, metadata: &'f [u8]) {
        assert_eq!(&metadata[..4], b"BSJB");
        let mut at = 16 + number(metadata, 12, 4);
        let streams = number(metadata, at + 2, 2);
        at += 4;
        for _ in 0..streams {
            let (start, size) = (number(metadata, at, 4), number(metadata, at + 4, 4));
            let name = &metadata[at + 8..];
            let name = &name[..name.iter().position(|byte| *byte == 0).expect("an end")];
            match name {
                b"#~" => self.tables = &metadata[start..start + size],
                b"#Blob" => self.blobs = &metadata[start..start + size],
                _ => {}
            }
            at += 8 + (name.len() + 1).next_multiple_of(4);
        }
        self.read_tables();
    }

    fn read_tables(&mut self) {
        let flags = self.tables[6];
        self.heaps = [1, 2, 4].map(|flag| if flags & flag == 0 { 2 } else { 4 });
        let present = number(self.tables, 8, 8);
        let mut at = 24;
        for table in (0..64).filter(|table| present >> table & 1 == 1) {
            self.rows[table] = number(self.tables, at, 4);
            at += 4;
        }
        for table in 0..TABLES.len() {
            self.starts[table] = at;
            at += self.rows[table] * self.row_size(table);
        }
    }

    fn size(&self, column: Column) -> usize {
        match column {
            Fixed(size) => size,
            Strings => self.heaps[0],
            Guids => self.heaps[1],
            Blobs => self.heaps[2],
            Row(table) => {
                if self.rows[table] < 1 << 16 {
                    2
                } else {
                    4
                }
            }
            Coded(bits, tables) => {
                let most = tables.iter().map(|table| self.rows[*table]).max().unwrap_or(0);
                if most < 1 << (16 - bits) { 2 } else { 4 }
            }
        }
    }

    fn row_size(&self, table: usize) -> usize {
        TABLES[table].iter().map(|column| self.size(*column)).sum()
    }

    /// Rows of a table.
    pub(crate) fn rows(&self, table: usize) -> usize {
        self.rows[table]
    }

    /// A number of a table, by row from 1 and column from 0.
    pub(crate) fn cell(&self, table: usize, row: usize, column: usize) -> usize {
        assert!((1..=self.rows[table]).contains(&row), "row {row} of table {table:#x}");
        let before: usize = TABLES[table][..column].iter().map(|column| self.size(*column)).sum();
        let at = self.starts[table] + (row - 1) * self.row_size(table) + before;
        number(self.tables, at, self.size(TABLES[table][column]))
    }

    /// The blob at a place of their heap.
    pub(crate) fn blob(&self, at: usize) -> &'f [u8] {
        let blobs = &self.blobs[at..];
        let first = usize::from(blobs[0]);
        let (start, size) = match first >> 5 {
            0..4 => (1, first),
            4 | 5 => (2, (first & 0x3f) << 8 | usize::from(blobs[1])),
            _ => (4, blobs[1..4].iter().fold(first & 0x1f, |size, byte| size << 8 | usize::from(*byte))),
        };
        &blobs[start..start + size]
    }
}
