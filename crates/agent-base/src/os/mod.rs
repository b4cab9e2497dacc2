//! Systems: one module for each. The module of the target system is re-exported.
//!
//! POSIX interfaces (keys of threads, handlers of `fork`, the dynamic loader's `dladdr`) stay where
//! they are used.

#[cfg(target_os = "linux")]
mod linux;

#[cfg(target_os = "linux")]
pub use linux::{clock, descriptors, memory, process, signals, sockets, threads};
