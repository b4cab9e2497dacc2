//! The clocks: the processor's time stamp counter, and those of the system. All functions but
//! [`is_runnable`] are async-signal-safe.

pub use crate::arch::ticks;
pub use crate::os::clock::{is_runnable, own_cpu_ns, process_cpu_ns, thread_cpu_ns, unix_ns};
