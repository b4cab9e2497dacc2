//! Machine code of processors, a module for each processor.

#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::{
    Base, EPILOG_BYTES, FIRST_BYTES, FrameStep, LINKAGE_BYTES, LONGEST_INFO, SIGNAL_RETURN, STOP_ON_RETURN_BYTES,
    THREAD_EXIT, UnwindInfo, bytes_to_frame_pointer, bytes_to_own_frame_pointer, bytes_to_stored_this, epilog_step,
    follows_system_call, interrupted_by_signal, is_counting, is_linkage, prolog_step, stop_on_return_step,
    stops_on_return, takes_over_frame,
};
