//! The calling convention of compiled code on Linux and macOS, x86-64: System V, as the runtime
//! applies it.
//!
//! The order in registers is: `this`, the address for a large result, the hidden argument of shared
//! code, then the arguments. Integers, references and addresses take `rdi rsi rdx rcx r8 r9`,
//! floating-point numbers `xmm0` to `xmm7`. A value type of at most 16 bytes takes a register for
//! each eight bytes if there are enough. Larger value types, those with unaligned fields, and
//! arguments without a free register lie on the stack, each at the next eight bytes.

use super::super::super::kinds::{Form, Kind, Shape};

/// Location of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgumentLocation {
    /// In a general register, by its number in the order of arguments or results.
    General(u8),
    /// In a vector register, by its number.
    Vector(u8),
    /// In two registers, each given by its number and a flag that is `true` for a vector register.
    Pair((u8, bool), (u8, bool)),
    /// On the stack, this many bytes above the caller's stack pointer.
    Stack(u32),
    /// In memory, this many bytes after the address in a general register: not an argument of the
    /// code, but data that it works on.
    Behind(u8, u32),
    /// Unknown, because the location of an earlier argument is unknown.
    Unknown,
}

/// General registers that hold arguments.
const GENERAL: u8 = 6;
/// Vector registers that hold arguments.
const VECTOR: u8 = 8;
/// Largest value that is passed in registers.
const LARGEST: u32 = 16;

/// Differences of the convention between runtimes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Convention {
    /// Whether a value type without fields is treated like a byte. Before .NET 9 it lay in memory,
    /// and so did value types that contain one.
    empty_in_registers: bool,
}

impl Convention {
    /// Returns the convention of a runtime, by its major version.
    pub fn for_runtime(major: u16) -> Self {
        Self { empty_in_registers: major >= 9 }
    }

    /// How a value is passed.
    pub(crate) fn passed(self, kind: Kind) -> ValueRegisters {
        match kind {
            Kind::Float | Kind::Double => ValueRegisters::One(true),
            Kind::Opaque(_) => ValueRegisters::Unknown,
            Kind::Struct(class) => self.passed_struct(class.shape()),
            _ => ValueRegisters::One(false),
        }
    }

    fn passed_struct(self, shape: &Shape) -> ValueRegisters {
        if shape.size > LARGEST {
            return ValueRegisters::Memory;
        }
        let mut halves = Halves::default();
        match halves.add_struct(self, shape, 0) {
            Passing::Memory => return ValueRegisters::Memory,
            Passing::Unknown => return ValueRegisters::Unknown,
            Passing::Fine => {}
        }
        match (halves.0, shape.size > 8) {
            ([Some(a), _], false) => ValueRegisters::One(a),
            ([Some(a), Some(b)], true) => ValueRegisters::Two(a, b),
            _ => ValueRegisters::Unknown,
        }
    }

    /// Location of a result. Registers for results are counted separately. `None` for a result in
    /// memory, whose address is passed like an argument.
    pub fn result(self, kind: Kind) -> Option<ArgumentLocation> {
        let (mut general, mut vector) = (0, 0);
        let mut take = |is_vector: bool| {
            let next = if is_vector { &mut vector } else { &mut general };
            *next += 1;
            (*next - 1, is_vector)
        };
        Some(match self.passed(kind) {
            ValueRegisters::One(false) => ArgumentLocation::General(take(false).0),
            ValueRegisters::One(true) => ArgumentLocation::Vector(take(true).0),
            ValueRegisters::Two(a, b) => {
                let first = take(a);
                ArgumentLocation::Pair(first, take(b))
            }
            ValueRegisters::Memory => return None,
            ValueRegisters::Unknown => ArgumentLocation::Unknown,
        })
    }
}

/// Registers in which a value is passed. Each flag is `true` for a vector register and `false` for
/// a general one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ValueRegisters {
    One(bool),
    Two(bool, bool),
    Memory,
    Unknown,
}

enum Passing {
    Fine,
    Memory,
    Unknown,
}

/// The two halves of a value of at most 16 bytes. A half is a vector register only if it contains
/// nothing but floating-point numbers.
#[derive(Default)]
struct Halves([Option<bool>; 2]);

impl Halves {
    fn add(&mut self, convention: Convention, kind: Kind, offset: u32) -> Passing {
        let is_vector = match kind {
            Kind::Opaque(_) => return Passing::Unknown,
            Kind::Struct(class) => return self.add_struct(convention, class.shape(), offset),
            Kind::Float | Kind::Double => true,
            _ => false,
        };
        self.add_number(is_vector, kind.size(), offset)
    }

