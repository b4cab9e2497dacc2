//! Callbacks that need the runtime's frame pointer: one module per processor architecture.
//! Re-exports the module of the target.

#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "x86_64")]
pub(super) use x86_64::{event_pipe_event_delivered, exception_thrown, object_allocated};
