//! The library that the .NET runtime loads. It contains the hooks and the instruments.
//!
//! ```text
//! agent ---- resident ---- startup ---- process: trust, program, child_process, fork
//!   |
//!   +-- services: stacks, dictionary, event_log; hook_sets: which entry points
//!   +-- instruments/calls: hooks -> slow -> frames, stacks, shared; sampler on the helper thread
//!   +-- instruments/flow: hooks -> slow -> ring
//!   +-- instruments/events: callbacks -> dictionary, event_log
//!   +-- instruments/cpu, wall -> agent-stacks (sampling, code)
//!   +-- instruments/exceptions: callbacks -> agent-stacks (stacks), dictionary, event_log
//! ```

mod agent;
mod arch;
mod hook_sets;
mod instrument;
mod instruments;
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

/// What the agent needs if the program has used up its address space comes from a reserve.
#[global_allocator]
static ALLOCATOR: clrscope_agent_base::reserve::WithReserve = clrscope_agent_base::reserve::WithReserve::new();

clr_profiler::export_profiler!(
    Agent,
    "{C7E1A7D4-3B7B-4C2E-9B7F-0C15C09E5A11}",
    notification_only = "{C7E1A7D4-3B7B-4C2E-9B7F-0C15C09E5A12}"
);

/// Version of this crate.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The version of this library, for builds of the tool that embed an already built agent: the tool
/// and the embedded agent must have the same version.
// SAFETY: no other library has a symbol of this name.
#[unsafe(no_mangle)]
pub static CLRSCOPE_AGENT_VERSION: [u8; VERSION.len()] = *VERSION.as_bytes().first_chunk().unwrap();
