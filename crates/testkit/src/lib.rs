//! Test kit of clrscope: runtimes, fixtures, known answers.
//!
//! ```no_run
//! use clrscope_testkit as testkit;
//!
//! for runtime in testkit::runtimes() {
//!     let output = testkit::run(runtime.command(&testkit::fixture("Recursion")));
//!     let expected = testkit::Expectations::parse(&output.stdout_text());
//!     assert_eq!(expected.calls("Recursion.Program::Fib"), Some(242_785));
//! }
//! ```
//!
//! - [`runtimes`], [`fixture`] and [`run`] start programs. [`Expectations`] reads the known answers
//!   that they print, [`last_count`] the last output of a program that was killed.
//! - [`KnownPaths`] reads a program's notes about its call stacks, and judges samples by them. With
//!   the feature `recordings`, `SampledPaths` judges the samples of a recording.
//! - [`CallerPaths`] holds the paths of callers in exact trees.
//! - [`Slower`] predicts the times of a program after one of its methods is made slower.
//! - [`Service`] is a running web program; [`get`] and [`load`] send requests to it.
//! - [`agent`], [`cli`] and [`example`] return the agent library, the tool and the example
//!   profilers, built once. [`hooked_agent`] returns an agent with injected faults, and with stops
//!   of the runtime whose results [`RuntimeStops`] reads.
//! - [`wait_for`] and related functions wait for events; [`random_pause`] returns a pause that can
//!   be repeated.
//! - [`left_over`] tells what an attached agent has left in a process. [`private_kilobytes`]
//!   returns the private memory of a process, [`unmanaged_kilobytes`] the part of it outside the
//!   managed heap.
//! - [`at_a_time`] shares work among threads.
//! - [`single_file`] writes a single-file program.
//! - [`not_run`] reports what a test can't check on this machine.
//! - [`confine`] runs programs without capabilities, on a small disk, with small files.
//! - [`fetched_runtime`], [`azmcp`], [`from_pypi`] and [`go_pprof`] fetch programs that a test
//!   needs and the machine lacks.
//! - [`compile`] and [`manifest`] rebuild the committed programs in `dotnet/` and show when they
//!   are stale.
//! - [`CrashReport`] tells where a program crashed that must not.
//!
//! All functions panic with a sentence where a test cannot continue, which makes the test fail.

mod artifacts;
mod async_shapes;
mod at_a_time;
mod attempts;
mod azmcp;
#[cfg(feature = "recordings")]
mod burning;
mod caller_paths;
mod chance;
pub mod compile;
pub mod confine;
mod counter;
mod crash_report;
mod debian;
mod expectations;
mod fleet;
mod hostile;
mod known_paths;
mod left_over;
pub mod manifest;
#[cfg(feature = "recordings")]
mod marks;
mod program;
mod pypi;
#[cfg(feature = "recordings")]
mod recompiled;
mod runtime_stops;
mod runtimes;
#[cfg(feature = "recordings")]
mod sampled_paths;
mod say;
mod sdk;
mod signals;
mod single_file;
mod slower;
mod wait;
mod web;
mod workspace;

pub use artifacts::{
    agent, cli, example, framework_example, hooked_agent, load_profiler, native_library, stripped_library,
};
pub use async_shapes::{ASYNC_SHAPES, AsyncShape, RootTallies, RootTally, throws_by_class};
pub use at_a_time::at_a_time;
pub use attempts::attempted;
pub use azmcp::{azmcp, azmcp_command};
#[cfg(feature = "recordings")]
pub use burning::BurningSamples;
pub use caller_paths::CallerPaths;
pub use chance::random_pause;
pub use counter::last_count;
pub use crash_report::CrashReport;
pub use debian::{debian_package, debian_packages, go_pprof};
pub use expectations::{Expectations, ThreadCalls};
pub use fleet::{FleetEngine, fleet_queries};
pub use hostile::HOSTILE;
pub use known_paths::{KnownPaths, Moment, Shape, ShapeTally, Tally};
pub use left_over::{left_over, private_kilobytes, unmanaged_kilobytes};
#[cfg(feature = "recordings")]
pub use marks::{Mark, NO_REQUEST, WorkOfThreads, marks};
pub use program::{Finished, PROFILER_VARIABLES, run, run_within};
pub use pypi::from_pypi;
#[cfg(feature = "recordings")]
pub use recompiled::{SWITCHING_METHODS, recompiled};
pub use runtime_stops::{RuntimeStops, STOPS_VARIABLE};
pub use runtimes::{Runtime, each_runtime, each_web_runtime, fetched_runtime, runtimes};
#[cfg(feature = "recordings")]
pub use sampled_paths::{SampledPaths, methods, samples, start_of_process};
pub use say::{not_run, say};
pub use sdk::Sdk;
pub use signals::let_children_hear;
pub use single_file::single_file;
pub use slower::{PartTime, Slower};
pub use wait::{cpu_time, pause, wait_for, wait_for_work, wait_until};
pub use web::{Service, get, load};
pub use workspace::{fixture, kit, scratch, target_folder, workspace_root};
