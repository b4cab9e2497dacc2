//! Metadata interfaces (cor.h), obtained from `ICorProfilerInfo::GetModuleMetaData`.
//!
//! Enumerations take a pointer to an [`HCORENUM`](crate::types::HCORENUM) that is null at first, fill an array, and answer `S_FALSE` when
//! nothing was left; `CloseEnum` frees them.

mod assembly_import;
mod import;
mod import2;

pub use assembly_import::*;
pub use import::*;
pub use import2::*;
