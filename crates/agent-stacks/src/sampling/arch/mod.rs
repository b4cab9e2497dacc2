//! Registers of processors, in the form that the system gives them.

#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::{PERF_REGISTERS, current, hand_on_unless_ours, interrupted, of_perf};
