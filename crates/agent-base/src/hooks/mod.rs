//! Words that all hooks share: the thread-local one that leads to the thread's record, what is kept
//! there, and the flag that turns the slow paths off.

pub mod own;

pub use crate::arch::{current_record, set_current_record, stopped_flag};

/// Whether recording has ended.
#[inline]
pub fn is_stopped() -> bool {
    stopped_flag().load(std::sync::atomic::Ordering::Relaxed) != 0
}
