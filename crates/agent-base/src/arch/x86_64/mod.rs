//! x86-64 with the System V calling convention.

mod calls;
mod thread_word;

pub use calls::{
    BEFORE_CALL, Destination, LONGEST_CALL, LONGEST_JUMP, call_starts, called, ends_in_trap, follows_call, jump,
    jumps_to, runs_on, shortest_call,
};
pub use thread_word::{current_record, own_value, set_current_record, set_own_value, stopped_flag, thread_address};

/// The time stamp counter. It runs at a constant rate and in step on all cores of every x64
/// processor of this decade.
#[inline]
pub fn ticks() -> u64 {
    // SAFETY: every x64 has it.
    unsafe { core::arch::x86_64::_rdtsc() }
}
