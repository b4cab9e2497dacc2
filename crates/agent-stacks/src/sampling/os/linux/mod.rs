//! Linux.

pub(crate) mod perf;
pub(crate) mod signal;
pub(crate) mod task;
pub(crate) mod timers;
