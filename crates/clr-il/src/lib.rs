//! Reads, edits and writes the bodies of .NET methods: CIL, the bytecode that .NET compilers emit.
//!
//! A profiler that counts calls, measures time or code coverage inserts instructions into methods
//! before the runtime compiles them. This crate does the work on the bytes. [`Body::read`] parses a
//! body into instructions with labels, and exception clauses. [`Edits`] list the code to insert.
//! [`Body::apply`] inserts it. [`Body::write`] returns the new bytes, with correct branches,
//! `switch` tables, clause ranges and stack depth. Parts without edits stay unchanged, byte for
//! byte.
//!
//! ```
//! use clr_il::{Body, Code, Edits, Opcode};
//!
//! // if (arg) return 1; return 2;
//! let bytes = [7 << 2 | 2, 0x02, 0x2c, 0x02, 0x17, 0x2a, 0x18, 0x2a];
//! let mut body = Body::read(&bytes)?;
//! assert_eq!(body.write()?, bytes);
//!
//! static mut CALLS: u64 = 0;
//! let mut edits = Edits::new();
//! edits.at_entry(Code::add_one(&raw const CALLS as u64));
//! edits.at_returns(Code::new().plain(Opcode::Nop));
//! body.apply(&edits)?;
//! let changed = Body::read(&body.write()?)?;
//! assert!(changed.max_stack() >= 3 && changed.instructions().len() > 12);
//! # Ok::<(), clr_il::Error>(())
//! ```
//!
//! | to | look at |
//! |---|---|
//! | iterate over instructions without allocating | [`raw_instructions`], [`Opcode`] |
//! | get the length of a body | [`length`], [`length_by`] |
//! | read, change, write | [`Body`], [`Edits`], [`Code`] |
//! | run code at each exit, or only at exits by exception | [`Edits::at_exits`], [`Edits::at_failures`], with [`append_local`] and [`method_shape`] for the result |
//! | keep a value between two positions | [`Edits::new_local`], [`Code::store`], [`Code::load`] |
//! | merge the edits of several authors | [`Edits::merge`] |
//!
//! # What is checked and what is not
//!
//! Bytes are not trusted: each defect is a separate [`Error`] variant, and memory use stays within
//! a small multiple of their length. The result of an edit is as correct as the inserted code. The
//! code's use of the stack is checked. Its types and tokens are not checked, neither here nor by
//! the runtime.
//!
//! No unsafe code and no dependencies. Source of the format: ECMA-335, parts II.25.4 and III.

#![forbid(unsafe_code)]
#![warn(clippy::must_use_candidate, clippy::return_self_not_must_use)]
#![warn(clippy::exhaustive_enums, clippy::exhaustive_structs)]

mod apply;
mod body;
mod clause;
mod code;
mod edits;
pub mod element;
mod error;
mod format;
mod instruction;
mod label;
mod opcode;
mod read;
mod signature;
mod stack;
mod write;

pub use body::Body;
pub use clause::{Clause, ClauseKind};
pub use code::{Code, Mark, NewLocal};
pub use edits::{Edits, ResultPlace};
pub use error::{Error, Result};
pub use format::{check, length, length_by};
pub use instruction::{Instruction, Operand};
pub use label::Label;
pub use opcode::{Flow, Opcode, OperandKind};
pub use read::{RawInstruction, RawInstructions, raw_code, raw_instructions};
pub use signature::{MethodShape, append_local, append_number, method_shape};
pub use write::Move;

/// Entry points for fuzzing. They accept arbitrary bytes.
#[doc(hidden)]
pub mod fuzzing {
    use crate::{Body, Code, Edits, ResultPlace, append_local, method_shape};

    /// Reads bytes as a body. For a valid body, checks that writing it returns the same bytes, and
    /// that each kind of edit gives a readable body with the expected meaning.
    ///
    /// # Panics
    /// If a check fails.
    pub fn change_body(bytes: &[u8]) {
        let Ok(body) = Body::read(bytes) else { return };
        assert_eq!(body.write().as_deref(), Ok(bytes), "a body that nobody changed");
        let mut changed = body.clone();
        let mut edits = Edits::new();
        edits.lengthen_branches();
        for place in body.places() {
            edits.before(place, Code::new().plain(crate::Opcode::Nop));
        }
        let read_again = |body: &Body| Body::read(&body.write().expect("written")).expect("read again");
        changed.apply(&edits).expect("nothing is in the way of nops");
        assert!(read_again(&changed).means(&body), "long branches and nops change nothing");
        // The last instruction may have no successor.
        let inner = body.instructions().split_last().map_or(&[][..], |(_, inner)| inner);
        for branch in inner.iter().filter(|branch| !branch.opcode().is_leave()) {
            for target in 0..branch.operand().targets().len() {
                edits.on_target(branch.label(), target, Code::new().plain(crate::Opcode::Nop));
            }
        }
        edits.at_entry(Code::add_one(1));
        edits.at_entry(Code::new().catching(0x0100_0001, Code::add_one(3)));
        edits.at_returns(Code::set_one(1));
        edits.at_exits(Code::add_one(2));
        let kept = edits.new_local(&[8]);
        edits.at_entry(Code::new().plain(crate::Opcode::LdcI4_1).store(kept));
        edits.at_failures(Code::new().load(kept).plain(crate::Opcode::Pop));
        edits.set_first_local(1);
        edits.set_result(ResultPlace::Local(0));
        edits.drop_tail_calls();
        let mut wrapped = body;
        if wrapped.apply(&edits).is_ok() {
            assert!(read_again(&wrapped).means(&wrapped), "what is written is what was meant");
        }
    }

    /// Reads bytes as signatures.
    pub fn read_signatures(bytes: &[u8]) {
        let _ = method_shape(bytes);
        let _ = append_local(bytes, &[8]);
    }
}

/// Makes doctests compile the README's example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
