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
//! - [`runtimes`], [`fixture`], [`run`] start programs; [`Expectations`] reads what they say about
//!   themselves, [`last_count`] what one said before it was killed.
//! - [`KnownPaths`] reads what a program noted about its call stacks, and judges samples of it.
//!   With the feature `recordings`, `SampledPaths` judges those of a recording.
//! - [`CallerPaths`] has the callers that exact trees have.
//! - [`Slower`] predicts the times of a program in which one method is made slower.
//! - [`Service`] is a program that serves; [`get`] and [`load`] ask it something.
//! - [`agent`], [`cli`] and [`example`] give the agent library, the tool and the example profilers,
//!   built once; [`hooked_agent`] one with faults, and with stops whose [`RuntimeStops`] this
//!   reads.
//! - [`wait_for`] and its neighbours wait for events, and [`random_pause`] is a pause that can be
//!   repeated.
//! - [`left_over`] says what an agent that was attached has left in a process,
//!   [`private_kilobytes`] what memory the process has, [`unmanaged_kilobytes`] what of it lies
//!   outside the managed heap.
//! - [`at_a_time`] shares work among threads.
//! - [`single_file`] writes a program that holds its assemblies itself.
//! - [`not_run`] says what a test can't check on this machine.
//! - [`confine`] runs programs without powers, on a small disk, with small files.
//! - [`fetched_runtime`], [`azmcp`], [`from_pypi`] and [`go_pprof`] fetch what a test wants and the
//!   machine lacks.
//! - [`compile`] and [`manifest`] rebuild the committed programs in `dotnet/` and show when they
//!   are stale.
//!
//! Everything here panics with a sentence where a test cannot go on: that is how a test fails.

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
mod debian;
mod expectations;
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

pub use artifacts::{agent, cli, example, framework_example, hooked_agent, load_profiler, native_library};
pub use async_shapes::{ASYNC_SHAPES, AsyncShape, RootTallies, RootTally, throws_by_class};
pub use at_a_time::at_a_time;
pub use attempts::attempted;
pub use azmcp::{azmcp, azmcp_command};
#[cfg(feature = "recordings")]
pub use burning::BurningSamples;
pub use caller_paths::CallerPaths;
pub use chance::random_pause;
pub use counter::last_count;
pub use debian::go_pprof;
pub use expectations::{Expectations, ThreadCalls};
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
