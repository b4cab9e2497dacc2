//! Kinds of values in memory, by which they are read.

use std::sync::OnceLock;

/// A value's type, as far as reading it goes.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// A `bool`.
    Bool,
    /// A character.
    Char,
    /// A signed integer of so many bytes.
    Int(u8),
    /// An unsigned integer of so many bytes.
    UInt(u8),
    /// A number of four bytes with a point.
    Float,
    /// A number of eight bytes with a point.
    Double,
    /// An address that is shown and never followed.
    Pointer,
    /// A string, or null.
    String,
    /// An object of this class or one derived from it, or null; `None` where only the object knows.
    Reference(Option<&'static Class>),
    /// A value type: its fields lie right here.
    Struct(&'static Class),
    /// An argument or result that is not to be read, because its name is one of those that hide
    /// secrets. A field has its own kind all the same, which says how the value around it is passed
    /// (`Shown`).
    Redacted,
    /// A value that can't be read yet; its size is known.
    Opaque(u32),
}

impl Kind {
    /// Bytes it takes.
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
    /// The first word of its objects; 0 for one that only a signature names.
    pub id: usize,
    /// Found out after the class is known, because classes have fields of their own class.
    pub shape: OnceLock<Shape>,
}

/// Memory layout of a class.
#[derive(Debug, Default)]
pub struct Shape {
    pub(crate) form: Form,
    /// Bytes: of an object with its header, of a value type without.
    pub size: u32,
    /// A value type: in a box its fields lie behind the object's first word.
    pub(crate) is_value: bool,
    /// A vector of the processor: never in registers, however small.
    pub is_vector: bool,
    /// Fields, inherited ones first.
    pub fields: Vec<Field>,
}

impl Shape {
    /// Number of times that a single field is there: fixed buffers and inline arrays declare it
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

/// Kind of class.
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
        /// Kind of the elements.
        element: Kind,
        /// Dimensions; more than one are stored between length and elements.
        rank: u32,
    },
    /// A boxed value of a primitive type.
    Primitive(Kind),
    /// `Task`, `Task<T>` and what is derived from them: its state, and its result once there is
    /// one.
    Task(Task),
    /// `ValueTask` and `ValueTask<T>`: a result, or the task that will have one.
    ValueTask {
        /// Offset of the task, which is null for a result that was there at once.
        object: u32,
        /// The class of the states of tasks.
        status: &'static Class,
        /// The result.
        result: Option<Field>,
    },
    /// An object that stands for a type.
    Type {
        /// Offset of the type's own class.
        handle: u32,
    },
    /// A delegate.
    Delegate {
        /// Offset of the address that the delegate calls.
        pointer: u32,
        /// Offset of the method's address, for delegates that take no object along; 0 there for all
        /// others.
        method: u32,
    },
    /// `Nullable<T>`: two fields, has a value and the value.
    Nullable,
    /// `Span<T>` and `ReadOnlySpan<T>`: the elements' address, their number.
    Span {
        /// Kind of the elements.
        element: Kind,
    },
}

/// Fields of a task that are shown.
#[derive(Debug, Clone, Copy)]
pub struct Task {
    /// Offset of the word that holds its state.
    pub flags: u32,
    /// The class of the states of tasks.
    pub status: &'static Class,
    /// The result, of tasks that have one.
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

    /// Value of the framework's property `Status`, from the word that holds the state.
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
    /// From the object's or value's beginning.
    pub offset: u32,
    /// Kind of its value.
    pub kind: Kind,
    pub(crate) shown: Shown,
}

/// Visibility of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    /// One deeper than what it is a field of.
    Deeper,
    /// As deep: the elements of a collection lie there.
    Content,
    /// Not at all, and never read: its name is one of those that hide secrets.
    Redacted,
}

impl Field {
    /// Whether the field is never to be read.
    pub fn is_hidden(&self) -> bool {
        self.shown == Shown::Redacted
    }
}

impl Class {
    /// Bytes of an object of the class with its header; 0 where that is not known.
    pub(crate) fn object_bytes(&self) -> u32 {
        match self.shape.get() {
            Some(shape) if !shape.is_value && !matches!(shape.form, Form::Array { .. }) => shape.size,
            _ => 0,
        }
    }

    /// Whether its values lie where they are used; a class that is still unknown has none.
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
