//! The calling convention of compiled code on Linux and macOS, x86-64: System V, as the runtime applies it.
//!
//! In registers: `this`, the address for a large result, the hidden argument of shared code, then the arguments.
//! Integers, references and addresses take `rdi rsi rdx rcx r8 r9`, floating-point numbers `xmm0` to `xmm7`; a value
//! type of at most 16 bytes takes a register for each eight bytes if there are enough. Larger ones, those with fields
//! that are not aligned, and what finds no register lie on the stack, each at the next eight bytes.

use super::kinds::{Form, Kind, Shape};

/// Where an argument lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// A general register, by its order.
    General(u8),
    /// A vector register.
    Vector(u8),
    /// Two registers, each with whether it is a vector register.
    Pair((u8, bool), (u8, bool)),
    /// On the stack, so many bytes above the caller's stack pointer.
    Stack(u32),
    /// So many bytes behind the address in a general register: no argument of the code, but what it works on.
    Behind(u8, u32),
    /// Nobody knows: something before it could not be placed.
    Unknown,
}

/// General registers that hold arguments.
const GENERAL: u8 = 6;
/// Vector registers that hold arguments.
const VECTOR: u8 = 8;
/// Larger values lie in memory.
const LARGEST: u32 = 16;

/// What differs from runtime to runtime.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Convention {
    /// A value type without fields is like a byte; before .NET 9 it lay in memory, and so did what holds one.
    empty_in_registers: bool,
}

impl Convention {
    /// That of a runtime, by its major version.
    pub(crate) fn of(major: u16) -> Self {
        Self { empty_in_registers: major >= 9 }
    }

    /// How a value is passed.
    pub(crate) fn passed(self, kind: Kind) -> Passed {
        match kind {
            Kind::Float | Kind::Double => Passed::One(true),
            Kind::Opaque(_) => Passed::Unknown,
            Kind::Struct(class) => self.passed_struct(class.shape()),
            _ => Passed::One(false),
        }
    }

    fn passed_struct(self, shape: &Shape) -> Passed {
        if shape.size > LARGEST {
            return Passed::Memory;
        }
        let mut halves = Halves::default();
        match halves.add_struct(self, shape, 0) {
            Found::Memory => return Passed::Memory,
            Found::Unknown => return Passed::Unknown,
            Found::Fine => {}
        }
        match (halves.0, shape.size > 8) {
            ([Some(a), _], false) => Passed::One(a),
            ([Some(a), Some(b)], true) => Passed::Two(a, b),
            _ => Passed::Unknown,
        }
    }

    /// Where a result lies: registers are counted for results by themselves. `None` for one in memory, whose address
    /// is handed over like an argument.
    pub(crate) fn result(self, kind: Kind) -> Option<Place> {
        let (mut general, mut vector) = (0, 0);
        let mut take = |is_vector: bool| {
            let next = if is_vector { &mut vector } else { &mut general };
            *next += 1;
            (*next - 1, is_vector)
        };
        Some(match self.passed(kind) {
            Passed::One(false) => Place::General(take(false).0),
            Passed::One(true) => Place::Vector(take(true).0),
            Passed::Two(a, b) => {
                let first = take(a);
                Place::Pair(first, take(b))
            }
            Passed::Memory => return None,
            Passed::Unknown => Place::Unknown,
        })
    }
}

/// How a value is passed, each register general (false) or vector (true).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Passed {
    One(bool),
    Two(bool, bool),
    Memory,
    Unknown,
}

enum Found {
    Fine,
    Memory,
    Unknown,
}

/// The two halves of a value of at most 16 bytes: vector only where nothing but floating-point numbers lies in them.
#[derive(Default)]
struct Halves([Option<bool>; 2]);

impl Halves {
    fn add(&mut self, convention: Convention, kind: Kind, offset: u32) -> Found {
        let is_vector = match kind {
            Kind::Opaque(_) => return Found::Unknown,
            Kind::Struct(class) => return self.add_struct(convention, class.shape(), offset),
            Kind::Float | Kind::Double => true,
            _ => false,
        };
        self.add_number(is_vector, kind.size(), offset)
    }

    fn add_number(&mut self, is_vector: bool, bytes: u32, offset: u32) -> Found {
        if !offset.is_multiple_of(bytes.max(1)) {
            return Found::Memory;
        }
        let Some(half) = self.0.get_mut(offset as usize / 8) else { return Found::Unknown };
        *half = Some(half.unwrap_or(true) && is_vector);
        Found::Fine
    }

    fn add_struct(&mut self, convention: Convention, shape: &Shape, offset: u32) -> Found {
        match shape.form {
            _ if shape.is_vector => return Found::Memory,
            Form::Enum { bytes, .. } => return self.add_number(false, bytes.into(), offset),
            Form::Primitive(kind) => return self.add(convention, kind, offset),
            Form::Span { .. } => {
                self.0 = [Some(false); 2];
                return Found::Fine;
            }
            _ if shape.fields.is_empty() && convention.empty_in_registers => return self.add_number(false, 1, offset),
            _ if shape.fields.is_empty() => return Found::Memory,
            _ => {}
        }
        let repeated = shape.repeats();
        for field in &shape.fields {
            for number in 0..repeated {
                match self.add(convention, field.kind, offset + field.offset + number * field.kind.size()) {
                    Found::Fine => {}
                    other => return other,
                }
            }
        }
        Found::Fine
    }
}

/// Hands out registers and stack.
#[derive(Debug)]
pub(crate) struct Walk {
    convention: Convention,
    general: u8,
    vector: u8,
    stack: u32,
    lost: bool,
}

impl Walk {
    pub(crate) fn new(convention: Convention) -> Self {
        Self { convention, general: 0, vector: 0, stack: 0, lost: false }
    }

    /// The next place for an address.
    pub(crate) fn general(&mut self) -> Place {
        self.one(false)
    }

    /// From here on nobody knows.
    pub(crate) fn lose(&mut self) {
        self.lost = true;
    }

    /// The next place for such a value.
    pub(crate) fn place(&mut self, kind: Kind) -> Place {
        match self.convention.passed(kind) {
            Passed::Memory => self.memory(kind.size()),
            Passed::One(is_vector) => self.one(is_vector),
            Passed::Two(a, b) => self.two(a, b),
            Passed::Unknown => {
                self.lost = true;
                Place::Unknown
            }
        }
    }

    fn one(&mut self, is_vector: bool) -> Place {
        if self.lost {
            return Place::Unknown;
        }
        let (next, most) = if is_vector { (&mut self.vector, VECTOR) } else { (&mut self.general, GENERAL) };
        if *next < most {
            *next += 1;
            return if is_vector { Place::Vector(*next - 1) } else { Place::General(*next - 1) };
        }
        self.memory(8)
    }

    /// Two registers, or neither.
    fn two(&mut self, a: bool, b: bool) -> Place {
        let vectors = u8::from(a) + u8::from(b);
        if self.lost || self.vector + vectors > VECTOR || self.general + 2 - vectors > GENERAL {
            return self.memory(16);
        }
        let mut take = |is_vector: bool| {
            let next = if is_vector { &mut self.vector } else { &mut self.general };
            *next += 1;
            (*next - 1, is_vector)
        };
        let first = take(a);
        Place::Pair(first, take(b))
    }

    fn memory(&mut self, bytes: u32) -> Place {
        if self.lost {
            return Place::Unknown;
        }
        let at = self.stack;
        self.stack += bytes.next_multiple_of(8);
        Place::Stack(at)
    }
}
