//! The remark in a recording with missing stacks.

use std::sync::atomic::{AtomicBool, Ordering};

use clr_profiler::Result;
use clrscope_recording::writer::{ProcessWriter, monotonic_ns};

/// A remark that is made once, with the first error.
pub(crate) struct NoStackRemark {
    writer: &'static ProcessWriter,
    text: &'static str,
    is_made: AtomicBool,
}

impl NoStackRemark {
    /// Creates the remark of an instrument. `text` begins with the instrument's name.
    pub(crate) fn new(writer: &'static ProcessWriter, text: &'static str) -> Self {
        Self { writer, text, is_made: AtomicBool::new(false) }
    }

    /// Number of a stack; 0 if the runtime could not walk it. The first error makes the remark.
    pub(crate) fn number(&self, walked: Result<u32>) -> u32 {
        walked.unwrap_or_else(|error| {
            if !self.is_made.swap(true, Ordering::Relaxed) {
                self.writer.note(monotonic_ns(), &format!("{}: {error}", self.text));
            }
            0
        })
    }
}
