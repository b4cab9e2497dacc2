//! Kinds of values in memory, which say how to read them.

use std::sync::OnceLock;

/// What reading a value needs to know of its type.
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
    /// An object of this class or a derived one, or null. `None` if the class is known only from
    /// the object.
    Reference(Option<&'static Class>),
    /// A value type, stored inline.
    Struct(&'static Class),
    /// An argument or result that must not be read, because its name matches a pattern for secrets.
    /// Such a field keeps its own kind, which determines how the value around it is passed
    /// (`Shown`).
    Redacted,
    /// A value of this many bytes that can't be read yet.
    Opaque(u32),
}

impl Kind {
    /// Size of a value of this kind, in bytes.
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

/// A class, with what hooks need to know of it. Created once, never freed.
#[derive(Debug)]
pub struct Class {
    /// Number of the class in the recording, from 1.
    pub index: u32,
    /// The first word of the class's objects; 0 for a class that is only named in signatures.
    pub id: usize,
    /// Memory layout of the class. Set after the class is created, because classes have fields of
    /// their own class.
    pub shape: OnceLock<Shape>,
}

/// Memory layout of a class.
#[derive(Debug, Default)]
pub struct Shape {
    pub(crate) form: Form,
    /// Size in bytes: of an object including its header, or of a value type without a header.
    pub size: u32,
    /// Whether the class is a value type. In a box, its fields lie behind the object's first word.
    pub(crate) is_value: bool,
    /// Whether the class is a vector type of the processor (SIMD), which is never passed in
    /// registers, however small.
    pub is_vector: bool,
    /// Fields, inherited ones first.
    pub fields: Vec<Field>,
}

impl Shape {
    /// How often the only field repeats: fixed buffers and inline arrays declare it only once.
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

/// The form of a class, which tells how its contents are shown.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) enum Form {
    /// Objects and value types with fields.
    #[default]
    Fields,
    /// An enumeration based on these integers.
    Enum {
        /// Size of the integers in bytes.
        bytes: u8,
        /// Whether the integers are signed.
        signed: bool,
    },
    /// A string.
    String,
    /// An array. The elements of a one-dimensional array begin 16 bytes into the object.
    Array {
        /// Kind of the elements.
        element: Kind,
        /// Number of dimensions. If there are several, their sizes are stored between the length
        /// and the elements.
        rank: u32,
    },
    /// A boxed value of a primitive type.
    Primitive(Kind),
    /// `Task`, `Task<T>` and derived classes, shown by state, and by result once there is one.
    Task(Task),
    /// `ValueTask` and `ValueTask<T>`: holds a result, or the task that will have one.
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
        /// Offset of the word that identifies the represented type.
        handle: u32,
    },
    /// A delegate.
    Delegate {
        /// Offset of the address that the delegate calls.
        pointer: u32,
        /// Offset of the word with the method's address in delegates without an object. In other
        /// delegates that word is 0.
        method: u32,
    },
    /// `Nullable<T>`, with two fields: the flag and the value.
    Nullable,
    /// `Span<T>` and `ReadOnlySpan<T>`, with the address and number of the elements.
    Span {
        /// Kind of the elements.
        element: Kind,
    },
}

/// Fields of a task that are shown.
#[derive(Debug, Clone, Copy)]
pub struct Task {
    /// Offset of the word that contains the state.
    pub flags: u32,
    /// The class of task states.
    pub status: &'static Class,
    /// The result, for tasks that have one.
    pub result: Option<Field>,
}

impl Task {
    /// Values of the framework's `TaskStatus`: `WaitingForActivation`.
    pub const WAITING: i64 = 1;
    /// `TaskStatus.RanToCompletion`.
    pub const COMPLETED: i64 = 5;
    /// `TaskStatus.Canceled`.
    pub const CANCELED: i64 = 6;
    /// `TaskStatus.Faulted`.
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
    /// Kind of the field's value.
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
    /// Bytes of an object of the class including its header; 0 if unknown.
    pub(crate) fn object_bytes(&self) -> u32 {
        match self.shape.get() {
            Some(shape) if !shape.is_value && !matches!(shape.form, Form::Array { .. }) => shape.size,
            _ => 0,
        }
    }

    /// Whether the class is a value type; `false` for a class that is not resolved yet.
    pub(crate) fn is_of_values(&self) -> bool {
        let shape = self.shape();
        shape.is_value || matches!(shape.form, Form::Primitive(_) | Form::Enum { .. })
    }

    /// Memory layout of the class; empty until the class is resolved.
    pub fn shape(&self) -> &Shape {
        static UNKNOWN: Shape =
            Shape { form: Form::Fields, size: 8, is_value: false, is_vector: false, fields: Vec::new() };
        self.shape.get().unwrap_or(&UNKNOWN)
    }
}
