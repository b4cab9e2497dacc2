//! x86-64, by the System V convention.

/// Offset of the stack pointer in the registers that the runtime hands out of a frame.
pub(crate) const STACK_POINTER_IN_CONTEXT: usize = 0x98;
/// Offset of the frame pointer in the registers that the runtime hands out of a frame.
pub(crate) const FRAME_POINTER_IN_CONTEXT: usize = 0xA0;

/// The frame pointer whose halves stand in the upper halves of two numbers: a callback whose
/// arguments fill the registers gets it so.
pub(crate) fn frame_in_upper_halves(low: u64, high: u64) -> usize {
    (low >> 32 | high >> 32 << 32) as usize
}
