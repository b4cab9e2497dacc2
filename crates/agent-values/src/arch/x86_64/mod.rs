//! x86-64, by the System V convention.

mod convention;
mod registers;

pub use convention::{ArgumentLocation, Convention, Walk};
pub use registers::{ArgumentRegisters, ResultRegisters, StubRegisters};
