//! The function that contains the code at an address, for code that has run.
//!
//! The runtime may be queried only about code that has run, or that it has prepared. For
//! precompiled code it finds the piece at the address, and searches downwards from there for a
//! piece whose method it has prepared. The runtime returns the method that it finds, even if that
//! is the wrong one. Where no method further down is prepared, the runtime reads on before the
//! start of its table until the program crashes (seen on .NET 9 and 10).
//!
//! Words on a stack that look like return addresses are often entry points of methods that are
//! about to be called. The byte before an entry point lies in a gap behind another method, which
//! may never have been called. A call instruction before a real return address has run.

use clr_profiler::{FunctionId, ProfilerInfo, ReJitId, StackFrame};

use crate::arch::{LONGEST_CALL, follows_call};
use crate::os::memory::copy_if_there;

/// An address of code that has run, or that the runtime has prepared to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunAddress(usize);

impl RunAddress {
    /// Address of the last byte of the call that returns to `return_address`; `None` if no call
    /// ends there. If the system refuses to read the bytes, `return_address` is believed to be a
    /// return address.
    pub fn before_return(return_address: usize) -> Option<Self> {
        if is_call_before(return_address) == Some(false) {
            return None;
        }
        return_address.checked_sub(1).map(Self)
    }

    /// The code address of a frame that the runtime's own stack walk found.
    pub fn of_frame(frame: &StackFrame) -> Option<Self> {
        frame.address.checked_sub(1).map(Self)
    }

    /// The address of an instruction at which a thread was interrupted or that failed, or of a
    /// block that the runtime enters next.
    pub const fn executed(address: usize) -> Self {
        Self(address)
    }

    /// The destination of a call that was made, or an address of code that the runtime has given to
    /// callers.
    pub const fn called(address: usize) -> Self {
        Self(address)
    }

    /// The address as a number.
    pub const fn address(self) -> usize {
        self.0
    }
}

/// Whether a call ends right before an address; `None` if the bytes can't be read.
pub fn is_call_before(address: usize) -> Option<bool> {
    let mut before = [0; LONGEST_CALL];
    copy_if_there(address.checked_sub(before.len())?, &mut before).then(|| follows_call(&before))
}

/// The function whose code is at an address, and its version. `None` if the code belongs to no
/// function. Must not be called in signal handlers.
pub fn function_at(info: &ProfilerInfo, address: RunAddress) -> Option<(FunctionId, ReJitId)> {
    // SAFETY: the code has run, or is prepared.
    unsafe { info.function_at(address.0) }.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_found_before_where_it_returns_to_and_nowhere_else() {
        // call rax, nop, and the room up to a method that begins at a multiple of 16.
        let mut code = [0xCC_u8; 16];
        code[5..8].copy_from_slice(&[0xFF, 0xD0, 0x90]);
        let start = code.as_ptr().expose_provenance();
        assert_eq!([7, 8, 16].map(|at| is_call_before(start + at)), [true, false, false].map(Some));
        assert_eq!([0, 7, 4096].map(is_call_before), [None; 3]);
        let found = [7, 8].map(|at| RunAddress::before_return(start + at).map(RunAddress::address));
        assert_eq!(found, [Some(start + 6), None]);
    }
}
