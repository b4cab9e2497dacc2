//! Calling conventions of processors, which place arguments and results: a module for each, of which the target's is
//! re-exported.

#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::{ArgumentLocation, Convention, Walk};
