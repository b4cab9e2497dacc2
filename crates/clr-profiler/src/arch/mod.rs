//! Processors: one module each; the target's is re-exported.
//!
//! Hooks keep their assembly in a folder `arch` of their own.

#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::{FRAME_POINTER_IN_CONTEXT, STACK_POINTER_IN_CONTEXT, frame_in_upper_halves};
