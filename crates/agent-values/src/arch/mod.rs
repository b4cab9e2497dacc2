//! Calling conventions of processors, which place arguments and results, and registers as hooks
//! save them: one module for each processor; the target's is re-exported.

#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "x86_64")]
pub use x86_64::{ArgumentLocation, ArgumentRegisters, Convention, ResultRegisters, StubRegisters, Walk};
