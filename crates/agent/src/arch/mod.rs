//! Processors: a module for each.
//!
//! Instruments keep what only they need of it in folders `arch` of their own.

#[cfg(target_arch = "x86_64")]
pub(crate) mod x86_64;
