//! Signatures: how the metadata encodes the types of methods, fields and instantiations (ECMA-335,
//! II.23.2).
//!
//! ```
//! use clr_profiler::metadata::signature::{self, Primitive, Type};
//!
//! // An instance method that takes a string and gives an int.
//! let parsed = signature::method(&[0x20, 0x01, 0x08, 0x0e])?;
//! assert!(parsed.has_this);
//! assert_eq!(parsed.return_type, Type::Primitive(Primitive::Int));
//! assert_eq!(parsed.parameters, [Type::Primitive(Primitive::String)]);
//! // What is cut or damaged is an error, never a panic.
//! assert!(signature::method(&[0x20, 0x01]).is_err());
//! # Ok::<(), signature::BadSignature>(())
//! ```

use std::fmt;

use crate::Token;

/// Types nested deeper than this are refused: the parser recurses, on stacks that may be small.
const DEPTH: u32 = 24;

/// A type in a signature. Custom modifiers are left out.
#[derive(Clone, PartialEq, Eq, Debug)]
#[expect(clippy::exhaustive_enums, reason = "the forms of types that ECMA-335 has")]
pub enum Type {
    /// A primitive type of the language.
    Primitive(Primitive),
    /// A class or value type by its token (a definition, reference or specification).
    Named {
        /// Token of the type.
        token: Token,
        /// Whether it is a value type.
        is_value: bool,
    },
    /// A generic class or value type with its arguments.
    Generic {
        /// Token of the generic type.
        token: Token,
        /// Whether it is a value type.
        is_value: bool,
        /// The type arguments.
        arguments: Vec<Type>,
    },
    /// A generic parameter of the type, by number.
    TypeParameter(u32),
    /// A generic parameter of the method, by number.
    MethodParameter(u32),
    /// An array with one dimension that starts at 0.
    Vector(Box<Type>),
    /// Any other array.
    Array {
        /// Element type.
        element: Box<Type>,
        /// Number of dimensions.
        rank: u32,
    },
    /// An unmanaged pointer.
    Pointer(Box<Type>),
    /// A managed pointer: `ref`, `in`, `out`.
    ByRef(Box<Type>),
    /// A pointer to a function.
    FunctionPointer(Box<MethodSignature>),
    /// A type handle of the runtime; never in files, only in signatures of dynamic methods.
    Internal(usize),
}

/// A primitive type of the language.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[expect(missing_docs, reason = "the names say it all")]
#[expect(clippy::exhaustive_enums, reason = "the types of the language itself, by ECMA-335")]
pub enum Primitive {
    Void,
    Bool,
    Char,
    SByte,
    Byte,
    Short,
    UShort,
    Int,
    UInt,
    Long,
    ULong,
    Float,
    Double,
    String,
    Object,
    NInt,
    NUInt,
    TypedReference,
}

impl Primitive {
    /// The C# keyword for the type.
    #[must_use]
    pub const fn csharp(self) -> &'static str {
        match self {
            Self::Void => "void",
            Self::Bool => "bool",
            Self::Char => "char",
            Self::SByte => "sbyte",
            Self::Byte => "byte",
            Self::Short => "short",
            Self::UShort => "ushort",
            Self::Int => "int",
            Self::UInt => "uint",
            Self::Long => "long",
            Self::ULong => "ulong",
            Self::Float => "float",
            Self::Double => "double",
            Self::String => "string",
            Self::Object => "object",
            Self::NInt => "nint",
            Self::NUInt => "nuint",
            Self::TypedReference => "System.TypedReference",
        }
    }

    /// The primitive with this element type.
    #[must_use]
    pub const fn from_element_type(element_type: u8) -> Option<Self> {
        Some(match element_type {
            0x01 => Self::Void,
            0x02 => Self::Bool,
            0x03 => Self::Char,
            0x04 => Self::SByte,
            0x05 => Self::Byte,
            0x06 => Self::Short,
            0x07 => Self::UShort,
            0x08 => Self::Int,
            0x09 => Self::UInt,
            0x0a => Self::Long,
            0x0b => Self::ULong,
            0x0c => Self::Float,
            0x0d => Self::Double,
            0x0e => Self::String,
            0x16 => Self::TypedReference,
            0x18 => Self::NInt,
            0x19 => Self::NUInt,
            0x1c => Self::Object,
            _ => return None,
        })
    }
}

/// The signature of a method.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct MethodSignature {
    /// Whether the method has `this`.
    pub has_this: bool,
    /// Whether `this` is the first of the parameters.
    pub explicit_this: bool,
    /// The calling convention, as encoded: 0 managed, 5 variable arguments, 1 to 4 and 9 unmanaged.
    pub convention: u8,
    /// Number of generic parameters of the method itself.
    pub generic_arity: u32,
    /// Return type.
    pub return_type: Type,
    /// Parameter types, without `this`.
    pub parameters: Vec<Type>,
}

