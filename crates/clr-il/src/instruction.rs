//! Instructions.

use std::fmt;

use crate::{Error, Label, Opcode, OperandKind, Result};

/// Operand of an instruction.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Operand {
    /// No operand.
    None,
    /// One byte: a variable's number, a small signed constant, or an alignment.
    Byte(u8),
    /// Two bytes: a variable's number.
    Word(u16),
    /// A constant of four bytes.
    Int(i32),
    /// A constant of eight bytes.
    Long(i64),
    /// The bits of a four-byte floating-point number.
    Float(u32),
    /// The bits of an eight-byte floating-point number.
    Double(u64),
    /// A metadata token.
    Token(u32),
    /// The target of a short or long branch.
    Target(Label),
    /// The targets of a `switch`.
    Targets(Box<[Label]>),
}

impl Operand {
    /// Whether this operand is of the kind.
    pub(crate) const fn is_of(&self, kind: OperandKind) -> bool {
        matches!(
            (self, kind),
            (Self::None, OperandKind::None)
                | (Self::Byte(_), OperandKind::Byte)
                | (Self::Word(_), OperandKind::Word)
                | (Self::Int(_), OperandKind::Int)
                | (Self::Long(_), OperandKind::Long)
                | (Self::Float(_), OperandKind::Float)
                | (Self::Double(_), OperandKind::Double)
                | (Self::Token(_), OperandKind::Token)
                | (Self::Target(_), OperandKind::ShortTarget | OperandKind::Target)
                | (Self::Targets(_), OperandKind::Targets)
        )
    }

    /// The branch targets in the operand.
    #[must_use]
    pub fn targets(&self) -> &[Label] {
        match self {
            Self::Target(target) => std::slice::from_ref(target),
            Self::Targets(targets) => targets,
            _ => &[],
        }
    }

    pub(crate) fn targets_mut(&mut self) -> &mut [Label] {
        match self {
            Self::Target(target) => std::slice::from_mut(target),
            Self::Targets(targets) => targets,
            _ => &mut [],
        }
    }
}

/// An instruction with its label.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Instruction {
    pub(crate) label: Label,
    pub(crate) opcode: Opcode,
    pub(crate) operand: Operand,
}

impl Instruction {
    /// Creates an instruction. Fails if its operand is of the wrong kind.
    pub(crate) fn new(label: Label, opcode: Opcode, operand: Operand) -> Result<Self> {
        if !operand.is_of(opcode.operand()) {
            return Err(Error::WrongOperand(opcode));
        }
        Ok(Self { label, opcode, operand })
    }

    /// Label of the instruction.
    #[must_use]
    pub const fn label(&self) -> Label {
        self.label
    }

    /// Opcode of the instruction.
    #[must_use]
    pub const fn opcode(&self) -> Opcode {
        self.opcode
    }

    /// Operand of the instruction.
    #[must_use]
    pub const fn operand(&self) -> &Operand {
        &self.operand
    }

    /// The 4-byte constant that the instruction pushes, whichever of the `ldc.i4` forms it has;
    /// `None` for other instructions.
    #[must_use]
    pub fn constant(&self) -> Option<i32> {
        match (self.opcode, &self.operand) {
            (Opcode::LdcI4S, Operand::Byte(number)) => Some((*number as i8).into()),
            (Opcode::LdcI4, Operand::Int(number)) => Some(*number),
            (opcode, _) => implied_constant(opcode),
        }
    }

    /// Length in bytes, including the operand.
    #[must_use]
    pub fn size(&self) -> usize {
        size(self.opcode, &self.operand)
    }
}

/// The 4-byte constant that an instruction without an operand pushes.
pub(crate) fn implied_constant(opcode: Opcode) -> Option<i32> {
    const FROM_MINUS_ONE: [Opcode; 10] = [
        Opcode::LdcI4M1,
        Opcode::LdcI4_0,
        Opcode::LdcI4_1,
        Opcode::LdcI4_2,
        Opcode::LdcI4_3,
        Opcode::LdcI4_4,
        Opcode::LdcI4_5,
        Opcode::LdcI4_6,
        Opcode::LdcI4_7,
        Opcode::LdcI4_8,
    ];
    FROM_MINUS_ONE.iter().zip(-1..).find(|(implied, _)| **implied == opcode).map(|(_, number)| number)
}

/// Length of an instruction in bytes, with its operand.
pub(crate) fn size(opcode: Opcode, operand: &Operand) -> usize {
    let targets = match operand {
        Operand::Targets(targets) => targets.len() * 4,
        _ => 0,
    };
    opcode.code_size() + opcode.operand().size() + targets
}

impl fmt::Display for Instruction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.label, self.opcode)?;
        match &self.operand {
            Operand::None => Ok(()),
            Operand::Byte(number) => write!(f, " {number}"),
            Operand::Word(number) => write!(f, " {number}"),
            Operand::Int(number) => write!(f, " {number}"),
            Operand::Long(number) => write!(f, " {number}"),
            Operand::Float(bits) => write!(f, " {}", f32::from_bits(*bits)),
            Operand::Double(bits) => write!(f, " {}", f64::from_bits(*bits)),
            Operand::Token(token) => write!(f, " {token:08x}"),
            Operand::Target(target) => write!(f, " {target}"),
            Operand::Targets(targets) => write!(f, " {targets:?}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::Body;

    #[test]
    fn constants_are_read_in_each_of_their_forms() {
        let code = [0x15, 0x16, 0x1e, 0x1f, 0xfe, 0x20, 0, 1, 0, 0, 0x21, 7, 0, 0, 0, 0, 0, 0, 0, 0x2a];
        let bytes = [&[(code.len() as u8) << 2 | 2], &code[..]].concat();
        let body = Body::read(&bytes).expect("a body");
        let constants: Vec<Option<i32>> = body.instructions().iter().map(super::Instruction::constant).collect();
        assert_eq!(constants, [Some(-1), Some(0), Some(8), Some(-2), Some(256), None, None]);
        let raw = crate::raw_instructions(&bytes).expect("code").map(|one| one.expect("an instruction").constant());
        assert_eq!(raw.collect::<Vec<_>>(), constants);
    }
}
