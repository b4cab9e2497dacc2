//! Arguments and results as values. [`meaning`](super::meaning) gives some of them a readable form.

/// A value of the program.
#[derive(Debug, Clone, PartialEq)]
pub enum Value<'a> {
    /// A value that could not be read.
    Unknown,
    /// A null reference, or a nullable without a value.
    Null,
    /// A value that was not recorded, because only types were requested.
    Hidden,
    /// A value whose name matches `--redact`.
    Redacted,
    /// A boolean.
    Bool(bool),
    /// A character, as a UTF-16 code unit.
    Char(u16),
    /// A signed integer.
    Int(i64),
    /// An unsigned integer.
    UInt(u64),
    /// A floating-point number of 32 bits.
    Float(f32),
    /// A floating-point number of 64 bits.
    Double(f64),
    /// An unmanaged pointer.
    Pointer(u64),
    /// A string, complete or only its beginning.
    String {
        /// The characters that were recorded.
        text: String,
        /// Number of characters in the program's string.
        length: u32,
        /// Whether the string has more characters than were recorded.
        is_cut: bool,
    },
    /// A value of an enumeration.
    Enum {
        /// The enumeration.
        type_name: &'a str,
        /// Name of the constant, or several names joined by `|`; `None` if no constant matches.
        name: Option<String>,
        /// The numeric value.
        number: i64,
    },
    /// A boxed number, character or boolean.
    Boxed {
        /// Type of the value.
        type_name: &'a str,
        /// The value.
        value: Box<Value<'a>>,
    },
    /// The class of an object whose value was not recorded, because only types were requested. It
    /// may differ from the declared class.
    OfType {
        /// The class.
        type_name: &'a str,
    },
    /// An object.
    Object {
        /// Class of the object.
        type_name: &'a str,
        /// Address at the time of recording.
        address: u64,
        /// Size of the object in bytes; 0 if unknown.
        size_bytes: u32,
        /// Fields of the object, inherited ones first.
        fields: Vec<Field<'a>>,
    },
    /// An object that represents a type, such as the result of `typeof`.
    Type {
        /// Class of the object.
        type_name: &'a str,
        /// Address at the time of recording.
        address: u64,
        /// Name of the represented type.
        of: &'a str,
    },
    /// The address of a method's code, or of a stub that jumps there.
    Method {
        /// The address.
        address: u64,
        /// Name of the method.
        name: &'a str,
    },
    /// A value of a value type.
    Struct {
        /// The type.
        type_name: &'a str,
        /// Fields of the value.
        fields: Vec<Field<'a>>,
    },
    /// An array or span.
    Array {
        /// The type.
        type_name: &'a str,
        /// Number of elements.
        length: u32,
        /// Length of each dimension, if there are several.
        dimensions: Vec<u32>,
        /// The first elements. In arrays of several dimensions, elements along the last dimension
        /// are adjacent.
        items: Vec<Value<'a>>,
    },
}

/// A field of an object or of a value type.
#[derive(Debug, Clone, PartialEq)]
pub struct Field<'a> {
    /// Name of the field.
    pub name: &'a str,
    /// Declared type, in C# syntax; empty if it was not recorded.
    pub type_name: &'a str,
    /// Value of the field.
    pub value: Value<'a>,
}

/// How an argument is passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passing {
    /// The argument is passed by value.
    Value,
    /// The argument is passed by `ref`.
    Ref,
    /// The argument is passed by `in`.
    In,
    /// The argument is passed by `out`.
    Out,
}

impl Passing {
    /// The keyword in C#; empty for passing by value.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Value => "",
            Self::Ref => "ref",
            Self::In => "in",
            Self::Out => "out",
        }
    }
}

/// One argument.
#[derive(Debug, Clone, PartialEq)]
pub struct Argument<'a> {
    /// The parameter's name.
    pub name: &'a str,
    /// The parameter's type, in C# syntax.
    pub type_name: &'a str,
    /// How the argument is passed.
    pub passing: Passing,
    /// Value of the argument; `None` for `out` before the call.
    pub value: Option<Value<'a>>,
}

/// Values recorded at the begin or the end of a call.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CapturedValues<'a> {
    /// The `this` object, at the begin of an instance method.
    pub this: Option<Argument<'a>>,
    /// At the begin of a call all arguments, at the end the arguments passed by `ref` and `out`.
    pub arguments: Vec<Argument<'a>>,
    /// Type and value of the result, at the end of a method that returns a value.
    pub returns: Option<(&'a str, Value<'a>)>,
}