/// Error for bytes that are not a valid signature.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct BadSignature {
    /// Offset at which reading stopped.
    pub offset: usize,
}

impl fmt::Display for BadSignature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not a signature from byte {} on", self.offset)
    }
}

impl std::error::Error for BadSignature {}

/// Result of reading a signature.
pub type Result<T> = std::result::Result<T, BadSignature>;

/// Reads the signature of a method, property or function pointer.
///
/// # Errors
/// An error if the bytes are not a valid signature of this kind.
pub fn method(blob: &[u8]) -> Result<MethodSignature> {
    Reader::new(blob).method(0)
}

/// Reads the type of a field.
///
/// # Errors
/// An error if the bytes are not a valid signature of this kind.
pub fn field(blob: &[u8]) -> Result<Type> {
    let mut reader = Reader::new(blob);
    match reader.byte()? & 0x0f {
        0x06 => reader.ty(0),
        _ => Err(reader.bad()),
    }
}

/// Reads a type specification.
///
/// # Errors
/// An error if the bytes are not a valid signature of this kind.
pub fn type_spec(blob: &[u8]) -> Result<Type> {
    Reader::new(blob).ty(0)
}

/// Reads the type arguments of a generic method.
///
/// # Errors
/// An error if the bytes are not a valid signature of this kind.
pub fn method_instantiation(blob: &[u8]) -> Result<Vec<Type>> {
    let mut reader = Reader::new(blob);
    match reader.byte()? {
        0x0a => reader.types(0),
        _ => Err(reader.bad()),
    }
}

struct Reader<'b> {
    blob: &'b [u8],
    offset: usize,
}

impl<'b> Reader<'b> {
    fn new(blob: &'b [u8]) -> Self {
        Self { blob, offset: 0 }
    }

    fn bad(&self) -> BadSignature {
        BadSignature { offset: self.offset }
    }

    fn byte(&mut self) -> Result<u8> {
        let byte = *self.blob.get(self.offset).ok_or(self.bad())?;
        self.offset += 1;
        Ok(byte)
    }

    /// A number in one, two or four bytes.
    fn number(&mut self) -> Result<u32> {
        let first = u32::from(self.byte()?);
        if first & 0x80 == 0 {
            return Ok(first);
        }
        let second = u32::from(self.byte()?);
        if first & 0x40 == 0 {
            return Ok((first & 0x3f) << 8 | second);
        }
        if first & 0x20 != 0 {
            return Err(self.bad());
        }
        let (third, fourth) = (u32::from(self.byte()?), u32::from(self.byte()?));
        Ok((first & 0x1f) << 24 | second << 16 | third << 8 | fourth)
    }

    /// A type's token, with the table in the two lowest bits.
    fn token(&mut self) -> Result<Token> {
        let coded = self.number()?;
        let table = match coded & 3 {
            0 => Token::TYPE_DEF,
            1 => Token::TYPE_REF,
            2 => Token::TYPE_SPEC,
            _ => return Err(self.bad()),
        };
        Ok(Token(u32::from(table) << 24 | coded >> 2))
    }

    fn method(&mut self, depth: u32) -> Result<MethodSignature> {
        let convention = self.byte()?;
        let generic_arity = if convention & 0x10 != 0 { self.number()? } else { 0 };
        let count = self.number()?;
        let return_type = self.ty(depth)?;
        let mut parameters = Vec::new();
        for _ in 0..self.plausible(count)? {
            // The sentinel before the variable arguments of a call.
            if self.blob.get(self.offset) == Some(&0x41) {
                self.offset += 1;
            }
            parameters.push(self.ty(depth)?);
        }
        let (has_this, explicit_this) = (convention & 0x20 != 0, convention & 0x40 != 0);
        Ok(MethodSignature {
            has_this,
            explicit_this,
            convention: convention & 0x0f,
            generic_arity,
            return_type,
            parameters,
        })
    }

    fn types(&mut self, depth: u32) -> Result<Vec<Type>> {
        let count = self.number()?;
        (0..self.plausible(count)?).map(|_| self.ty(depth)).collect()
    }

    /// Each element takes at least a byte.
    fn plausible(&self, count: u32) -> Result<u32> {
        if count as usize <= self.blob.len() { Ok(count) } else { Err(self.bad()) }
    }

