//! Information interfaces, which the runtime implements: `ICorProfilerInfo` to `ICorProfilerInfo15`
//! (corprof.idl).
//!
//! Each level inherits the previous one, so one pointer of the newest level that the runtime
//! supports is enough. Query the levels downwards from 15.

mod v1;
mod v10_to_v15;
mod v2_to_v3;
mod v4_to_v9;

pub use v1::*;
pub use v2_to_v3::*;
pub use v4_to_v9::*;
pub use v10_to_v15::*;
