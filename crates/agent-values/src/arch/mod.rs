//! The processors' calling conventions, which place arguments and results, and the registers that
//! hooks save. One module for each processor; the target's module is re-exported.

#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "x86_64")]
pub use x86_64::{ArgumentLocation, ArgumentRegisters, Convention, ResultRegisters, StubRegisters, Walk};
