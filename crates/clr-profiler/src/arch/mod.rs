//! Code that depends on the processor architecture: one module per architecture. The target's
//! module is re-exported.
//!
//! The hooks have their own folder `arch` for assembly code.

#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::{FRAME_POINTER_IN_CONTEXT, STACK_POINTER_IN_CONTEXT, frame_in_upper_halves};
