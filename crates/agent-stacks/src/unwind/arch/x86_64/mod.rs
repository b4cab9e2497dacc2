//! Compiled code of x86-64: single instructions, and the compilers' unwind information for each
//! piece of code.

mod frame_pointers;
mod instructions;
mod stored_this;
mod unwind_info;

pub(crate) use frame_pointers::bytes_to_frame_pointer;
pub(crate) use instructions::{
    EPILOG_BYTES, FIRST_BYTES, LINKAGE_BYTES, SIGNAL_RETURN, STOP_ON_RETURN_BYTES, THREAD_EXIT,
    bytes_to_own_frame_pointer, epilog_step, follows_system_call, interrupted_by_signal, is_counting, is_linkage,
    prolog_step, stop_on_return_step, stops_on_return, takes_over_frame,
};
pub(crate) use stored_this::bytes_to_stored_this;
pub(crate) use unwind_info::{Base, FrameStep, LONGEST_INFO, UnwindInfo};
