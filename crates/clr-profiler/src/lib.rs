//! A framework to write .NET profilers in safe Rust.
//!
//! A profiler is a library that the .NET runtime loads into a program and calls when something
//! happens in it: code is compiled, functions are called, exceptions are thrown, objects are
//! allocated and collected. This crate turns the runtime's COM interfaces into two traits,
//! [`Callbacks`] for these calls and [`Profiler`] for the start, with typed identifiers, names,
//! call hooks and data per thread. Platform so far: Linux x64, .NET 8 to 10.
//!
//! # Five minutes to a working profiler
//!
//! (`clrscope new NAME` creates a crate from another example, with a new identifier and a test.)
//!
//! **1.** `cargo new --lib exception-counter`. In its `Cargo.toml`, make the crate a shared object:
//!
//! ```toml
//! [package]
//! name = "exception-counter"
//! version = "0.1.0"
//! edition = "2024"
//!
//! [lib]
//! crate-type = ["cdylib"]
//!
//! [dependencies]
//! clr-profiler = "0.1"  # of a checkout: { path = "CHECKOUT/crates/clr-profiler" }
//! ```
//!
//! **2.** `src/lib.rs`: a struct, the two traits, and the export. This one counts exceptions and
//! writes the count to a file when the program ends:
//!
//! ```
//! use std::sync::atomic::{AtomicU64, Ordering};
//!
//! use clr_profiler::{Callbacks, Events, ObjectId, Profiler, ProfilerInfo, Result, Setup};
//!
//! #[derive(Default)]
//! struct ExceptionCounter {
//!     thrown: AtomicU64,
//! }
//!
//! impl Profiler for ExceptionCounter {
//!     fn initialize(_info: &ProfilerInfo) -> Result<(Self, Setup)> {
//!         Ok((Self::default(), Setup::new(Events::EXCEPTIONS)))
//!     }
//! }
//!
//! impl Callbacks for ExceptionCounter {
//!     fn exception_thrown(&self, _exception: ObjectId<'_>) {
//!         self.thrown.fetch_add(1, Ordering::Relaxed);
//!     }
//!
//!     fn shutdown(&self) {
//!         let count = self.thrown.load(Ordering::Relaxed);
//!         let _ = std::fs::write("exceptions.txt", format!("{count}\n"));
//!     }
//! }
//!
//! clr_profiler::export_profiler!(ExceptionCounter, "{5B2C1F0E-8D5C-4F6B-A5C7-2F1D9A7B3E11}");
//! # fn main() {}
//! ```
//!
//! **3.** Build it and run a program with it; the identifier is the one in the source (each
//! profiler needs its own, from `uuidgen`):
//!
//! ```sh
//! cargo build --release
//! clrscope run --profiler target/release/libexception_counter.so --clsid '{5B2C1F0E-8D5C-4F6B-A5C7-2F1D9A7B3E11}' -- app.dll
//! cat exceptions.txt
//! ```
//!
//! To load a profiler without `clrscope run`, set the three variables that it sets:
//!
//! ```sh
//! export CORECLR_ENABLE_PROFILING=1
//! export CORECLR_PROFILER='{5B2C1F0E-8D5C-4F6B-A5C7-2F1D9A7B3E11}'
//! export CORECLR_PROFILER_PATH=$PWD/target/release/libexception_counter.so
//! dotnet app.dll
//! ```
//!
//! # Where to go from here
//!
//! | You want | Look at |
//! |---|---|
//! | other notifications | the methods of [`Callbacks`], and the [`Events`] that enable them |
//! | several parts behind one profiler | [`callbacks`](callbacks#several-parts-behind-one-profiler), [`compose_callbacks!`] |
//! | names instead of identifiers | [`NameCache`] |
//! | every call | [`Hooks`], [`CallHooks`], [`FunctionMapper`]; [`ClientTable`] to find your record in a hook |
//! | arguments and results | [`Hooks::with_info`] |
//! | who called whom, also through exceptions | [`CallStacks`] with a [`CallObserver`]; [`shadow_stack`] underneath |
//! | names in hooks | [`NamedFunctions`] |
//! | data per thread | [`PerThread`] |
//! | your own thread for sampling, collections or files | [`OwnThread`] |
//! | to follow objects through collections | [`ObjectTracker`], or [`ObjectHandle`] for single objects |
//! | a readable log | [`NestedLog`] |
//! | to change code, for counting, timing or coverage | [`BodyWriters`], [`il`]; for methods that are already compiled: [`ProfilerInfo::request_rejit`] |
//! | to treat all callbacks alike | [`for_each_callback!`], [`callbacks`] |
//! | more about a function, class, module | [`ProfilerInfo`], [`metadata`] |
//! | to attach to a running program | [`Profiler`](Profiler#attaching) |
//! | tests without .NET | the crate `clr-profiler-fake` |
//! | methods that this crate does not wrap | [`sys`], the raw interfaces |
//!
//! # Rules of the house
//!
//! - Don't write to the program's standard output and error. One stray line makes `dotnet build`
//!   fail.
//! - Callbacks come from many threads at once, some with stacks of 128 KiB: stay below 16 KiB in a
//!   callback and 512 bytes in a hook; hand larger work to a thread of your own.
//! - Work that waits, samples or forces collections belongs on an [`OwnThread`], which ends before
//!   the profiler does.
//! - A hook must not block, must not query the runtime, and must not take a lock that a suspended
//!   thread may hold. Look up names in the mapper or in a callback.
//! - Hooks and callbacks still run after `shutdown`, so the framework never frees the profiler and
//!   keeps the library mapped. Don't count on `shutdown`: it is not called when the program crashes
//!   or is killed.
//! - The runtime reuses its identifiers. Don't keep an identifier after the unload of the thing
//!   that it names.
//! - A panic in a callback or hook is caught, counted ([`panics_caught`]) and kept
//!   ([`first_panic`]); the program runs on. For this the crate replaces the panic hook, because
//!   the standard hook prints. The panic hook is shared by all code in the same library. A panic
//!   hook that a profiler sets later replaces it, and must not print either.
//! - Safe hooks ([`Hooks::safe`], [`Hooks::with_info`]) can be set only once in a process, because
//!   their entry points can't receive the address of a profiler. So a second profiler in the same
//!   library can't have different hooks.
//!
//! # What safe code can still break
//!
//! The runtime checks almost none of a profiler's queries. The framework checks what it can, in
//! release builds too:
//!
//! | subject | why it can't crash the program |
//! |---|---|
//! | identifiers | come from the runtime; the conversion from a number, `from_raw`, is unsafe; null identifiers return errors |
//! | metadata tokens | any number is allowed: a token without a row returns an error |
//! | queries after a detach, or of a profiler that was refused | return an error; a detach waits for running queries |
//! | modules, their classes and functions, metadata and IL after an unload | return an error once [`Callbacks::module_unload_started`] is due; texts, signatures and IL are copies |
//! | objects and their texts | can't leave their callback, and methods that may allow a collection are refused there: [`ProfilerInfo::suspend`], [`ProfilerInfo::class_from_token`], [`ProfilerInfo::request_rejit`], ... |
//! | types that have not been loaded | methods that may load a type are refused on threads that the runtime does not know: [`ProfilerInfo::class_from_token`], [`ProfilerInfo::class_from_token_and_type_args`], [`ProfilerInfo::function_from_token_and_type_args`] |
//! | handles | [`ObjectHandle::with`] is refused where a collection may move the object |
//! | addresses of code | [`ProfilerInfo::function_at`] is unsafe, because the runtime reads memory at the address; start addresses of code have the type [`CodeStart`] |
//! | changed IL | [`ProfilerInfo::set_il_function_body`], [`BodyWriters::write_module`] are unsafe: nothing verifies the code |
//!
//! In the remaining cases even a profiler without `unsafe` can crash its program:
//!
//! - **Unloaded things that were never queried.** The identifier of a class or function does not
//!   reveal its module. The framework knows the module only if the profiler queried the
//!   declaration, type arguments or array elements, if the function was compiled, or, with
//!   [`Events::CLASS_LOADS`], if the class was loaded. The profiler itself must forget other
//!   classes and functions, and dynamic methods, assemblies and threads: in
//!   [`Callbacks::module_unload_started`] (only collectible assemblies are unloaded),
//!   [`Callbacks::dynamic_method_unloaded`] and [`Callbacks::thread_destroyed`].
//! - **Queries in hooks.** A collection waits for a hook to return, so a query in a hook that waits
//!   for a collection deadlocks. Debug builds refuse such queries; release builds save the cost of
//!   the check.
//! - **A suspended program.** While [`Suspended`] lives, code that takes a lock of a suspended
//!   thread deadlocks. The C library's allocator and standard streams have such locks, too.
//! - **The raw interface**: [`ProfilerInfo::as_raw`] and [`sys`] check nothing; each of their calls
//!   is unsafe.
//!
//! # When nothing happens
//!
//! The runtime reports nothing when it can't load a profiler. `clrscope run --profiler LIB --clsid
//! GUID -- PROGRAM` sets the variables, checks what can be checked in advance, and reports whether
//! the profiler was loaded. For this the framework writes a load log to the file that
//! `CLR_PROFILER_LOAD_LOG` names: a line at load, at refusal and at unload. By hand, check in this
//! order: the path is absolute and the library opens (`ldd`), the identifier in the variable has
//! braces and is the one in the source, `DOTNET_EnableDiagnostics` is not 0, and `initialize` does
//! not fail: [`Profiler::setup_refused`] receives the reason if the framework refused its setup.
//!
//! # Tests and debugging
//!
//! The crate `clr-profiler-fake` is a runtime without .NET for unit tests. Debug builds of this
//! crate refuse queries in places where they may hang or crash the program, with a reason. So run
//! the profiler as a debug build first.
//!
//! `clrscope run --debugger gdb|lldb|wait --profiler ...` starts the program under a debugger. By
//! hand: `gdb --args dotnet app.dll`, break in `DllGetClassObject`, with `handle SIG34 SIG35 SIG36
//! SIGUSR1 nostop noprint` since the runtime uses these signals itself. When a profiler seems to do
//! nothing, look at [`panics_caught`] and [`first_panic`]: the framework catches panics in
//! callbacks, and the program continues.

