//! Columns of all tables. Sources: ECMA-335, II.22 and II.24.2.6; the specification of portable
//! PDBs.

/// Kind of a column, which determines its width.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Column {
    /// A number of two bytes.
    Half,
    /// A number of four bytes.
    Word,
    /// Offset in the string heap.
    Text,
    /// Index in the GUID heap.
    Guid,
    /// Offset in the blob heap.
    Blob,
    /// Row of a table.
    Row(u8),
    /// Row of one of several tables, selected by the lower bits.
    Coded(&'static Coding),
}

/// The tables of a coded index.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Coding {
    /// Number of lower bits that select the table.
    pub(crate) bits: u32,
    /// Tables by the value of these bits; 0xff where a value is unused.
    pub(crate) tables: &'static [u8],
}

impl Coding {
    /// Encodes a row of a table; `None` if this coding does not include the table, or there is no
    /// such row.
    pub(crate) fn coded(&self, table: u8, row: u32) -> Option<u32> {
        let place = self.tables.iter().position(|of| *of == table)?;
        let coded = row.checked_shl(self.bits)? | u32::try_from(place).ok()?;
        (coded >> self.bits == row).then_some(coded)
    }
}

const fn coding(bits: u32, tables: &'static [u8]) -> Coding {
    Coding { bits, tables }
}

const TYPE_DEF_OR_REF: Coding = coding(2, &[0x02, 0x01, 0x1b]);
const MEMBER_REF_PARENT: Coding = coding(3, &[0x02, 0x01, 0x1a, 0x06, 0x1b]);
const METHOD_DEF_OR_REF: Coding = coding(1, &[0x06, 0x0a]);
const CUSTOM_ATTRIBUTE_TYPE: Coding = coding(3, &[0xff, 0xff, 0x06, 0x0a, 0xff]);
const HAS_SEMANTICS: Coding = coding(1, &[0x14, 0x17]);
const RESOLUTION_SCOPE: Coding = coding(2, &[0x00, 0x1a, 0x23, 0x01]);
const TYPE_OR_METHOD_DEF: Coding = coding(1, &[0x02, 0x06]);
const HAS_CONSTANT: Coding = coding(2, &[0x04, 0x08, 0x17]);
const HAS_FIELD_MARSHAL: Coding = coding(1, &[0x04, 0x08]);
const HAS_DECL_SECURITY: Coding = coding(2, &[0x02, 0x06, 0x20]);
const MEMBER_FORWARDED: Coding = coding(1, &[0x04, 0x06]);
const IMPLEMENTATION: Coding = coding(2, &[0x26, 0x23, 0x27]);
pub(crate) const HAS_CUSTOM_ATTRIBUTE: Coding = coding(
    5,
    &[
        0x06, 0x04, 0x01, 0x02, 0x08, 0x09, 0x0a, 0x00, 0x0e, 0x17, 0x14, 0x11, 0x1a, 0x1b, 0x20, 0x23, 0x26, 0x27,
        0x28, 0x2a, 0x2c, 0x2b,
    ],
);
pub(crate) const HAS_CUSTOM_DEBUG_INFORMATION: Coding = coding(
    5,
    &[
        0x06, 0x04, 0x01, 0x02, 0x08, 0x09, 0x0a, 0x00, 0x0e, 0x17, 0x14, 0x11, 0x1a, 0x1b, 0x20, 0x23, 0x26, 0x27,
        0x28, 0x2a, 0x2c, 0x2b, 0x30, 0x32, 0x33, 0x34, 0x35,
    ],
);

/// Maximum number of tables.
pub(crate) const TABLES: usize = 64;

/// Columns of a table; `None` for an unknown table number.
pub(crate) const fn columns(table: u8) -> Option<&'static [Column]> {
    use Column::{Blob, Coded, Guid, Half, Row, Text, Word};
    Some(match table {
        0x00 => &[Half, Text, Guid, Guid, Guid],
        0x01 => &[Coded(&RESOLUTION_SCOPE), Text, Text],
        0x02 => &[Word, Text, Text, Coded(&TYPE_DEF_OR_REF), Row(0x04), Row(0x06)],
        0x03 => &[Row(0x04)],
        0x04 => &[Half, Text, Blob],
        0x05 => &[Row(0x06)],
        0x06 => &[Word, Half, Half, Text, Blob, Row(0x08)],
        0x07 => &[Row(0x08)],
        0x08 => &[Half, Half, Text],
        0x09 => &[Row(0x02), Coded(&TYPE_DEF_OR_REF)],
        0x0a => &[Coded(&MEMBER_REF_PARENT), Text, Blob],
        0x0b => &[Half, Coded(&HAS_CONSTANT), Blob],
        0x0c => &[Coded(&HAS_CUSTOM_ATTRIBUTE), Coded(&CUSTOM_ATTRIBUTE_TYPE), Blob],
        0x0d => &[Coded(&HAS_FIELD_MARSHAL), Blob],
        0x0e => &[Half, Coded(&HAS_DECL_SECURITY), Blob],
        0x0f => &[Half, Word, Row(0x02)],
        0x10 => &[Word, Row(0x04)],
        0x11 => &[Blob],
        0x12 => &[Row(0x02), Row(0x14)],
        0x13 => &[Row(0x14)],
        0x14 => &[Half, Text, Coded(&TYPE_DEF_OR_REF)],
        0x15 => &[Row(0x02), Row(0x17)],
        0x16 => &[Row(0x17)],
        0x17 => &[Half, Text, Blob],
        0x18 => &[Half, Row(0x06), Coded(&HAS_SEMANTICS)],
        0x19 => &[Row(0x02), Coded(&METHOD_DEF_OR_REF), Coded(&METHOD_DEF_OR_REF)],
        0x1a => &[Text],
        0x1b => &[Blob],
        0x1c => &[Half, Coded(&MEMBER_FORWARDED), Text, Row(0x1a)],
        0x1d => &[Word, Row(0x04)],
        0x1e => &[Word, Word],
        0x1f => &[Word],
        0x20 => &[Word, Half, Half, Half, Half, Word, Blob, Text, Text],
        0x21 => &[Word],
        0x22 => &[Word, Word, Word],
        0x23 => &[Half, Half, Half, Half, Word, Blob, Text, Text, Blob],
        0x24 => &[Word, Row(0x23)],
        0x25 => &[Word, Word, Word, Row(0x23)],
        0x26 => &[Word, Text, Blob],
        0x27 => &[Word, Word, Text, Text, Coded(&IMPLEMENTATION)],
        0x28 => &[Word, Word, Text, Coded(&IMPLEMENTATION)],
        0x29 => &[Row(0x02), Row(0x02)],
        0x2a => &[Half, Half, Coded(&TYPE_OR_METHOD_DEF), Text],
        0x2b => &[Coded(&METHOD_DEF_OR_REF), Blob],
        0x2c => &[Row(0x2a), Coded(&TYPE_DEF_OR_REF)],
        0x30 => &[Blob, Guid, Blob, Guid],
        0x31 => &[Row(0x30), Blob],
        0x32 => &[Row(0x06), Row(0x35), Row(0x33), Row(0x34), Word, Word],
        0x33 => &[Half, Half, Text],
        0x34 => &[Text, Blob],
        0x35 => &[Row(0x35), Blob],
        0x36 => &[Row(0x06), Row(0x06)],
        0x37 => &[Coded(&HAS_CUSTOM_DEBUG_INFORMATION), Guid, Blob],
        _ => return None,
    })
}
