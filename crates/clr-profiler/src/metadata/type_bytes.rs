//! Encodes types as bytes of a signature.

use clr_il::append_number;

use super::signature::{Primitive, Type};
use crate::Token;

impl Type {
    /// The bytes of the type in a signature (ECMA-335, II.23.2.12), as
    /// [`type_spec`](super::signature::type_spec) reads them; `None` if this value lacks data for
    /// the encoding: arrays of several dimensions have bounds, and function pointers and type
    /// handles of the runtime do not occur in type specifications.
    #[must_use]
    pub fn to_bytes(&self) -> Option<Vec<u8>> {
        let mut bytes = Vec::new();
        write(self, &mut bytes)?;
        Some(bytes)
    }
}

impl Primitive {
    /// The element type of the primitive.
    #[must_use]
    pub fn element_type(self) -> u8 {
        (0..=0x1c).find(|element| Self::from_element_type(*element) == Some(self)).unwrap_or_default()
    }
}

fn write(ty: &Type, bytes: &mut Vec<u8>) -> Option<()> {
    match ty {
        Type::Primitive(primitive) => bytes.push(primitive.element_type()),
        Type::Named { token, is_value } => named(*token, *is_value, bytes)?,
        Type::Generic { token, is_value, arguments } => {
            bytes.push(0x15);
            named(*token, *is_value, bytes)?;
            append_number(bytes, arguments.len() as u32);
            arguments.iter().try_for_each(|argument| write(argument, bytes))?;
        }
        Type::TypeParameter(parameter) => {
            bytes.push(0x13);
            append_number(bytes, *parameter);
        }
        Type::MethodParameter(parameter) => {
            bytes.push(0x1e);
            append_number(bytes, *parameter);
        }
        Type::Vector(element) => within(0x1d, element, bytes)?,
        Type::Pointer(target) => within(0x0f, target, bytes)?,
        Type::ByRef(target) => within(0x10, target, bytes)?,
        Type::Array { .. } | Type::FunctionPointer(_) | Type::Internal(_) => return None,
    }
    Some(())
}

fn within(element_type: u8, inner: &Type, bytes: &mut Vec<u8>) -> Option<()> {
    bytes.push(element_type);
    write(inner, bytes)
}

/// Writes a class or value type by its token: the row number, and two bits for the table.
fn named(token: Token, is_value: bool, bytes: &mut Vec<u8>) -> Option<()> {
    let table = match token.table() {
        Token::TYPE_DEF => 0,
        Token::TYPE_REF => 1,
        Token::TYPE_SPEC => 2,
        _ => return None,
    };
    bytes.push(if is_value { 0x11 } else { 0x12 });
    append_number(bytes, (token.as_raw() & 0x00ff_ffff) << 2 | table);
    Some(())
}

#[cfg(test)]
mod tests {
    use super::super::signature::type_spec;
    use super::*;

    #[test]
    fn types_are_read_as_they_were_written() {
        let named = |token, is_value| Type::Named { token: Token::new(token), is_value };
        let all = [
            Type::TypeParameter(0),
            Type::TypeParameter(127),
            Type::MethodParameter(128),
            Type::MethodParameter(20_000),
            named(0x0200_0003, true),
            named(0x0100_4321, false),
            named(0x1b12_3456, false),
            Type::Vector(Box::new(Type::Primitive(Primitive::String))),
            Type::ByRef(Box::new(Type::Pointer(Box::new(Type::Primitive(Primitive::NUInt))))),
            Type::Generic {
                token: Token::new(0x0200_1234),
                is_value: true,
                arguments: vec![Type::TypeParameter(0), Type::Primitive(Primitive::Int), named(0x0100_0001, true)],
            },
        ];
        for ty in all {
            assert_eq!(type_spec(&ty.to_bytes().expect("bytes")).as_ref(), Ok(&ty));
        }
        for element in 0..=0xff {
            if let Some(primitive) = Primitive::from_element_type(element) {
                assert_eq!(primitive.element_type(), element);
            }
        }
    }

    #[test]
    fn what_is_not_all_known_has_no_bytes() {
        let array = Type::Array { element: Box::new(Type::Primitive(Primitive::Int)), rank: 2 };
        assert_eq!(array.to_bytes(), None);
        assert_eq!(Type::Vector(Box::new(array)).to_bytes(), None);
        assert_eq!(Type::Named { token: Token::new(0x0600_0001), is_value: false }.to_bytes(), None);
    }
}