    fn add_number(&mut self, is_vector: bool, bytes: u32, offset: u32) -> Passing {
        if !offset.is_multiple_of(bytes.max(1)) {
            return Passing::Memory;
        }
        let Some(half) = self.0.get_mut(offset as usize / 8) else { return Passing::Unknown };
        *half = Some(half.unwrap_or(true) && is_vector);
        Passing::Fine
    }

    fn add_struct(&mut self, convention: Convention, shape: &Shape, offset: u32) -> Passing {
        match shape.form {
            _ if shape.is_vector => return Passing::Memory,
            Form::Enum { bytes, .. } => return self.add_number(false, bytes.into(), offset),
            Form::Primitive(kind) => return self.add(convention, kind, offset),
            Form::Span { .. } => {
                self.0 = [Some(false); 2];
                return Passing::Fine;
            }
            _ if shape.fields.is_empty() && convention.empty_in_registers => return self.add_number(false, 1, offset),
            _ if shape.fields.is_empty() => return Passing::Memory,
            _ => {}
        }
        let repeated = shape.repeats();
        for field in &shape.fields {
            for number in 0..repeated {
                match self.add(convention, field.kind, offset + field.offset + number * field.kind.size()) {
                    Passing::Fine => {}
                    other => return other,
                }
            }
        }
        Passing::Fine
    }
}

/// Assigns registers and stack slots to arguments, one argument after another.
#[derive(Debug)]
pub struct Walk {
    convention: Convention,
    general: u8,
    vector: u8,
    stack: u32,
    lost: bool,
}

impl Walk {
    /// Creates a walk that begins at the first argument.
    pub fn new(convention: Convention) -> Self {
        Self { convention, general: 0, vector: 0, stack: 0, lost: false }
    }

    /// The next location for an argument that is an address.
    pub fn general(&mut self) -> ArgumentLocation {
        self.one(false)
    }

    /// Makes the locations of all further arguments unknown.
    pub fn lose(&mut self) {
        self.lost = true;
    }

    /// The next location for an argument of this kind.
    pub(crate) fn locate(&mut self, kind: Kind) -> ArgumentLocation {
        match self.convention.passed(kind) {
            ValueRegisters::Memory => self.memory(kind.size()),
            ValueRegisters::One(is_vector) => self.one(is_vector),
            ValueRegisters::Two(a, b) => self.two(a, b),
            ValueRegisters::Unknown => {
                self.lost = true;
                ArgumentLocation::Unknown
            }
        }
    }

    fn one(&mut self, is_vector: bool) -> ArgumentLocation {
        if self.lost {
            return ArgumentLocation::Unknown;
        }
        let (next, most) = if is_vector { (&mut self.vector, VECTOR) } else { (&mut self.general, GENERAL) };
        if *next < most {
            *next += 1;
            return if is_vector { ArgumentLocation::Vector(*next - 1) } else { ArgumentLocation::General(*next - 1) };
        }
        self.memory(8)
    }

    /// Takes two registers, or neither.
    fn two(&mut self, a: bool, b: bool) -> ArgumentLocation {
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
        ArgumentLocation::Pair(first, take(b))
    }

