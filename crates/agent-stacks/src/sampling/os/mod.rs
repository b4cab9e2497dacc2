//! Systems' ways to interrupt threads, by signals and by perf events.

#[cfg(target_os = "linux")]
mod linux;

#[cfg(target_os = "linux")]
pub(crate) use linux::{perf, signal, task, timers};
