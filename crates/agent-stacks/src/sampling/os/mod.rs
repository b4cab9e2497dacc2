//! The systems' ways to interrupt threads: signals and perf events.

#[cfg(target_os = "linux")]
mod linux;

#[cfg(target_os = "linux")]
pub(crate) use linux::{perf, signal, task, timers};