    fn memory(&mut self, bytes: u32) -> ArgumentLocation {
        if self.lost {
            return ArgumentLocation::Unknown;
        }
        let at = self.stack;
        self.stack += bytes.next_multiple_of(8);
        ArgumentLocation::Stack(at)
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::super::kinds::{Class, Field, Shown};
    use super::*;

    const NEW: Convention = Convention { empty_in_registers: true };
    const OLD: Convention = Convention { empty_in_registers: false };

    const INT: Kind = Kind::Int(4);
    const LONG: Kind = Kind::Int(8);
    const BYTE: Kind = Kind::UInt(1);
    const REFERENCE: Kind = Kind::Reference(None);

    fn class(shape: Shape) -> Kind {
        let class: &'static Class = Box::leak(Box::new(Class { index: 1, id: 8, shape: Default::default() }));
        class.shape.set(shape).expect("new");
        Kind::Struct(class)
    }

    fn sized(size: u32, fields: &[(u32, Kind)]) -> Kind {
        let fields =
            fields.iter().map(|(offset, kind)| Field { offset: *offset, kind: *kind, shown: Shown::Deeper }).collect();
        class(Shape { size, is_value: true, fields, ..Shape::default() })
    }

    fn vector(size: u32) -> Kind {
        let fields = vec![Field { offset: 0, kind: LONG, shown: Shown::Deeper }];
        class(Shape { size, is_value: true, is_vector: true, fields, ..Shape::default() })
    }

    fn form(form: Form, size: u32) -> Kind {
        class(Shape { form, size, is_value: true, ..Shape::default() })
    }

    #[test]
    fn values_are_passed_by_their_size_and_their_fields() {
        use Kind::{Double, Float};
        use ValueRegisters::{Memory, One, Two, Unknown};
        let inner = sized(8, &[(0, Float), (4, Float)]);
        let mixed = sized(8, &[(0, Float), (4, INT)]);
        let table = [
            (INT, One(false)),
            (Kind::Bool, One(false)),
            (Kind::Char, One(false)),
            (Kind::Pointer, One(false)),
            (Kind::String, One(false)),
            (REFERENCE, One(false)),
            (Float, One(true)),
            (Double, One(true)),
            (Kind::Opaque(8), Unknown),
            (sized(1, &[(0, BYTE)]), One(false)),
            (sized(3, &[(0, BYTE), (1, BYTE), (2, BYTE)]), One(false)),
            (sized(8, &[(0, LONG)]), One(false)),
            (sized(4, &[(0, Float)]), One(true)),
            (inner, One(true)),
            (mixed, One(false)),
            (sized(8, &[(0, INT), (4, Float)]), One(false)),
            (sized(12, &[(0, Float), (4, Float), (8, Float)]), Two(true, true)),
            (sized(12, &[(0, Float), (4, Float), (8, INT)]), Two(true, false)),
            (sized(16, &[(0, LONG), (8, Double)]), Two(false, true)),
            (sized(16, &[(0, Double), (8, LONG)]), Two(true, false)),
            (sized(16, &[(0, Double), (8, Double)]), Two(true, true)),
            (sized(16, &[(0, REFERENCE), (8, LONG)]), Two(false, false)),
            (sized(16, &[(0, inner), (8, mixed)]), Two(true, false)),
            (sized(16, &[(0, Double), (0, LONG), (8, Double)]), Two(false, true)),
            (sized(24, &[(0, Double), (8, Double), (16, Double)]), Memory),
            (sized(17, &[(0, LONG)]), Memory),
            (sized(9, &[(0, BYTE), (1, LONG)]), Memory),
            (sized(12, &[(0, Float), (4, Double)]), Memory),
            (sized(16, &[(0, Kind::Opaque(8)), (8, LONG)]), Unknown),
            (sized(16, &[(0, LONG), (8, sized(9, &[(1, INT)]))]), Memory),
            (vector(8), Memory),
            (vector(16), Memory),
            (sized(16, &[(0, vector(16))]), Memory),
            (vector(32), Memory),
            (form(Form::Enum { bytes: 1, signed: false }, 1), One(false)),
            (form(Form::Primitive(Double), 8), One(true)),
            (form(Form::Span { element: INT }, 16), Two(false, false)),
        ];
        for (row, (kind, passed)) in table.into_iter().enumerate() {
            assert_eq!((NEW.passed(kind), OLD.passed(kind)), (passed, passed), "row {row}: {kind:?}");
        }
    }

    #[test]
    fn one_field_that_fills_a_value_is_there_many_times() {
        assert_eq!(NEW.passed(sized(16, &[(0, INT)])), ValueRegisters::Two(false, false));
        assert_eq!(NEW.passed(sized(16, &[(0, Kind::Float)])), ValueRegisters::Two(true, true));
        assert_eq!(NEW.passed(sized(12, &[(0, Kind::Float)])), ValueRegisters::Two(true, true));
        assert_eq!(NEW.passed(sized(3, &[(0, BYTE)])), ValueRegisters::One(false));
        assert_eq!(NEW.passed(sized(40, &[(0, LONG)])), ValueRegisters::Memory);
    }

    #[test]
    fn a_value_without_fields_lay_in_memory_before_net_9() {
        assert_eq!(Convention::for_runtime(8), OLD);
        assert_eq!((Convention::for_runtime(9), Convention::for_runtime(10)), (NEW, NEW));
        let empty = sized(1, &[]);
        let with = sized(8, &[(0, empty), (4, INT)]);
        assert_eq!((OLD.passed(empty), OLD.passed(with)), (ValueRegisters::Memory, ValueRegisters::Memory));
        assert_eq!((NEW.passed(empty), NEW.passed(with)), (ValueRegisters::One(false), ValueRegisters::One(false)));
    }

    fn places(kinds: &[Kind]) -> Vec<ArgumentLocation> {
        let mut walk = Walk::new(NEW);
        kinds.iter().map(|kind| walk.locate(*kind)).collect()
    }

    #[test]
    fn registers_are_handed_out_by_kind_and_then_the_stack() {
        use ArgumentLocation::{General, Stack, Vector};
        let found = places(&[INT, Kind::Double, REFERENCE, Kind::Float, LONG, BYTE, INT, INT, INT, Kind::Double, LONG]);
        let general = [General(0), General(1), General(2), General(3), General(4), General(5), Stack(0), Stack(8)];
        let truth = [
            general[0],
            Vector(0),
            general[1],
            Vector(1),
            general[2],
            general[3],
            general[4],
            general[5],
            general[6],
            Vector(2),
            general[7],
        ];
        assert_eq!(found, truth);
        assert_eq!(places(&[Kind::Double; 10])[7..], [Vector(7), Stack(0), Stack(8)]);
    }

    #[test]
    fn what_takes_two_registers_takes_both_or_none() {
        let two = sized(16, &[(0, LONG), (8, LONG)]);
        let mixed = sized(16, &[(0, LONG), (8, Kind::Double)]);
        let found = places(&[INT, INT, INT, INT, INT, two, mixed, INT]);
        assert_eq!(
            found[5..],
            [ArgumentLocation::Stack(0), ArgumentLocation::Pair((5, false), (0, true)), ArgumentLocation::Stack(16)]
        );
        let found = places(&[INT, INT, INT, INT, two, two]);
        assert_eq!(found[4..], [ArgumentLocation::Pair((4, false), (5, false)), ArgumentLocation::Stack(0)]);
    }

    #[test]
    fn memory_is_counted_in_words_and_takes_no_register() {
        let large = sized(20, &[(0, LONG), (8, LONG), (16, INT)]);
        assert_eq!(
            places(&[large, INT, vector(16), INT]),
            [
                ArgumentLocation::Stack(0),
                ArgumentLocation::General(0),
                ArgumentLocation::Stack(24),
                ArgumentLocation::General(1),
            ]
        );
    }

    #[test]
    fn behind_what_can_not_be_placed_nothing_is_known() {
        assert_eq!(
            places(&[INT, Kind::Opaque(16), INT]),
            [ArgumentLocation::General(0), ArgumentLocation::Unknown, ArgumentLocation::Unknown]
        );
        let mut walk = Walk::new(NEW);
        walk.lose();
        assert_eq!(
            (walk.general(), walk.locate(sized(24, &[(0, LONG)]))),
            (ArgumentLocation::Unknown, ArgumentLocation::Unknown)
        );
    }

    #[test]
    fn addresses_before_the_arguments_take_registers() {
        let mut walk = Walk::new(NEW);
        // `this`, the address for the result, the hidden argument.
        assert_eq!([walk.general(), walk.general(), walk.general()], [0, 1, 2].map(ArgumentLocation::General));
        assert_eq!(
            [walk.locate(Kind::Float), walk.locate(INT)],
            [ArgumentLocation::Vector(0), ArgumentLocation::General(3)]
        );
    }

    #[test]
    fn results_have_registers_of_their_own() {
        let two = |a, b| sized(16, &[(0, a), (8, b)]);
        assert_eq!(NEW.result(INT), Some(ArgumentLocation::General(0)));
        assert_eq!(NEW.result(Kind::Double), Some(ArgumentLocation::Vector(0)));
        assert_eq!(NEW.result(two(LONG, LONG)), Some(ArgumentLocation::Pair((0, false), (1, false))));
        assert_eq!(NEW.result(two(LONG, Kind::Double)), Some(ArgumentLocation::Pair((0, false), (0, true))));
        assert_eq!(NEW.result(two(Kind::Double, Kind::Double)), Some(ArgumentLocation::Pair((0, true), (1, true))));
        assert_eq!(NEW.result(sized(24, &[(0, LONG)])), None);
        assert_eq!(NEW.result(vector(16)), None);
        assert_eq!(NEW.result(Kind::Opaque(8)), Some(ArgumentLocation::Unknown));
    }
}
