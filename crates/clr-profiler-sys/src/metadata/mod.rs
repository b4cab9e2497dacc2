//! Metadata interfaces (cor.h), obtained from `ICorProfilerInfo::GetModuleMetaData`.
//!
//! The methods that enumerate take a pointer to an [`HCORENUM`](crate::types::HCORENUM), which is
//! null for the first call. They fill an array and return `S_FALSE` when no elements were left.
//! `CloseEnum` frees the enumeration.

mod assembly_emit;
mod assembly_import;
mod dispenser;
mod emit;
mod import;
mod import2;
mod tables;

pub use assembly_emit::*;
pub use assembly_import::*;
pub use dispenser::*;
pub use emit::*;
pub use import::*;
pub use import2::*;
pub use tables::*;
