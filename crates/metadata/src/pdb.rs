//! Portable PDBs: documents, lines of methods, and the source methods of state machines. Source:
//! the specification of the format.

use miniz_oxide::inflate::decompress_to_vec_with_limit;

use crate::schema::HAS_CUSTOM_DEBUG_INFORMATION;
use crate::{Blob, Damaged, Table, Tables};

/// Line number of points without source.
const HIDDEN: u32 = 0x00fe_efee;

/// Maximum number of parts in a document's path, and maximum path length in bytes.
const MOST_PARTS: usize = 256;
const MOST_PATH: usize = 32 << 10;

/// Kind of the custom debug information with a document's source:
/// 0E8A571B-6926-466E-B4AD-8AB04611F5FE, in the order of its bytes.
const EMBEDDED_SOURCE: [u8; 16] =
    [0x1b, 0x57, 0x8a, 0x0e, 0x26, 0x69, 0x6e, 0x46, 0xb4, 0xad, 0x8a, 0xb0, 0x46, 0x11, 0xf5, 0xfe];

/// A portable PDB and its bytes.
#[derive(Clone, Debug)]
pub struct Pdb {
    data: Vec<u8>,
    tables: Tables,
}

/// A range of source text and the code compiled from it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SequencePoint {
    /// Offset of the range's first instruction, from the first instruction of the method.
    pub il_offset: u32,
    /// Row in the document table, for the range.
    pub document: u32,
    /// First line, from 1; 0 for hidden points, whose code has no source.
    pub start_line: u32,
    /// First column, from 1.
    pub start_column: u32,
    /// Last line of the range.
    pub end_line: u32,
    /// Column after the last column.
    pub end_column: u32,
}

impl SequencePoint {
    /// Whether the code from this point on has no source.
    #[must_use]
    pub const fn is_hidden(&self) -> bool {
        self.start_line == 0
    }
}

impl Pdb {
    /// Reads a portable PDB.
    ///
    /// # Errors
    /// [`Damaged`] if the bytes are not a portable PDB, for example a PDB in Windows' own format.
    pub fn read(data: Vec<u8>) -> Result<Self, Damaged> {
        let tables = Tables::read(&data, 0)?;
        if tables.pdb_id(&data).is_some() { Ok(Self { data, tables }) } else { Err(Damaged) }
    }

    /// Id that the PDB shares with its assembly, see [`Assembly::pdb_id`](crate::Assembly::pdb_id).
    #[must_use]
    pub fn id(&self) -> Option<[u8; 16]> {
        self.tables.pdb_id(&self.data)
    }

    /// Number of documents; their rows begin with 1.
    #[must_use]
    pub fn documents(&self) -> u32 {
        self.tables.count(Table::DOCUMENT)
    }

    /// Number of method rows, with or without lines; rows begin with 1.
    #[must_use]
    pub fn methods(&self) -> u32 {
        self.tables.count(Table::METHOD_DEBUG_INFORMATION)
    }

    /// Path of a document, as passed to the compiler.
    #[must_use]
    pub fn document(&self, row: u32) -> Option<String> {
        let mut name = Blob::new(self.tables.blob(&self.data, Table::DOCUMENT, row, 0)?);
        let separator = name.byte()?;
        let mut path = Vec::new();
        for part in 0..MOST_PARTS {
            if name.is_empty() {
                break;
            }
            if part > 0 && separator != 0 {
                path.push(separator);
            }
            let place = name.unsigned()?;
            let bytes = if place == 0 { &[][..] } else { self.tables.blob_at(&self.data, place)? };
            path.extend_from_slice(bytes);
            if path.len() > MOST_PATH {
                return None;
            }
        }
        String::from_utf8(path).ok()
    }

