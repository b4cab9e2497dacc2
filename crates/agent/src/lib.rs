//! The library that the .NET runtime loads: hooks and instruments.
//!
//! ```text
//! agent ---- resident ---- startup ---- process: trust, program, child_process, fork
//!   |
//!   +-- services: functions, threads, values, dictionary, event_log, helper; hooks: which entry points
//!   +-- instruments/calls: hooks -> slow -> frames, stacks, shared; sampler on the helper thread
//!   +-- instruments/flow: hooks -> slow -> ring
//!   +-- instruments/events: callbacks -> dictionary, event_log
//!   +-- instruments/cpu, wall -> services/sampling -> services/code
//!   +-- instruments/exceptions: callbacks -> services/stacks, dictionary, event_log
//! ```

mod agent;
mod arch;
mod boundary;
mod hooks;
mod instrument;
mod instruments;
mod os;
#[cfg(feature = "panic-on-demand")]
mod panic_on_demand;
mod process;
mod resident;
mod services;
mod setup;
mod startup;
#[cfg(test)]
mod tests;

pub use agent::Agent;

clr_profiler::export_profiler!(Agent, "{C7E1A7D4-3B7B-4C2E-9B7F-0C15C09E5A11}");
