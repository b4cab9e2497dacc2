//! State that all hooks share: the thread-local word that leads to the thread's record, the hooks'
//! fields in that record, and the flag that turns the slow paths off.

pub mod own;

pub use crate::arch::{current_record, set_current_record, stopped_flag};

/// Whether recording has ended.
#[inline]
pub fn is_stopped() -> bool {
    stopped_flag().load(std::sync::atomic::Ordering::Relaxed) != 0
}