    /// Source text that the compiler embedded for a document; `None` if there is none or it is
    /// longer than `most` bytes. The output of source generators exists nowhere else.
    #[must_use]
    pub fn embedded_source(&self, row: u32, most: usize) -> Option<Vec<u8>> {
        const OF: Table = Table::CUSTOM_DEBUG_INFORMATION;
        let parent = HAS_CUSTOM_DEBUG_INFORMATION.coded(Table::DOCUMENT.0, row)?;
        let first = self.tables.lower_bound(&self.data, OF, 0, parent);
        let of_document = |at: &u32| self.tables.get(&self.data, OF, *at, 0) == Some(parent);
        let mut entries = (first..=self.tables.count(OF)).take_while(of_document);
        let entry = entries.find(|at| self.tables.guid(&self.data, OF, *at, 1) == Some(EMBEDDED_SOURCE))?;
        let (size, content) = self.tables.blob(&self.data, OF, entry, 2)?.split_first_chunk::<4>()?;
        // A size of 0 means that the text is not compressed.
        match u32::from_le_bytes(*size) as usize {
            0 => (content.len() <= most).then(|| content.to_vec()),
            size => decompress_to_vec_with_limit(content, size.min(most)).ok(),
        }
    }

    /// Sequence points of the method with this row, by ascending offset; empty if the method has
    /// none or they are damaged.
    #[must_use]
    pub fn sequence_points(&self, method: u32) -> Vec<SequencePoint> {
        self.points(method).unwrap_or_default()
    }

    fn points(&self, method: u32) -> Option<Vec<SequencePoint>> {
        let blob = self.tables.blob(&self.data, Table::METHOD_DEBUG_INFORMATION, method, 1)?;
        let mut blob = Blob::new(blob);
        if blob.is_empty() {
            return None;
        }
        blob.unsigned()?;
        let mut document = self.tables.get(&self.data, Table::METHOD_DEBUG_INFORMATION, method, 0)?;
        if document == 0 {
            document = blob.unsigned()?;
        }
        let mut points: Vec<SequencePoint> = Vec::new();
        let (mut il_offset, mut start) = (0_u32, None);
        while !blob.is_empty() {
            let distance = blob.unsigned()?;
            if distance == 0 && !points.is_empty() {
                document = blob.unsigned()?;
                continue;
            }
            il_offset = il_offset.checked_add(distance)?;
            points.push(read_point(&mut blob, il_offset, document, &mut start)?);
        }
        Some(points)
    }

    /// Methods of state machines: pairs of the state machine's method and its source method, as
    /// rows.
    pub fn state_machines(&self) -> impl Iterator<Item = (u32, u32)> {
        let rows = 1..=self.tables.count(Table::STATE_MACHINE_METHOD);
        let column = |row, column| self.tables.get(&self.data, Table::STATE_MACHINE_METHOD, row, column);
        rows.filter_map(move |row| Some((column(row, 0)?, column(row, 1)?)))
    }

    /// Row of the source method of a state machine's method.
    #[must_use]
    pub fn kickoff(&self, method: u32) -> Option<u32> {
        let at = self.tables.lower_bound(&self.data, Table::STATE_MACHINE_METHOD, 0, method);
        let found = self.tables.get(&self.data, Table::STATE_MACHINE_METHOD, at, 0)?;
        if found == method { self.tables.get(&self.data, Table::STATE_MACHINE_METHOD, at, 1) } else { None }
    }
}

/// Reads one point; `start` is the line and column of the last visible one.
fn read_point(
    blob: &mut Blob<'_>,
    il_offset: u32,
    document: u32,
    start: &mut Option<(u32, u32)>,
) -> Option<SequencePoint> {
    let lines = blob.unsigned()?;
    let columns = if lines == 0 { blob.unsigned()?.cast_signed() } else { blob.signed()? };
    if lines == 0 && columns == 0 {
        let hidden = SequencePoint { il_offset, document, start_line: 0, start_column: 0, end_line: 0, end_column: 0 };
        return Some(hidden);
    }
    let (line, column) = match *start {
        None => (blob.unsigned()?, blob.unsigned()?),
        Some((line, column)) => (line.checked_add_signed(blob.signed()?)?, column.checked_add_signed(blob.signed()?)?),
    };
    *start = Some((line, column));
    // Older compilers mark hidden points by the line number.
    let line = if line == HIDDEN { 0 } else { line };
    let end_line = if line == 0 { 0 } else { line.checked_add(lines)? };
    let end_column = column.checked_add_signed(columns)?;
    Some(SequencePoint { il_offset, document, start_line: line, start_column: column, end_line, end_column })
}
