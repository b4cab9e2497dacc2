//! x86-64, by the System V convention.

mod prolog;

pub(crate) use prolog::frame_of_prolog;

/// Offset of the frame pointer in the registers that the runtime hands out of a frame.
pub(crate) const FRAME_POINTER_IN_CONTEXT: usize = 0xA0;
