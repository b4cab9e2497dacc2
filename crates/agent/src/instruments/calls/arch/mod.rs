//! The fast paths of the hooks, and the loops in which they are measured, in assembly: a module for
//! each processor.

#[cfg(target_arch = "x86_64")]
pub(crate) mod x86_64;
