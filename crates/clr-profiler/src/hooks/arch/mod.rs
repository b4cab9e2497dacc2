//! Entry points for the fast hooks: one module per processor; the target's is re-exported.

#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "x86_64")]
pub(super) use x86_64::{enter, leave, nothing, tailcall};
