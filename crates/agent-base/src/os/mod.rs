//! Systems: one module for each; the target's is re-exported.
//!
//! What POSIX has (keys of threads, handlers of `fork`, the dynamic loader's `dladdr`) stays where
//! it is used.

#[cfg(target_os = "linux")]
mod linux;

#[cfg(target_os = "linux")]
pub use linux::{clock, descriptors, memory, process, signals, sockets, threads};
