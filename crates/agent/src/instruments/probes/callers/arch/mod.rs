//! The entry point that takes a frame pointer, in assembly: a module for each processor.

#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "x86_64")]
pub(super) use x86_64::find;
