//! A stack of the calls a thread is in, kept right by the caller's stack pointer.

/// One activation. The layout is part of the contract with hooks in assembly.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(C)]
pub struct Frame {
    /// The caller's stack pointer; for frames that are not functions, one less than that of the frame below.
    pub sp: usize,
    /// What the owner keeps with it.
    pub word: usize,
}
