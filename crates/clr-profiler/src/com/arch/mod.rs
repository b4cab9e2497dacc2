//! Callbacks that need the runtime's frame pointer: one module per processor; the target's is
//! re-exported.

#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "x86_64")]
pub(super) use x86_64::{event_pipe_event_delivered, exception_thrown, object_allocated};
