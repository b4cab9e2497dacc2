//! Arguments and results as values. What people know of some of them by another form is in
//! [`meaning`](super::meaning).

/// A value of the program.
#[derive(Debug, Clone, PartialEq)]
pub enum Value<'a> {
    /// A value that could not be read.
    Unknown,
    /// A null reference, or a nullable without a value.
    Null,
    /// Only types were asked for.
    Hidden,
    /// A value whose name matches `--redact`.
    Redacted,
    /// A truth value.
    Bool(bool),
    /// A character, as UTF-16.
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
    /// A string, or its beginning.
    String {
        /// The characters that were kept.
        text: String,
        /// Characters it really has.
        length: u32,
        /// Whether that is more than were kept.
        is_cut: bool,
    },
    /// A value of an enumeration.
    Enum {
        /// The enumeration.
        type_name: &'a str,
        /// Name of the constant, or several joined by `|`; `None` where none fits.
        name: Option<String>,
        /// The number behind it.
        number: i64,
    },
    /// A number, a character or a truth value in a box.
    Boxed {
        /// Type of the value.
        type_name: &'a str,
        /// The value.
        value: Box<Value<'a>>,
    },
    /// Only types were asked for: the class of what is there, which may be another than the
    /// declared one.
    OfType {
        /// The class.
        type_name: &'a str,
    },
    /// An object.
    Object {
        /// Class of the object.
        type_name: &'a str,
        /// Address at that moment.
        address: u64,
        /// Bytes it takes; 0 where unknown.
        size_bytes: u32,
        /// Fields of the object, inherited ones first.
        fields: Vec<Field<'a>>,
    },
    /// An object that stands for a type, as `typeof` gives it.
    Type {
        /// Class of the object.
        type_name: &'a str,
        /// Address at that moment.
        address: u64,
        /// Name of the type that it stands for.
        of: &'a str,
    },
    /// The address of a method's code, or of a stub that leads there.
    Method {
        /// The address.
        address: u64,
        /// Name of the method.
        name: &'a str,
    },
    /// A value type.
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
        /// Elements it has.
        length: u32,
        /// Elements in each dimension, where there are several.
        dimensions: Vec<u32>,
        /// The first elements, those of the last dimension side by side.
        items: Vec<Value<'a>>,
    },
}

/// A field of an object or of a value type.
#[derive(Debug, Clone, PartialEq)]
pub struct Field<'a> {
    /// Name of the field.
    pub name: &'a str,
    /// Declared type, as C# writes it; empty where the recording does not say.
    pub type_name: &'a str,
    /// Value of the field.
    pub value: Value<'a>,
}

/// Way in which an argument is passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Passing {
    /// By value.
    Value,
    /// `ref`
    Ref,
    /// `in`
    In,
    /// `out`
    Out,
}

impl Passing {
    /// The word for it in C#, empty for passing by value.
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
    /// The parameter's type, as C# writes it.
    pub type_name: &'a str,
    /// Way in which it is passed.
    pub passing: Passing,
    /// Value of the argument; `None` for `out` before the call.
    pub value: Option<Value<'a>>,
}

/// Values taken of a call at its begin or its end.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CapturedValues<'a> {
    /// The object, at the begin of an instance method.
    pub this: Option<Argument<'a>>,
    /// At the begin all arguments, at the end those passed by `ref` and `out`.
    pub arguments: Vec<Argument<'a>>,
    /// Type and value of the result, at the end of what returns something.
    pub returns: Option<(&'a str, Value<'a>)>,
}
