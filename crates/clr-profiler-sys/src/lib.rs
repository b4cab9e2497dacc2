//! The ABI of the .NET profiling interfaces: interfaces, identifiers, flags, structures and result
//! codes.
//!
//! The crate contains only declarations: the binary interface between a profiler and CoreCLR. It
//! uses the names of `corprof.idl`, `cor.h` and `corhdr.h`, so that their documentation applies.
//! The crate `clr-profiler` is a safe layer on top.
//!
//! # Reading an interface
//!
//! Each interface is a trait with the attribute [`windows_core::interface`]. For `ICorProfilerInfo`
//! the attribute generates:
//! * the type `ICorProfilerInfo`, a counted pointer on which the methods are called and which
//!   dereferences to its parent interface;
//! * the trait `ICorProfilerInfo_Impl`, which an object with `windows_core::implement` implements;
//!   it has the documentation of each method;
//! * the struct `ICorProfilerInfo_Vtbl`, the function table in memory.
//!
//! Parameters are plain integers and raw pointers on purpose. An interface that is returned through
//! a `*mut *mut c_void` is an owned reference: take it over with `Interface::from_raw` or release
//! it.
//!
//! # Conventions
//!
//! `HRESULT` and `BOOL` are 32 bits, `WCHAR` is 16 bits (UTF-16, `u16` here), `ULONG` and `DWORD`
//! are 32 bits on every platform, ids are pointer-sized. A buffer length of a name counts UTF-16
//! units including the terminating zero. An enumeration is a transparent struct around a `u32`,
//! never a Rust `enum`: the runtime may send values that this crate does not know.
//!
//! Every method is unsafe to call. The interface pointer must be alive, pointers must be valid for
//! the method's reads and writes, and the runtime's rules for threads and callbacks apply.
#![allow(
    non_camel_case_types,
    non_snake_case,
    non_upper_case_globals,
    reason = "types, methods and constants carry the names of the interface definitions"
)]
#![allow(clippy::too_many_arguments, reason = "the interface definitions decide how many there are")]
#![warn(clippy::must_use_candidate, clippy::return_self_not_must_use)]
// No lint against exhaustive structs: the runtime defines their layout, and callers create them
// field by field.
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

/// Makes doctests compile the README's example.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