// A dropped result is a mistake of the profiler's author. Types that mirror the runtime may grow
// with it; each exhaustive type says why it is exhaustive.
#![warn(clippy::must_use_candidate, clippy::return_self_not_must_use)]
#![warn(clippy::exhaustive_enums, clippy::exhaustive_structs)]

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
compile_error!("clr-profiler supports Linux on x64 only: build for x86_64-unknown-linux-gnu");

mod arch;
mod body_size;
mod body_writers;
mod boundary;
mod call_context;
mod call_stacks;
pub mod callback_args;
pub mod callbacks;
mod client_table;
mod collectible_ids;
mod com;
mod current_stack;
mod error;
mod events;
mod exception_reader;
mod gate;
mod guid;
mod hooks;
mod ids;
mod il_map;
mod info;
mod load_log;
mod log;
pub mod metadata;
mod names;
mod os;
mod own_thread;
mod owner_lock;
mod per_thread;
mod profiler;
mod setup;
pub mod shadow_stack;
mod stop;
mod text;
mod tracker;
mod unloads;

pub use body_writers::{BodyWriter, BodyWriters, MethodToWrite, WrittenBody, WrittenModule};
pub use boundary::{first_panic, panics_caught};
pub use call_stacks::{Block, Call, CallObserver, CallStacks};
pub use callbacks::all::Callbacks;
pub use client_table::ClientTable;
pub use error::{Error, HResult, Result};
pub use events::Events;
pub use exception_reader::{ExceptionContent, ExceptionReader};
pub use guid::Guid;
pub use hooks::{CallHooks, FunctionMapper, HookedCall, Hooks, InfoHooks, Mapped, RawHooks};
pub use ids::{
    AppDomainId, AssemblyId, CallerSp, ClassId, ClientId, EventPipeEventId, EventPipeProviderId, EventPipeSessionId,
    FunctionId, GcHandleId, ModuleId, ObjectId, ProcessId, ReJitId, ThreadId, Token,
};
pub use il_map::IlMove;
pub use info::{
    AppDomainInfo, ArrayClass, ArrayObject, AssemblyInfo, ClassInfo, ClassLayout, ClauseKind, CodeRange, CodeStart,
    DynamicFunction, EventDefinition, ExceptionClause, FunctionInfo, HandleKind, HeapRange, IlPlace, IlRange, Inliners,
    ModuleFlags, ModuleInfo, NoStack, ObjectHandle, ProfilerInfo, ProviderConfig, ProviderState, Reference,
    RuntimeVersion, StackFrame, StackWalk, StaticAddress, StaticKind, StringLayout, Suspended, Utf16Text,
};
pub use log::NestedLog;
pub use names::{Closure, FunctionName, NameCache, NamedFunctions, SourceKind, StateMachine};
pub use own_thread::OwnThread;
pub use per_thread::PerThread;
pub use profiler::Profiler;
pub use setup::Setup;
pub use tracker::ObjectTracker;

