//! Calls of hooks in registers: one module per processor; the target's is re-exported.

#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::call;
