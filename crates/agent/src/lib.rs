//! The library that the .NET runtime loads: hooks and instruments.
//!
//! ```text
//! agent ---- startup ---- trust, functions, helper
//!   |
//!   +-- threads: begin and end of each, its record; hooks: which entry points
//!   +-- instruments/calls: hooks -> slow -> frames, stacks, shared; sampler on the helper thread
//!   +-- instruments/flow: hooks -> slow -> ring
//!   +-- instruments/events: callbacks -> dictionary, event_log
//!   +-- instruments/exceptions: places -> dictionary, event_log
//! ```

mod agent;
mod boundary;
mod clock;
mod dictionary;
mod event_log;
mod family;
mod field_cache;
mod fork;
mod functions;
mod helper;
mod hooks;
mod il;
mod instrument;
mod instruments;
mod patterns;
mod program;
mod startup;
mod threads;
mod trust;
mod values;

clr_profiler::export_profiler!(agent::Agent, "{C7E1A7D4-3B7B-4C2E-9B7F-0C15C09E5A11}");
