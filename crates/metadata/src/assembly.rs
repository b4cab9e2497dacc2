//! An assembly: its types, methods and members, and the locations of their code and lines.

use crate::image::Image;
use crate::{Blob, Damaged, Table, Tables};

/// Largest depth to which nested types and references between types are followed.
pub(crate) const DEPTH: usize = 16;

/// Kinds of entries of the debug directory. Source: the specification of portable PDBs.
const CODE_VIEW: u32 = 2;
const EMBEDDED_PDB: u32 = 17;

/// An assembly and its bytes.
#[derive(Clone, Debug)]
pub struct Assembly {
    pub(crate) data: Vec<u8>,
    pub(crate) tables: Tables,
    image: Image,
}

/// Field that an instruction refers to.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct FieldFact {
    /// Name of the field.
    pub name: String,
    /// Name of the field's type, see [`Assembly::type_name`].
    pub type_name: String,
    /// The type that declares the field, if it is in this assembly.
    pub owner: Option<u32>,
}

/// Method that an instruction refers to.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct MemberFact {
    /// Name of the method.
    pub name: String,
    /// Name of the type that declares the method, see [`Assembly::type_name`].
    pub owner: String,
}

/// Row of a token, if the token belongs to the table.
pub(crate) fn row_of(token: u32, table: Table) -> Option<u32> {
    (token >> 24 == u32::from(table.0)).then_some(token & 0x00ff_ffff)
}

impl Assembly {
    /// Parses an assembly from the bytes of its file.
    ///
    /// # Errors
    /// [`Damaged`]: the bytes are not a PE image with managed code, or the metadata can't be read.
    pub fn read(data: Vec<u8>) -> Result<Self, Damaged> {
        let image = Image::read(&data).ok_or(Damaged)?;
        let tables = Tables::read(&data, image.metadata(&data).ok_or(Damaged)?)?;
        if tables.is_indirect() { Err(Damaged) } else { Ok(Self { data, tables, image }) }
    }

    /// Number of rows of a table.
    #[must_use]
    pub fn count(&self, table: Table) -> u32 {
        self.tables.count(table)
    }

    /// Id of this build of the module (MVID).
    #[must_use]
    pub fn mvid(&self) -> Option<[u8; 16]> {
        self.tables.guid(&self.data, Table::MODULE, 1, 2)
    }

    /// Simple name of the assembly; empty if the file has no manifest.
    #[must_use]
    pub fn name(&self) -> &str {
        self.tables.text(&self.data, Table::ASSEMBLY, 1, 7).unwrap_or_default()
    }

    /// Token of a program's entry point; `None` for a library.
    #[must_use]
    pub fn entry_point(&self) -> Option<u32> {
        self.image.entry_point(&self.data).filter(|token| *token != 0)
    }

    /// Id of the PDB that was built with the assembly, and the path to which the compiler wrote the
    /// PDB.
    #[must_use]
    pub fn pdb_id(&self) -> Option<([u8; 16], &str)> {
        let mut entries = self.image.debug_entries(&self.data).filter(|(kind, _)| *kind == CODE_VIEW);
        entries.find_map(|(_, content)| {
            let content = content.strip_prefix(b"RSDS")?;
            let path = content.get(20..)?;
            let length = path.iter().position(|byte| *byte == 0).unwrap_or(path.len());
            Some((*content.first_chunk()?, std::str::from_utf8(&path[..length]).unwrap_or_default()))
        })
    }

    /// The embedded PDB; `None` if there is none or it is longer than `most` bytes.
    #[must_use]
    pub fn embedded_pdb(&self, most: u64) -> Option<Vec<u8>> {
        let (_, content) = self.image.debug_entries(&self.data).find(|(kind, _)| *kind == EMBEDDED_PDB)?;
        let (size, packed) = content.strip_prefix(b"MPDB")?.split_first_chunk::<4>()?;
        let size = u64::from(u32::from_le_bytes(*size)).min(most);
        miniz_oxide::inflate::decompress_to_vec_with_limit(packed, usize::try_from(size).ok()?).ok()
    }

    /// Name of a method, without its type.
    #[must_use]
    pub fn method_name(&self, row: u32) -> &str {
        self.tables.text(&self.data, Table::METHOD_DEF, row, 3).unwrap_or_default()
    }

    /// Signature of a method.
    #[must_use]
    pub fn method_signature(&self, row: u32) -> &[u8] {
        self.tables.blob(&self.data, Table::METHOD_DEF, row, 4).unwrap_or_default()
    }

    /// Bytes from the start of a method's body to the end of the file. The body has the form that
    /// `clr-il` reads, with header and sections. `None` for methods without IL.
    #[must_use]
    pub fn code_from(&self, row: u32) -> Option<&[u8]> {
        let address = self.tables.get(&self.data, Table::METHOD_DEF, row, 0).filter(|address| *address != 0)?;
        // Native, runtime and other non-IL methods have no IL.
        let is_il = self.tables.get(&self.data, Table::METHOD_DEF, row, 1)? & 7 == 0;
        self.data.get(self.image.file_offset(address).filter(|_| is_il)?..)
    }

    /// Row of the type that declares a method.
    #[must_use]
    pub fn type_of_method(&self, row: u32) -> Option<u32> {
        self.owner(5, row)
    }

