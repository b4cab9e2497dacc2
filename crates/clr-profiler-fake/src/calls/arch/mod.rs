//! Calls hooks with arguments in registers: one module per processor architecture. The target's
//! module is re-exported.

#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::call;