/// Method bodies: reads, changes and writes IL.
pub use clr_il as il;
/// The raw interfaces, for methods that the framework does not wrap.
pub use clr_profiler_sys as sys;

/// Parts that a profiler rarely needs, and that may change in any version: with them clrscope's
/// agent walks stacks by reading their words, without the runtime.
///
/// These parts are memory-safe but easy to misuse: the caller must know the meaning of each stack
/// word.
pub mod internals {
    pub use crate::current_stack::{
        CurrentStack, FrameChain, HiddenReturn, NativeFrame, ReturnAddress, StackWords, hidden_returns, library_of,
    };
}

/// Expansion of [`export_profiler!`]; not for direct use.
#[doc(hidden)]
pub mod __export {
    pub use crate::com::get_class_object;
    pub use crate::profiler::Loader;
}

/// Functions with which the crate `clr-profiler-fake` replaces the runtime; not for direct use.
///
/// They can't be part of the public interface. Hook entry points have no parameter for a profiler,
/// so a process has only one set of them, and only this crate can assign it to one fake runtime
/// after another. A class factory for one profiler, made by a closure with values captured in a
/// test, is of no use to a library that .NET loads.
#[cfg(feature = "testing")]
#[doc(hidden)]
pub mod testing {
    pub use crate::com::factory;
    pub use crate::hooks::testing::{keep_hooks, with_hooks};
}

/// Compiles the README's example as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
