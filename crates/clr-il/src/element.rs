//! Element types: the bytes by which signatures name types. Source: ECMA-335, II.23.1.16.

/// No result.
pub const VOID: u8 = 0x01;
/// `byte`.
pub const U1: u8 = 0x05;
/// `int`.
pub const I4: u8 = 0x08;
/// `long`.
pub const I8: u8 = 0x0a;
/// `string`.
pub const STRING: u8 = 0x0e;
/// A pointer to the type that follows.
pub const POINTER: u8 = 0x0f;
/// A managed reference to the type that follows.
pub const BY_REF: u8 = 0x10;
/// The value type whose token follows.
pub const VALUE_TYPE: u8 = 0x11;
/// The class whose token follows.
pub const CLASS: u8 = 0x12;
/// A type parameter of the generic type; its number follows.
pub const VAR: u8 = 0x13;
/// An array of several dimensions.
pub const ARRAY: u8 = 0x14;
/// A generic type with its arguments.
pub const INSTANCE: u8 = 0x15;
/// A typed reference.
pub const TYPED_REF: u8 = 0x16;
/// `nint`.
pub const INT: u8 = 0x18;
/// `nuint`.
pub const UINT: u8 = 0x19;
/// A pointer to a function, whose signature follows.
pub const FUNCTION: u8 = 0x1b;
/// `object`.
pub const OBJECT: u8 = 0x1c;
/// An array of one dimension of the type that follows.
pub const VECTOR: u8 = 0x1d;
/// A type parameter of the generic method; its number follows.
pub const METHOD_VAR: u8 = 0x1e;
/// A modifier that must be understood; its token follows.
pub const REQUIRED: u8 = 0x1f;
/// A modifier that may be left out; its token follows.
pub const OPTIONAL: u8 = 0x20;
/// The end of the declared parameters, in a call with variable arguments.
pub const SENTINEL: u8 = 0x41;
/// A pinned local variable: its object does not move.
pub const PINNED: u8 = 0x45;
