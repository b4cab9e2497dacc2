//! Callback interfaces, which a profiler implements: `ICorProfilerCallback` to
//! `ICorProfilerCallback11` (corprof.idl).
//!
//! The runtime calls them on the thread of the event, and on several threads concurrently.

mod v1;
mod v2_to_v11;

pub use v1::*;
pub use v2_to_v11::*;
