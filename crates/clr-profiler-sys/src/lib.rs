//! The ABI of the .NET profiling interfaces: interfaces, identifiers, flags, structures and result
//! codes.
//!
//! Nothing here does anything: the crate says how a profiler and CoreCLR talk in memory, with the
//! names of `corprof.idl`, `cor.h` and `corhdr.h` so that their documentation applies. A safe layer
//! is the crate `clr-profiler`.
//!
//! # Reading an interface
//!
//! Each interface is a trait under [`windows_core::interface`], which makes of `ICorProfilerInfo`:
//! * the type `ICorProfilerInfo`, a counted pointer on which the methods are called and which
//!   dereferences to its parent interface;
//! * the trait `ICorProfilerInfo_Impl`, to be implemented for an object made with
//!   `windows_core::implement`; each method's documentation is there;
//! * the struct `ICorProfilerInfo_Vtbl`, the table in memory.
//!
//! Parameters are plain integers and raw pointers on purpose: an interface that comes back in a
//! `*mut *mut c_void` is an owned reference, to be taken over with `Interface::from_raw` or
//! released.
//!
//! # Conventions
//!
//! `HRESULT` and `BOOL` are 32 bits, `WCHAR` is 16 bits (UTF-16, `u16` here), `ULONG` and `DWORD`
//! are 32 bits on every platform, ids are pointer-sized. A buffer length of a name counts UTF-16
//! units with the terminating zero. An enumeration is a transparent struct around a `u32`, never a
//! Rust `enum`: the runtime may send values this crate has not heard of.
//!
//! Every method is unsafe to call: the interface pointer must be alive, pointers must be valid for
//! what the method reads or writes, and the runtime's own rules (which thread, which callback)
//! apply.
#![allow(
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    reason = "types, methods and constants carry the names of the interface definitions"
)]
#![allow(clippy::too_many_arguments, reason = "the interface definitions decide how many there are")]
#![warn(clippy::must_use_candidate, clippy::return_self_not_must_use)]
// No lint against exhaustive structs: their layout is the runtime's, and callers make them field by
// field.
#![warn(clippy::exhaustive_enums)]

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
compile_error!("clr-profiler-sys supports Linux on x64 only: build for x86_64-unknown-linux-gnu");

#[macro_use]
mod named;

pub mod callback;
pub mod class_factory;
pub mod control;
pub mod cor;
pub mod enumerators;
pub mod enums;
pub mod flags;
pub mod function_pointers;
pub mod hresult;
pub mod iids;
pub mod info;
pub mod metadata;
pub mod structs;
pub mod types;

/// The crate of the COM types (`GUID`, `HRESULT`, `BOOL`, `IUnknown`, `Interface`), in the version
/// that these interfaces use.
pub use windows_core;

/// So that the README's example is compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
