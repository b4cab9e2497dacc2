//! Calls of hooks in registers: a module for each processor, of which the target's is re-exported.

#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::call;
