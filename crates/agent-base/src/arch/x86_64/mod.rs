//! x86-64, by the System V convention.

mod calls;
mod thread_word;

pub use calls::{
    BEFORE_CALL, Destination, LONGEST_CALL, LONGEST_JUMP, call_starts, called, ends_in_trap, follows_call, jump,
    jumps_to, runs_on, shortest_call,
};
pub use thread_word::{current_record, set_current_record, stopped_flag, thread_address};

/// The time stamp counter. Constant rate and synchronous between cores on every x64 of this decade.
#[inline]
pub fn ticks() -> u64 {
    // SAFETY: every x64 has it.
    unsafe { core::arch::x86_64::_rdtsc() }
}
