//! The agent in real .NET programs: one binary, which builds in a fraction of the time that one for
//! each file took. Long tests leave no processor idle at the end of a file.

mod support;

mod allocations;
mod arguments;
mod awaiters;
mod awaits;
mod counters;
mod coverage;
mod covered_probes;
mod disk;
mod editable;
mod events;
mod exceptions;
mod flow;
mod gc;
mod heap;
mod hosts;
mod inlined;
mod known_answers;
mod locks;
mod memory;
mod notification;
mod on_threads;
mod panics;
mod paths;
mod plans;
mod probe_callers;
mod probe_calls;
mod probes;
mod reading;
mod requests;
mod sampling;
mod survival;
mod traces;
mod values;
