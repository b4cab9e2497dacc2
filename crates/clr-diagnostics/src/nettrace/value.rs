//! Values in the payload of an event.

use super::description::{Field, FieldType};
use crate::Error;
use crate::wire::Reader;

/// Value of one field.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// A Boolean.
    Boolean(bool),
    /// A signed integer.
    Signed(i64),
    /// An unsigned integer, a UTF-16 code unit, or ticks of 100 ns since the year 1.
    Unsigned(u64),
    /// A floating-point number.
    Number(f64),
    /// A GUID.
    Guid([u8; 16]),
    /// A text.
    Text(String),
    /// Values of an object's fields with their names.
    Object(Vec<(String, Value)>),
}

impl Value {
    /// The text, if the value is a text.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The value as a number, if it is any kind of number.
    #[must_use]
    pub fn as_number(&self) -> Option<f64> {
        match *self {
            Self::Signed(value) => Some(value as f64),
            Self::Unsigned(value) => Some(value as f64),
            Self::Number(value) => Some(value),
            _ => None,
        }
    }
}

/// Reads the values of all fields.
pub(super) fn read(fields: &[Field], payload: &mut Reader<'_>) -> Result<Vec<(String, Value)>, Error> {
    fields.iter().map(|field| Ok((field.name.clone(), read_one(&field.kind, payload)?))).collect()
}

fn read_one(kind: &FieldType, from: &mut Reader<'_>) -> Result<Value, Error> {
    Ok(match kind {
        FieldType::Boolean => Value::Boolean(from.u32()? != 0),
        FieldType::Char => Value::Unsigned(from.u16()?.into()),
        FieldType::Signed(1) => Value::Signed(from.u8()?.cast_signed().into()),
        FieldType::Signed(2) => Value::Signed(from.u16()?.cast_signed().into()),
        FieldType::Signed(4) => Value::Signed(from.u32()?.cast_signed().into()),
        FieldType::Signed(_) => Value::Signed(from.u64()?.cast_signed()),
        FieldType::Unsigned(1) => Value::Unsigned(from.u8()?.into()),
        FieldType::Unsigned(2) => Value::Unsigned(from.u16()?.into()),
        FieldType::Unsigned(4) => Value::Unsigned(from.u32()?.into()),
        FieldType::Unsigned(_) | FieldType::DateTime => Value::Unsigned(from.u64()?),
        FieldType::Single => Value::Number(f32::from_le_bytes(from.array()?).into()),
        FieldType::Double => Value::Number(f64::from_le_bytes(from.array()?)),
        FieldType::Guid => Value::Guid(from.array()?),
        FieldType::Text => Value::Text(from.zero_terminated()?),
        FieldType::Object(inner) => Value::Object(read(inner, from)?),
    })
}
