//! All callbacks of the runtime: the table that lists them, the code generated from this table, and
//! profilers made of several parts.
//!
//! [`Callbacks`] has a method for each notification.
//! [`for_each_callback!`](crate::for_each_callback) passes the list of these methods to a macro of
//! the profiler, which writes all of them at once. This suits profilers that treat every
//! notification alike, such as a log. [`Argument`] formats any argument as text. The example
//! `logging` uses both.
//!
//! # Several parts behind one profiler
//!
//! A profiler that does several things can consist of parts, each with its own implementation of
//! [`Callbacks`]. Tuples, references, [`Arc`], [`Box`], [`Option`], [`OnceLock`], [`Replaceable`],
//! [`Vec`] and slices of parts implement [`Callbacks`] too, and
//! [`compose_callbacks!`](crate::compose_callbacks) implements it for a struct of parts. Every part
//! gets every callback, in the order in which the parts are named. Calls to parts of a known type
//! are static. Arguments are cloned for each part.
//!
//! Where a callback returns an answer, all parts are called, and [`Answer`] combines their answers:
//!
//! | callback | answer of several parts |
//! |---|---|
//! | [`jit_inlining`](crate::Callbacks::jit_inlining) | any [`Inlining::Forbid`] wins |
//! | [`jit_cached_function_search_started`](crate::Callbacks::jit_cached_function_search_started) | all parts must accept the precompiled body |
//! | [`get_rejit_parameters`](crate::Callbacks::get_rejit_parameters), [`object_references`](crate::Callbacks::object_references) | the first error is returned |
//!
//! The boundary to the runtime catches a panic in one part like any other panic. The later parts
//! miss that callback.
//!
//! ```
//! use std::sync::atomic::{AtomicU32, Ordering};
//!
//! use clr_profiler::{Callbacks, Events, ModuleId, ObjectId, Profiler, ProfilerInfo, Result, Setup};
//!
//! #[derive(Default)]
//! struct Throws(AtomicU32);
//!
//! impl Callbacks for Throws {
//!     fn exception_thrown(&self, _exception: ObjectId<'_>) {
//!         self.0.fetch_add(1, Ordering::Relaxed);
//!     }
//! }
//!
//! #[derive(Default)]
//! struct Loads(AtomicU32);
//!
//! impl Callbacks for Loads {
//!     fn module_load_finished(&self, _module: ModuleId, _status: Result<()>) {
//!         self.0.fetch_add(1, Ordering::Relaxed);
//!     }
//! }
//!
//! struct Both {
//!     throws: Throws,
//!     loads: Option<Loads>,
//! }
//!
//! clr_profiler::compose_callbacks! { Both { throws, loads } }
//!
//! impl Profiler for Both {
//!     fn initialize(_info: &ProfilerInfo) -> Result<(Self, Setup)> {
//!         let events = Events::of_parts([Events::EXCEPTIONS, Events::MODULE_LOADS]);
//!         Ok((Self { throws: Throws::default(), loads: Some(Loads::default()) }, Setup::new(events)))
//!     }
//! }
//! ```
//!
//! [`Arc`]: std::sync::Arc
//! [`Callbacks`]: crate::Callbacks
//! [`Inlining::Forbid`]: crate::callback_args::Inlining::Forbid
//! [`OnceLock`]: std::sync::OnceLock

pub(crate) mod all;
mod argument;
mod compose;
mod table;

pub use argument::Argument;
#[doc(hidden)]
pub use compose::together;
pub use compose::{Answer, Replaceable};
