//! Description of a class in the recording: names of fields and constants.

use clr_profiler::Token;
use clr_profiler::metadata::MetadataImport;
use clr_profiler::metadata::signature::{self, Type};

use super::primitives::primitive_kind;
use super::{MOST_CONSTANTS, MOST_FIELDS};
use crate::kinds::{Field, Form, Kind, Shape};

/// The names in the description of a class in the recording.
#[derive(Default)]
pub(crate) struct Names {
    /// Name to show instead of the class's own name.
    pub(crate) name: Option<String>,
    pub(super) is_value: bool,
    pub(super) fields: Vec<String>,
    pub(super) types: Vec<String>,
    pub(super) constants: Vec<(String, u64)>,
}

impl Names {
    /// The field with this name, and the name of its type.
    pub(crate) fn field(&self, name: &str, shape: &Shape) -> Option<(String, Field)> {
        let at = self.fields.iter().position(|field| field == name)?;
        Some((self.types.get(at)?.clone(), *shape.fields.get(at)?))
    }

    /// Replaces the names of fields by those that a task shows.
    pub(crate) fn become_task(&mut self, result: Option<String>) {
        self.fields = ["Status".to_owned()].into_iter().chain(result.as_ref().map(|_| "Result".to_owned())).collect();
        self.types = ["System.Threading.Tasks.TaskStatus".to_owned()].into_iter().chain(result).collect();
    }
}

/// A field together with its name and the name of its type.
pub(crate) struct Member {
    pub(crate) name: String,
    pub(crate) type_name: String,
    /// Offset from the beginning of the object or value.
    pub(crate) offset: u32,
    pub(crate) kind: Kind,
    /// Whether the value must never be read.
    pub(crate) is_hidden: bool,
}

pub(super) fn value_end(fields: &[Field]) -> u32 {
    fields.iter().map(|field| field.offset + field.kind.size()).max().unwrap_or(1)
}

/// Turns the only field of an inline array into numbered elements. The field is declared once, and
/// repeats in memory.
pub(super) fn repeat(shape: &mut Shape, names: &mut Names) {
    let count = shape.repeats().min(MOST_FIELDS as u32);
    if let ([field], [ty]) = (shape.fields.as_slice(), names.types.as_slice())
        && count > 1
    {
        let (field, ty) = (*field, ty.clone());
        let at = |number: u32| Field { offset: field.offset + number * field.kind.size(), ..field };
        shape.fields = (0..count).map(at).collect();
        names.fields = (0..count).map(|number| format!("[{number}]")).collect();
        names.types = vec![ty; count as usize];
    }
}

pub(super) fn enumeration(metadata: &MetadataImport, token: Token, names: &mut Names) -> Shape {
    let mut form = Form::Enum { bytes: 4, signed: true };
    for field in metadata.fields(token).unwrap_or_default() {
        let Ok(field) = metadata.field(field) else { continue };
        if !field.is_static() {
            let underlying = signature::field(&field.signature).ok();
            let kind = underlying.and_then(|ty| match ty {
                Type::Primitive(primitive) => primitive_kind(primitive),
                _ => None,
            });
            form = match kind {
                Some(Kind::Int(bytes)) => Form::Enum { bytes, signed: true },
                Some(Kind::UInt(bytes)) => Form::Enum { bytes, signed: false },
                _ => form,
            };
        } else if field.is_literal() && field.constant_address != 0 && names.constants.len() < MOST_CONSTANTS {
            let bytes: usize = match field.constant_type {
                0x02 | 0x04 | 0x05 => 1,
                0x03 | 0x06 | 0x07 => 2,
                0x0a | 0x0b => 8,
                _ => 4,
            };
            let mut raw = [0; 8];
            // SAFETY: the metadata holds a constant of that type at this address while the module
            // is loaded.
            unsafe {
                std::ptr::copy_nonoverlapping(field.constant_address as *const u8, raw.as_mut_ptr(), bytes);
            }
            let unused = 64 - bytes as u32 * 8;
            let is_signed = matches!(field.constant_type, 0x04 | 0x06 | 0x08 | 0x0a);
            let raw = u64::from_le_bytes(raw);
            let number = if is_signed { (((raw << unused) as i64) >> unused) as u64 } else { raw };
            names.constants.push((field.name, number));
        }
    }
    let size = if let Form::Enum { bytes, .. } = form { u32::from(bytes) } else { 4 };
    Shape { form, size, ..Shape::default() }
}
