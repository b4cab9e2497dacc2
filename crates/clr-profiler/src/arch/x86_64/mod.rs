//! x86-64 with the System V calling convention.

/// Offset of the stack pointer in the runtime's register context of a frame.
pub(crate) const STACK_POINTER_IN_CONTEXT: usize = 0x98;
/// Offset of the frame pointer in the runtime's register context of a frame.
pub(crate) const FRAME_POINTER_IN_CONTEXT: usize = 0xA0;

/// Combines a frame pointer from the upper halves of two numbers. A callback whose arguments fill
/// the registers receives it in this form.
pub(crate) fn frame_in_upper_halves(low: u64, high: u64) -> usize {
    (low >> 32 | high >> 32 << 32) as usize
}
