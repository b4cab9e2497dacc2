//! x86-64, by the System V convention.

mod prolog;

pub(crate) use prolog::frame_of_prolog;

/// Offset of the frame pointer in the registers that the runtime hands out of a frame.
pub(crate) const FRAME_POINTER_IN_CONTEXT: usize = 0xA0;

/// The frame pointer of the function that this is written in, if the compiler has kept one; else any number.
#[inline(always)]
pub(crate) fn frame_pointer() -> usize {
    let frame: usize;
    // SAFETY: reads a register.
    unsafe { std::arch::asm!("mov {}, rbp", out(reg) frame, options(nomem, nostack, preserves_flags)) };
    frame
}
