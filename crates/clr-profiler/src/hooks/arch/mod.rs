//! Entry points for the fast hooks: a module for each processor, of which the target's is re-exported.

#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "x86_64")]
pub(super) use x86_64::{enter, leave, nothing, tailcall};
