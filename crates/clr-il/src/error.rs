//! Reasons why bytes are no body, and why a body can't be changed as asked.

use std::fmt;

use crate::{Label, Opcode};

/// Finding, or the reason why there is none.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Reason why a body can't be read, changed or written. Offsets count bytes from the first
/// instruction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Error {
    /// There are no bytes.
    Empty,
    /// The lowest bits of the first byte are neither those of a tiny nor of a fat header.
    NoHeader,
    /// A fat header that does not say that it has three words.
    HeaderSize,
    /// The bytes end within the header.
    CutHeader,
    /// The header says that there is no instruction.
    NoCode,
    /// The header says that the code is longer than the bytes.
    CutCode,
    /// The bytes end within the sections after the code.
    CutSections,
    /// A section that is shorter than its own header.
    ShortSection,
    /// More sections than any method has.
    TooManySections,
    /// More bytes than the header says.
    BytesBehind,
    /// Bytes that are no instruction.
    UnknownInstruction {
        /// Place.
        offset: u32,
    },
    /// The code ends within an instruction.
    CutInstruction {
        /// Place.
        offset: u32,
    },
    /// A branch to where no instruction begins.
    Target {
        /// Place of the branch.
        offset: u32,
    },
    /// An exception clause whose bounds are no instructions, or whose kind is unknown.
    Clause {
        /// Number in the order of the table, from 0.
        index: u32,
    },
    /// The changed code would be longer than 2 GiB.
    TooLong,
    /// A place that the method does not have.
    NoSuchPlace(Label),
    /// Code was to run after an instruction after which nothing runs: a branch, a return, a throw.
    NothingAfter(Label),
    /// Code was to run on the way to a target that the instruction does not have. `leave` has none:
    /// its way is out of a block.
    NoSuchTarget(Label),
    /// An operand that the instruction does not have.
    WrongOperand(Opcode),
    /// Code to be inserted that takes values from the stack that it has not put there, or leaves
    /// some.
    Unbalanced,
    /// Code to be inserted that leaves the method or a block, or ends where the next instruction
    /// does not follow.
    Leaves(Opcode),
    /// Code to be inserted that branches to a place of its own that it does not have.
    NoSuchMark,
    /// Edits with new local variables that don't say which numbers these have got.
    LocalsUnknown,
    /// Edits with code at exits or failures that don't say where the method's result goes.
    ResultUnknown,
    /// The method hands its arguments over to another (`jmp`), which can't be done out of a
    /// protected block.
    Jumps,
    /// Code was to run between a tail call and its return, or around one, without
    /// [`Edits::drop_tail_calls`].
    ///
    /// [`Edits::drop_tail_calls`]: crate::Edits::drop_tail_calls
    TailCalls,
    /// The depth of the stack can't be told: places are reached with different depths, or a value
    /// is missing.
    Depth {
        /// Number of the instruction, from 0.
        index: u32,
    },
    /// Bytes that are no signature, or none of the kind asked for.
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
