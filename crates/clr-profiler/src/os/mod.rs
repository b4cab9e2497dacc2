//! One module for each operating system. Re-exports the module of the target.
//!
//! POSIX functions (thread keys, the dynamic loader) are called directly where they are needed.

#[cfg(target_os = "linux")]
mod linux;

#[cfg(target_os = "linux")]
pub(crate) use linux::{is_mapped, stack_bounds, without_signals};
