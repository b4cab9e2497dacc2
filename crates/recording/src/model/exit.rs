//! How a process ended.

use crate::codec::Field;
use crate::payload::{PayloadReader, PayloadWriter};

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// The program returned this exit code.
    Code(i32),
    /// A signal ended the program.
    Signal(i32),
}

/// A `u32` (0 the end was not seen, 1 code, 2 signal) and an `i32`.
impl Field for Option<Exit> {
    fn put(&self, payload: &mut PayloadWriter) {
        let (kind, number) = match *self {
            None => (0, 0),
            Some(Exit::Code(code)) => (1, code),
            Some(Exit::Signal(signal)) => (2, signal),
        };
        payload.u32(kind).u32(number as u32);
    }

    fn read(payload: &mut PayloadReader<'_>) -> Option<Self> {
        let (kind, number) = (payload.u32(), payload.u32() as i32);
        Some(match kind {
            1 => Some(Exit::Code(number)),
            2 => Some(Exit::Signal(number)),
            _ => None,
        })
    }
}
