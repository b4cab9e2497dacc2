//! A framework to write .NET profilers in safe Rust.

mod boundary;
mod client_table;
mod com;
mod error;
mod events;
pub mod hooks;
mod ids;
mod info;
pub mod metadata;
pub mod names;
pub mod notice;
mod per_thread;
mod profiler;
mod setup;
pub mod shadow_stack;

pub use boundary::{first_panic, panics_caught};
pub use client_table::ClientTable;
pub use error::{Error, HResult, Result};
pub use events::Events;
pub use hooks::{CallHooks, FunctionMapper, Mapped, RawHooks};
pub use ids::{
    AppDomainId, AssemblyId, CallerSp, ClassId, ClientId, EventPipeProviderId, EventPipeSessionId, FunctionId,
    GcHandleId, ModuleId, ObjectId, ProcessId, ReJitId, ThreadId, Token,
};
pub use info::{
    AppDomainInfo, ArrayClass, AssemblyInfo, ClassInfo, ClauseKind, CodeRange, DynamicFunction, ExceptionClause,
    FunctionInfo, ModuleFlags, ModuleInfo, ProfilerInfo, RuntimeVersion,
};
pub use metadata::MetadataImport;
pub use names::{FunctionName, NameCache};
pub use notice::Inlining;
pub use per_thread::PerThread;
pub use profiler::Profiler;
pub use setup::{Hooks, Setup};

/// The ABI underneath, for what the framework does not wrap.
pub use clr_profiler_sys as sys;

/// What [`export_profiler!`] expands to; not for direct use.
#[doc(hidden)]
pub mod __export {
    pub use crate::com::{get_class_object, parse_guid};
}
