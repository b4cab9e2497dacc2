//! Descriptions of events: names, and the fields of their payload.

use crate::Error;
use crate::wire::Reader;

/// Maximum depth of nested objects in a description; deeper descriptions are errors.
const DEEPEST: u32 = 8;

/// The stream's description of one kind of event.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct EventDescription {
    /// The provider, such as `System.Runtime`.
    pub provider: String,
    /// The provider's number for the event.
    pub id: u32,
    /// Name of the event; empty if the provider identifies its events by number only.
    pub name: String,
    /// Bit mask of the groups that the event belongs to.
    pub keywords: u64,
    /// Version of the payload.
    pub version: u32,
    /// Level: 1 critical to 5 verbose.
    pub level: u32,
    /// Fields of the payload; empty if the provider does not describe them, or if some are arrays.
    pub fields: Vec<Field>,
}

/// A field of a payload.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Field {
    /// Name of the field.
    pub name: String,
    /// Kind of the field.
    pub kind: FieldType,
}

/// Type of a field in the payload.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum FieldType {
    /// A Boolean in four bytes.
    Boolean,
    /// A UTF-16 code unit.
    Char,
    /// A signed integer with this number of bytes.
    Signed(u8),
    /// An unsigned integer with this number of bytes.
    Unsigned(u8),
    /// A floating-point number of four bytes.
    Single,
    /// A floating-point number of eight bytes.
    Double,
    /// Ticks of 100 ns since the year 1.
    DateTime,
    /// A GUID of 16 bytes.
    Guid,
    /// A text that ends with a zero.
    Text,
    /// Other fields, one after another.
    Object(Vec<Field>),
}

impl EventDescription {
    /// Reads a description. Returns its number in the stream with it.
    pub(super) fn parse(payload: &[u8]) -> Result<(u32, Self), Error> {
        let mut reader = Reader(payload);
        let number = reader.u32()?;
        let mut description = Self {
            provider: reader.zero_terminated()?,
            id: reader.u32()?,
            name: reader.zero_terminated()?,
            keywords: reader.u64()?,
            version: reader.u32()?,
            level: reader.u32()?,
            fields: Vec::new(),
        };
        // If a field has an unknown type, such as an array, the description has no fields.
        description.fields = fields(&mut reader, 0)?.unwrap_or_default();
        Ok((number, description))
    }
}

/// Reads the descriptions of fields; `None` if the type of one is unknown.
fn fields(reader: &mut Reader<'_>, depth: u32) -> Result<Option<Vec<Field>>, Error> {
    if depth > DEEPEST {
        return Err(Error::nonsense("fields within fields without end"));
    }
    let count = reader.u32()?;
    let mut fields_read = Vec::new();
    for _ in 0..count {
        let kind = match reader.u32()? {
            1 => match fields(reader, depth + 1)? {
                Some(inner) => FieldType::Object(inner),
                None => return Ok(None),
            },
            3 => FieldType::Boolean,
            4 => FieldType::Char,
            5 => FieldType::Signed(1),
            6 => FieldType::Unsigned(1),
            7 => FieldType::Signed(2),
            8 => FieldType::Unsigned(2),
            9 => FieldType::Signed(4),
            10 => FieldType::Unsigned(4),
            11 => FieldType::Signed(8),
            12 => FieldType::Unsigned(8),
            13 => FieldType::Single,
            14 => FieldType::Double,
            16 => FieldType::DateTime,
            17 => FieldType::Guid,
            18 => FieldType::Text,
            _ => return Ok(None),
        };
        fields_read.push(Field { name: reader.zero_terminated()?, kind });
    }
    Ok(Some(fields_read))
}
