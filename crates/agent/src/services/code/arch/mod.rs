//! Processors' code, a module for each of them.

#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::{
    FIRST_BYTES, LeafStep, SIGNAL_RETURN, follows_system_call, is_counting, leaf_step, takes_over_frame,
};
