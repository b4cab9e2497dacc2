//! How a value in memory is to be read.

use std::sync::OnceLock;

/// A value's type, as far as reading it goes.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    Bool,
    Char,
    /// A signed or unsigned integer of so many bytes.
    Int(u8),
    UInt(u8),
    Float,
    Double,
    /// An address that is shown and never followed.
    Pointer,
    /// A string, or null.
    String,
    /// An object of this class or one derived from it, or null; `None` where only the object knows.
    Reference(Option<&'static Class>),
    /// A value type: its fields lie right here.
    Struct(&'static Class),
    /// Not to be read, because its name is one of those that hide secrets.
    Redacted,
    /// Something that can't be read yet; its size is known.
    Opaque(u32),
}

impl Kind {
    /// Bytes it takes.
    pub(crate) fn size(self) -> u32 {
        match self {
            Self::Bool => 1,
            Self::Char => 2,
            Self::Int(bytes) | Self::UInt(bytes) => u32::from(bytes),
            Self::Float => 4,
            Self::Double | Self::Pointer | Self::String | Self::Reference(_) | Self::Redacted => 8,
            Self::Struct(class) => class.shape().size,
            Self::Opaque(bytes) => bytes,
        }
    }
}

/// A class as hooks know it. Made once, never freed.
#[derive(Debug)]
pub(crate) struct Class {
    /// Its number in the recording, from 1.
    pub(crate) index: u32,
    /// Found out after the class is known, because classes have fields of their own class.
    pub(crate) shape: OnceLock<Shape>,
}

/// What a class looks like in memory.
#[derive(Debug, Default)]
pub(crate) struct Shape {
    pub(crate) form: Form,
    /// Bytes: of an object with its header, of a value type without.
    pub(crate) size: u32,
    /// Fields, inherited ones first.
    pub(crate) fields: Vec<Field>,
}

/// What kind of class.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) enum Form {
    /// Objects and value types with fields.
    #[default]
    Fields,
    /// An enumeration over these integers.
    Enum {
        /// Bytes of the integers.
        bytes: u8,
        /// Whether they have a sign.
        signed: bool,
    },
    /// A string.
    String,
    /// An array; the elements of a vector begin 16 bytes into it.
    Array {
        /// Its elements.
        element: Kind,
        /// Dimensions; more than one are stored between length and elements.
        rank: u32,
    },
    /// A boxed value of a primitive type.
    Primitive(Kind),
    /// `Nullable<T>`: two fields, has a value and the value.
    Nullable,
    /// `Span<T>` and `ReadOnlySpan<T>`: the elements' address, their number.
    Span {
        /// Its elements.
        element: Kind,
    },
}

/// A field of an object.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Field {
    /// From the object's or value's beginning.
    pub(crate) offset: u32,
    pub(crate) kind: Kind,
}

impl Class {
    /// What it looks like; an empty shape while nobody has found out.
    pub(crate) fn shape(&self) -> &Shape {
        static UNKNOWN: Shape = Shape { form: Form::Fields, size: 8, fields: Vec::new() };
        self.shape.get().unwrap_or(&UNKNOWN)
    }
}
