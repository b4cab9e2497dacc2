//! The entry points of the hooks, in assembly: a module for each processor.

#[cfg(target_arch = "x86_64")]
mod x86_64;
