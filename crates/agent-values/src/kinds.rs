//! Kinds of values in memory, which say how to read them.

use std::sync::OnceLock;

/// A value's type, as far as it matters for reading.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// A `bool`.
    Bool,
    /// A character.
    Char,
    /// A signed integer of this many bytes.
    Int(u8),
    /// An unsigned integer of this many bytes.
    UInt(u8),
    /// A floating-point number of four bytes.
    Float,
    /// A floating-point number of eight bytes.
    Double,
    /// An address that is shown and never followed.
    Pointer,
    /// A string, or null.
    String,
    /// An object of this class or a derived one, or null; `None` where only the object itself tells
    /// its class.
    Reference(Option<&'static Class>),
    /// A value type, whose fields lie in place.
    Struct(&'static Class),
    /// An argument or result that must not be read, because its name matches a pattern for secrets.
    /// Such a field keeps its own kind, which determines how the value around it is passed
    /// (`Shown`).
    Redacted,
    /// A value that can't be read yet; its size is known.
    Opaque(u32),
}

impl Kind {
    /// Size in bytes.
    pub fn size(self) -> u32 {
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
pub struct Class {
    /// Number in the recording, from 1.
    pub index: u32,
    /// The first word of its objects; 0 for a class that only a signature names.
    pub id: usize,
    /// Set after the class is known, because classes have fields of their own class.
    pub shape: OnceLock<Shape>,
}

/// Memory layout of a class.
#[derive(Debug, Default)]
pub struct Shape {
    pub(crate) form: Form,
    /// Size in bytes: of an object with its header, of a value type without.
    pub size: u32,
    /// Whether it is a value type. In a box, its fields lie behind the object's first word.
    pub(crate) is_value: bool,
    /// Whether it is a vector of the processor, which is never passed in registers, however small.
    pub is_vector: bool,
    /// Fields, inherited ones first.
    pub fields: Vec<Field>,
}

impl Shape {
    /// Number of repetitions of a single field: fixed buffers and inline arrays declare it only
    /// once.
    pub fn repeats(&self) -> u32 {
        match self.fields.as_slice() {
            [Field { offset: 0, kind, .. }]
                if self.is_value && kind.size() > 0 && self.size.is_multiple_of(kind.size()) =>
            {
                self.size / kind.size()
            }
            _ => 1,
        }
    }
}

/// The kind of a class.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) enum Form {
    /// Objects and value types with fields.
    #[default]
    Fields,
    /// An enumeration over these integers.
    Enum {
        /// Bytes of the integers.
        bytes: u8,
        /// Whether they are signed.
        signed: bool,
    },
    /// A string.
    String,
    /// An array; the elements of a vector begin 16 bytes into it.
    Array {
        /// Kind of the elements.
        element: Kind,
        /// Number of dimensions. More than one are stored between length and elements.
        rank: u32,
    },
    /// A boxed value of a primitive type.
    Primitive(Kind),
    /// `Task`, `Task<T>` and derived classes: the state, and the result once there is one.
    Task(Task),
    /// `ValueTask` and `ValueTask<T>`: a result, or the task that will have one.
    ValueTask {
        /// Offset of the task, which is null if the result was available at once.
        object: u32,
        /// The class of task states.
        status: &'static Class,
        /// The result.
        result: Option<Field>,
    },
    /// An object that represents a type.
    Type {
        /// Offset of the type's own class.
        handle: u32,
    },
    /// A delegate.
    Delegate {
        /// Offset of the address that the delegate calls.
        pointer: u32,
        /// Offset of the method's address, for delegates without an object; the word there is 0 for
        /// all others.
        method: u32,
    },
    /// `Nullable<T>`: two fields, the flag and the value.
    Nullable,
    /// `Span<T>` and `ReadOnlySpan<T>`: the address and number of the elements.
    Span {
        /// Kind of the elements.
        element: Kind,
    },
}

/// Fields of a task that are shown.
#[derive(Debug, Clone, Copy)]
pub struct Task {
    /// Offset of the word with its state.
    pub flags: u32,
    /// The class of task states.
    pub status: &'static Class,
    /// The result, for tasks that have one.
    pub result: Option<Field>,
}

impl Task {
    /// Constants of the framework's `TaskStatus`: `WaitingForActivation`.
    pub const WAITING: i64 = 1;
    /// `RanToCompletion`.
    pub const COMPLETED: i64 = 5;
    /// `Canceled`.
    pub const CANCELED: i64 = 6;
    /// `Faulted`.
    pub const FAULTED: i64 = 7;

    /// Value of the framework's property `Status`, from the state word.
    pub(crate) fn status_of(flags: u32) -> i64 {
        const STATES: [(u32, i64); 7] = [
            (0x20_0000, Task::FAULTED),
            (0x40_0000, Task::CANCELED),
            (0x100_0000, Task::COMPLETED),
            (0x80_0000, 4),
            (0x2_0000, 3),
            (0x1_0000, 2),
            (0x200_0000, Task::WAITING),
        ];
        STATES.iter().find(|(bit, _)| flags & bit != 0).map_or(0, |(_, status)| *status)
    }
}

/// A field of an object.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// Offset from the beginning of the object or value.
    pub offset: u32,
    /// Kind of its value.
    pub kind: Kind,
    pub(crate) shown: Shown,
}

/// How a field is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    /// One level deeper than its object.
    Deeper,
    /// At the same level: the field holds the elements of a collection.
    Content,
    /// Not shown and never read, because its name matches a pattern for secrets.
    Redacted,
}

impl Field {
    /// Whether the field must never be read.
    pub fn is_hidden(&self) -> bool {
        self.shown == Shown::Redacted
    }
}

impl Class {
    /// Bytes of an object of the class with its header; 0 where that is unknown.
    pub(crate) fn object_bytes(&self) -> u32 {
        match self.shape.get() {
            Some(shape) if !shape.is_value && !matches!(shape.form, Form::Array { .. }) => shape.size,
            _ => 0,
        }
    }

    /// Whether it is a value type. A class that is still unknown is not one.
    pub(crate) fn is_of_values(&self) -> bool {
        let shape = self.shape();
        shape.is_value || matches!(shape.form, Form::Primitive(_) | Form::Enum { .. })
    }

    /// Shape of the class; empty until it is resolved.
    pub fn shape(&self) -> &Shape {
        static UNKNOWN: Shape =
            Shape { form: Form::Fields, size: 8, is_value: false, is_vector: false, fields: Vec::new() };
        self.shape.get().unwrap_or(&UNKNOWN)
    }
}