    fn ty(&mut self, depth: u32) -> Result<Type> {
        if depth > DEPTH {
            return Err(self.bad());
        }
        let inner = depth + 1;
        loop {
            let element_type = self.byte()?;
            if let Some(primitive) = Primitive::from_element_type(element_type) {
                return Ok(Type::Primitive(primitive));
            }
            return Ok(match element_type {
                0x0f => Type::Pointer(Box::new(self.ty(inner)?)),
                0x10 => Type::ByRef(Box::new(self.ty(inner)?)),
                0x11 | 0x12 => Type::Named { is_value: element_type == 0x11, token: self.token()? },
                0x13 => Type::TypeParameter(self.number()?),
                0x14 => self.array(inner)?,
                0x15 => self.generic(inner)?,
                0x1b => Type::FunctionPointer(Box::new(self.method(inner)?)),
                0x1d => Type::Vector(Box::new(self.ty(inner)?)),
                0x1e => Type::MethodParameter(self.number()?),
                // Custom modifiers and "pinned" precede the type that they modify.
                0x1f | 0x20 => {
                    self.token()?;
                    continue;
                }
                0x45 => continue,
                0x21 => Type::Internal(self.pointer()?),
                // A modifier the runtime itself writes, followed by a handle.
                0x22 => {
                    self.byte()?;
                    self.pointer()?;
                    continue;
                }
                _ => return Err(self.bad()),
            });
        }
    }

    fn generic(&mut self, depth: u32) -> Result<Type> {
        let kind = self.byte()?;
        if kind == 0x21 {
            // A generic type by a type handle of the runtime: the parser skips its arguments.
            let handle = self.pointer()?;
            self.types(depth)?;
            return Ok(Type::Internal(handle));
        }
        if kind != 0x11 && kind != 0x12 {
            return Err(self.bad());
        }
        let token = self.token()?;
        Ok(Type::Generic { token, is_value: kind == 0x11, arguments: self.types(depth)? })
    }

    fn array(&mut self, depth: u32) -> Result<Type> {
        let element = Box::new(self.ty(depth)?);
        let rank = self.number()?;
        for _ in 0..2 {
            let count = self.number()?;
            for _ in 0..self.plausible(count)? {
                self.number()?;
            }
        }
        Ok(Type::Array { element, rank: rank.clamp(1, 32) })
    }

    fn pointer(&mut self) -> Result<usize> {
        let end = self.offset + size_of::<usize>();
        let bytes = self.blob.get(self.offset..end).and_then(|bytes| bytes.try_into().ok()).ok_or(self.bad())?;
        self.offset = end;
        Ok(usize::from_ne_bytes(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn int() -> Type {
        Type::Primitive(Primitive::Int)
    }

    #[test]
    fn reads_a_static_method_over_primitives() {
        let signature = method(&[0x00, 2, 0x01, 0x08, 0x0e]).unwrap();
        assert!(!signature.has_this);
        assert_eq!(signature.return_type, Type::Primitive(Primitive::Void));
        assert_eq!(signature.parameters, [int(), Type::Primitive(Primitive::String)]);
    }

    #[test]
    fn reads_generics_arrays_references_and_modifiers() {
        // instance generic method<1>: !!0 (List<!0>[], ref int, int[,], modreq(X) in int)
        let blob = [
            0x30, 1, 4, 0x1e, 0, // !!0
            0x1d, 0x15, 0x12, 0x05, 1, 0x13, 0, // Generic<!0>[]
            0x10, 0x08, // ref int
            0x14, 0x08, 2, 0, 2, 0, 0, // int[,] with two lower bounds of 0
            0x1f, 0x09, 0x10, 0x08, // modreq ref int
        ];
        let signature = method(&blob).unwrap();
        assert_eq!((signature.has_this, signature.generic_arity), (true, 1));
        assert_eq!(signature.return_type, Type::MethodParameter(0));
        let list =
            Type::Generic { token: Token(0x0100_0001), is_value: false, arguments: vec![Type::TypeParameter(0)] };
        let by_ref = Type::ByRef(Box::new(int()));
        let array = Type::Array { element: Box::new(int()), rank: 2 };
        assert_eq!(signature.parameters, [Type::Vector(Box::new(list)), by_ref.clone(), array, by_ref]);
    }

    #[test]
    fn reads_long_numbers() {
        // Type definition 0x4000: coded 0x10000, four bytes.
        let ty = type_spec(&[0x11, 0xc0, 0x01, 0x00, 0x00]).unwrap();
        assert_eq!(ty, Type::Named { token: Token(0x0200_4000), is_value: true });
    }

    #[test]
    fn every_cut_and_every_byte_is_survived() {
        let blob = [0x30, 1, 2, 0x1e, 0, 0x1d, 0x15, 0x12, 0x05, 1, 0x13, 0, 0x1b, 0x00, 1, 0x01, 0x0f, 0x08];
        assert!(method(&blob).is_ok());
        for cut in 0..blob.len() {
            assert!(method(&blob[..cut]).is_err(), "cut at {cut}");
            for value in 0..=255 {
                let mut changed = blob;
                changed[cut] = value;
                let _ = method(&changed);
            }
        }
        assert!(type_spec(&[0x0f; 4000]).is_err());
        assert!(type_spec(&[]).is_err());
    }
}