    /// Row of the type that declares a field.
    #[must_use]
    pub fn type_of_field(&self, row: u32) -> Option<u32> {
        self.owner(4, row)
    }

    /// The type whose list of methods or fields contains a row; `column` gives the start of that
    /// list.
    fn owner(&self, column: usize, row: u32) -> Option<u32> {
        let next = self.tables.lower_bound(&self.data, Table::TYPE_DEF, column, row.checked_add(1)?);
        next.checked_sub(1).filter(|owner| *owner > 0)
    }

    /// Rows of a type's methods.
    #[must_use]
    pub fn methods_of(&self, type_row: u32) -> std::ops::Range<u32> {
        self.members(5, type_row, self.count(Table::METHOD_DEF))
    }

    fn members(&self, column: usize, type_row: u32, count: u32) -> std::ops::Range<u32> {
        let start =
            |row| self.tables.get(&self.data, Table::TYPE_DEF, row, column).map(|start| start.clamp(1, count + 1));
        let Some(first) = start(type_row) else { return 0..0 };
        first..start(type_row + 1).unwrap_or(count + 1).max(first)
    }

    /// Row of the type that encloses a nested type.
    #[must_use]
    pub fn enclosing_type(&self, type_row: u32) -> Option<u32> {
        let at = self.tables.lower_bound(&self.data, Table::NESTED_CLASS, 0, type_row);
        let nested = self.tables.get(&self.data, Table::NESTED_CLASS, at, 0)?;
        if nested == type_row { self.tables.get(&self.data, Table::NESTED_CLASS, at, 1) } else { None }
    }

    /// A type and its enclosing types, starting with the type itself.
    pub fn with_enclosing(&self, type_row: u32) -> impl Iterator<Item = u32> {
        std::iter::successors(Some(type_row), |row| self.enclosing_type(*row)).take(DEPTH)
    }

    /// Names of the interfaces that a type implements directly, see [`type_name`](Self::type_name).
    pub fn interfaces(&self, type_row: u32) -> impl Iterator<Item = String> {
        let first = self.tables.lower_bound(&self.data, Table::INTERFACE_IMPL, 0, type_row);
        let rows = (first..)
            .take_while(move |row| self.tables.get(&self.data, Table::INTERFACE_IMPL, *row, 0) == Some(type_row));
        rows.filter_map(|row| self.tables.token(&self.data, Table::INTERFACE_IMPL, row, 1))
            .map(|token| self.type_name(token))
    }

    /// Field that the token in an instruction refers to; `None` for other tokens.
    #[must_use]
    pub fn field(&self, token: u32) -> Option<FieldFact> {
        let (data, tables) = (&self.data[..], &self.tables);
        if let Some(row) = row_of(token, Table::FIELD) {
            let signature = tables.blob(data, Table::FIELD, row, 2)?;
            let name = tables.text(data, Table::FIELD, row, 1)?.to_owned();
            return Some(FieldFact { name, type_name: self.field_type(signature), owner: self.type_of_field(row) });
        }
        let row = row_of(token, Table::MEMBER_REF)?;
        let owner = tables.token(data, Table::MEMBER_REF, row, 0).map(|parent| self.definition_of(parent));
        Some(FieldFact {
            name: tables.text(data, Table::MEMBER_REF, row, 1)?.to_owned(),
            type_name: self.field_type(tables.blob(data, Table::MEMBER_REF, row, 2)?),
            owner: owner.and_then(|token| row_of(token, Table::TYPE_DEF)),
        })
    }

    /// Method that the token in an instruction refers to; `None` for other tokens.
    #[must_use]
    pub fn method(&self, token: u32) -> Option<MemberFact> {
        let (data, tables) = (&self.data[..], &self.tables);
        let token = match row_of(token, Table::METHOD_SPEC) {
            Some(row) => tables.token(data, Table::METHOD_SPEC, row, 0)?,
            None => token,
        };
        if let Some(row) = row_of(token, Table::METHOD_DEF) {
            let owner = self.type_of_method(row).map(|row| self.type_name(Table::TYPE_DEF.token(row)));
            return Some(MemberFact { name: self.method_name(row).to_owned(), owner: owner.unwrap_or_default() });
        }
        let row = row_of(token, Table::MEMBER_REF)?;
        let owner = tables.token(data, Table::MEMBER_REF, row, 0).map(|parent| self.type_name(parent));
        let name = tables.text(data, Table::MEMBER_REF, row, 1)?.to_owned();
        Some(MemberFact { name, owner: owner.unwrap_or_default() })
    }

    /// Token of the type definition of a constructed type; other tokens are returned unchanged.
    pub(crate) fn definition_of(&self, token: u32) -> u32 {
        let Some(row) = row_of(token, Table::TYPE_SPEC) else { return token };
        let mut blob = Blob::new(self.tables.blob(&self.data, Table::TYPE_SPEC, row, 0).unwrap_or_default());
        // A generic class or value type with its arguments.
        let definition = match (blob.byte(), blob.byte()) {
            (Some(0x15), Some(0x11 | 0x12)) => blob.type_token(),
            _ => None,
        };
        definition.filter(|token| row_of(*token, Table::TYPE_SPEC).is_none()).unwrap_or(token)
    }
}
