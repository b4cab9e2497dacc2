//! Operating systems: one module each; the target's is re-exported.
//!
//! What POSIX has (keys of threads, the dynamic loader) stays where it is used.

#[cfg(target_os = "linux")]
mod linux;

#[cfg(target_os = "linux")]
pub(crate) use linux::{is_mapped, stack_bounds, without_signals};
