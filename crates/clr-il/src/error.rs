//! Reasons why bytes are not a valid body, and why a body can't be edited.

use std::fmt;

use crate::{Label, Opcode};

/// A result with [`Error`] as error type.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Reason why a body can't be read, changed or written. Offsets count bytes from the first
/// instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Error {
    /// There are no bytes.
    Empty,
    /// The lowest bits of the first byte mean neither a tiny nor a fat header.
    NoHeader,
    /// A fat header whose stated size is not three words.
    HeaderSize,
    /// The bytes end within the header.
    CutHeader,
    /// The header states a code size of zero.
    NoCode,
    /// The code size in the header is larger than the available bytes.
    CutCode,
    /// The bytes end within the sections after the code.
    CutSections,
    /// A section that is shorter than its own header.
    ShortSection,
    /// More sections than any method has.
    TooManySections,
    /// There are bytes after the body's stated end.
    BytesBehind,
    /// Bytes that are not an instruction.
    UnknownInstruction {
        /// Offset of the instruction.
        offset: u32,
    },
    /// The code ends within an instruction.
    CutInstruction {
        /// Offset of the instruction.
        offset: u32,
    },
    /// A branch to an offset that is not the start of an instruction.
    Target {
        /// Offset of the branch.
        offset: u32,
    },
    /// An exception clause whose bounds are not at instructions, or whose kind is unknown.
    Clause {
        /// Index in the table, from 0.
        index: u32,
    },
    /// The changed code would be longer than 2 GiB.
    TooLong,
    /// The method has no position with this label.
    NoSuchPlace(Label),
    /// Code was to run after an instruction that never continues with the next one: a branch, a
    /// return, a throw.
    NothingAfter(Label),
    /// Code was to run on the edge to a target that the instruction does not have. For this purpose
    /// `leave` has no targets: its edge leads out of a block.
    NoSuchTarget(Label),
    /// An operand of the wrong kind for the instruction.
    WrongOperand(Opcode),
    /// Inserted code pops values that it has not pushed, or leaves values on the stack.
    Unbalanced,
    /// Inserted code leaves the method or a block, or its last instruction does not continue with
    /// the next one.
    Leaves(Opcode),
    /// Inserted code branches to a mark that has no position.
    NoSuchMark,
    /// Edits with new local variables whose numbers are not set.
    LocalsUnknown,
    /// Edits with code at exits or failures, without a location for the method's result.
    ResultUnknown,
    /// The method passes its arguments to another method by `jmp`, and `jmp` is not allowed in the
    /// protected block that the edits need.
    Jumps,
    /// Code was to run around a tail call, or between a tail call and its return, without
    /// [`Edits::drop_tail_calls`].
    ///
    /// [`Edits::drop_tail_calls`]: crate::Edits::drop_tail_calls
    TailCalls,
    /// The stack depth is not defined: an instruction is reached with different depths, or a value
    /// is missing.
    Depth {
        /// Index of the instruction, from 0.
        index: u32,
    },
    /// Bytes that are not a signature, or are a signature of an unexpected kind.
    Signature,
    /// More than 65,534 local variables.
    TooManyLocals,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sentence = match self {
            Self::UnknownInstruction { offset } => {
                return write!(f, "no instruction begins with the bytes at {offset}");
            }
            Self::CutInstruction { offset } => return write!(f, "the code ends within the instruction at {offset}"),
            Self::Target { offset } => {
                return write!(f, "the instruction at {offset} branches to where none begins");
            }
            Self::Clause { index } => return write!(f, "exception clause {index} has odd bounds or an unknown kind"),
            Self::NoSuchPlace(place) => return write!(f, "the method has no place {place}"),
            Self::NothingAfter(place) => return write!(f, "nothing runs after the instruction at {place}"),
            Self::NoSuchTarget(place) => return write!(f, "the instruction at {place} has no such target"),
            Self::WrongOperand(opcode) => return write!(f, "{opcode} has no such operand"),
            Self::Leaves(opcode) => return write!(f, "inserted code must go on with the method, and has {opcode}"),
            Self::Depth { index } => return write!(f, "the stack's depth at instruction {index} can't be told"),
            Self::Empty => "the body is empty",
            Self::NoHeader => {
                "the body begins with no header: its lowest bits are neither those of a tiny nor of a fat one"
            }
            Self::HeaderSize => "the fat header does not say that it has three words",
            Self::CutHeader => "the body ends within its header",
            Self::NoCode => "the body has no instruction",
            Self::CutCode => "the header says that the body is longer than its bytes",
            Self::CutSections => "the body ends within its sections",
            Self::ShortSection => "a section is shorter than its own header",
            Self::TooManySections => "the body has more sections than any method",
            Self::BytesBehind => "the body has more bytes than its header says",
            Self::TooLong => "the code would be longer than 2 GiB",
            Self::Unbalanced => "inserted code must leave the stack as it was",
            Self::NoSuchMark => "inserted code branches to a mark that it does not have",
            Self::LocalsUnknown => "which numbers the new local variables have got was not said",
            Self::ResultUnknown => "where the method's result goes at its exits was not said",
            Self::Jumps => "the method ends by jmp, which can't be done out of a protected block",
            Self::TailCalls => "the method ends by tail calls, which other code would make plain ones",
            Self::Signature => "the signature can't be read",
            Self::TooManyLocals => "the method has too many local variables for another",
        };
        f.write_str(sentence)
    }
}

impl std::error::Error for Error {}
