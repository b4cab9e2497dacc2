//! Processors: one module for each. The module of the target processor is re-exported.
//!
//! Instruments and services keep what only they need of it in folders `arch` of their own.
//! `clr-profiler` refuses, with a sentence, to be built for processors that have no such modules.

#[cfg(target_arch = "x86_64")]
pub mod x86_64;

#[cfg(target_arch = "x86_64")]
pub use x86_64::{
    BEFORE_CALL, Destination, LONGEST_CALL, LONGEST_JUMP, call_starts, called, current_record, ends_in_trap,
    follows_call, jump, jumps_to, own_value, runs_on, set_current_record, set_own_value, shortest_call, stopped_flag,
    thread_address, ticks,
};
