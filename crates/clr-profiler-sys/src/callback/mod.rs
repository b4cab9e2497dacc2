//! What a profiler answers: `ICorProfilerCallback` to `ICorProfilerCallback11` (corprof.idl).
//!
//! The runtime calls them on whatever thread the event happens, concurrently.

mod first;
mod later;

pub use first::*;
pub use later::*;
