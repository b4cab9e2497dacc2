//! Assembly code, one module for each processor: the fast paths of the hooks, and the loops in
//! which the hooks are measured.

#[cfg(target_arch = "x86_64")]
pub(crate) mod x86_64;
